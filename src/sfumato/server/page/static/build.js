// What is chosen is written at once. Choices that change what else can be chosen draw the form again.
(() => {
  "use strict";
  const form = document.getElementById("build");
  const said = document.getElementById("said");
  const loaded = document.createElement("div");
  let shape = false;
  let sent = {};

  const write = () => {
    sent = Object.fromEntries(new FormData(form));
    return window.sfumato.part("/ask/build", sent, loaded);
  };
  const soon = window.sfumato.later(write, 120);

  loaded.addEventListener("loaded", () => {
    const fresh = (name) => loaded.querySelector(`#${name}`);
    if (!fresh("written")) { document.getElementById("written").innerHTML = loaded.innerHTML; return; }
    if (shape) {
      const held = document.activeElement && document.activeElement.id;
      const picks = fresh("picks");
      for (const field of picks.querySelectorAll("[name]")) {
        const old = form.elements[field.name];  // what was typed since it was sent stays
        if (old && old.value !== sent[field.name]) field.value = old.value;
      }
      document.getElementById("picks").replaceWith(picks);
      const again = held && document.getElementById(held);
      if (again) again.focus();
      shape = false;
    }
    document.getElementById("written").replaceWith(fresh("written"));
    const note = document.querySelector("#written .note");
    said.textContent = note ? note.textContent : document.querySelector("#written p").textContent;
  });
  form.addEventListener("change", (event) => {
    shape = shape || event.target.hasAttribute("data-shape");
    write();
  });
  form.addEventListener("input", (event) => { if (event.target.matches("input")) soon(); });
})();
