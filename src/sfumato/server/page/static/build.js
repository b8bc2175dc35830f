// What is chosen is written at once. Choices that change what else can be chosen draw the form again.
(() => {
  "use strict";
  const form = document.getElementById("build");
  const said = document.getElementById("said");
  const loaded = document.createElement("div");
  let shape = false;
  let sent = {};

  // A typed value comes twice, while it is typed and when its field is left: it is written once.
  const write = () => {
    const now = Object.fromEntries(new FormData(form));
    if (JSON.stringify(now) === JSON.stringify(sent)) return;
    sent = now;
    window.sfumato.part("/ask/build", sent, loaded);
  };
  const soon = window.sfumato.later(write, 120);

  const noted = (picks) => {  // what is chosen and typed, as attributes: they are what is compared
    for (const field of picks.querySelectorAll("input")) field.defaultValue = field.value;
    for (const choice of picks.querySelectorAll("option")) choice.defaultSelected = choice.selected;
  };
  const draw = (old, fresh) => {
    for (const field of fresh.querySelectorAll("[name]")) {
      const before = form.elements[field.name];  // what was typed since it was sent stays
      if (before && before.value !== sent[field.name]) field.value = before.value;
    }
    noted(fresh);
    noted(old);
    if (fresh.isEqualNode(old)) return;
    const held = document.activeElement;
    const again = held && held.id && fresh.querySelector(`#${held.id}`);
    if (again && held.matches("input") && held.type === again.type) {  // the same field, with its cursor
      for (const { name, value } of again.attributes) held.setAttribute(name, value);
      again.replaceWith(held);
    }
    old.replaceWith(fresh);
    if (again) document.getElementById(held.id).focus();
  };

  loaded.addEventListener("loaded", () => {
    const old = document.getElementById("written");
    const fresh = loaded.querySelector("#written");
    if (!fresh) { old.innerHTML = loaded.innerHTML; sent = {}; return; }
    if (shape) draw(document.getElementById("picks"), loaded.querySelector("#picks"));
    shape = false;
    if (!fresh.isEqualNode(old)) old.replaceWith(fresh);  // what is equal stays: somebody may be about to press it
    const note = document.querySelector("#written .note");
    said.textContent = note ? note.textContent : document.querySelector("#written p").textContent;
  });
  form.addEventListener("change", (event) => {
    shape = shape || event.target.hasAttribute("data-shape");
    write();
  });
  form.addEventListener("input", (event) => { if (event.target.matches("input")) soon(); });
})();
