// What every page can do with scripts: switch between light and dark, send forms once, and load parts of a page.
(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("scripted");

  const button = document.getElementById("theme");
  if (button) {
    const dark = () => root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    const name = () => button.setAttribute("aria-label", dark() ? "Switch to light" : "Switch to dark");
    button.hidden = false;
    name();
    button.addEventListener("click", () => {
      root.dataset.theme = dark() ? "light" : "dark";
      try { localStorage.setItem("theme", root.dataset.theme); } catch { /* for this page, then */ }
      name();
    });
  }

  // A form that pays or decides is sent once, however often its button is pressed.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.dataset.sent) { event.preventDefault(); return; }
    if (form.method === "post" && !form.hasAttribute("data-again")) form.dataset.sent = "yes";
  });
  addEventListener("pageshow", () => {
    for (const form of document.forms) delete form.dataset.sent;
  });

  // While a link or a button is pressed, nothing is put in its place: the press would be lost.
  let released = Promise.resolve();
  let free = () => {};
  addEventListener("pointerdown", (event) => {
    free();
    if (event.button === 0 && event.target.closest("a, button, summary"))
      released = new Promise((done) => { free = done; });
  }, true);
  for (const name of ["pointerup", "pointercancel"]) addEventListener(name, () => setTimeout(free), true);  // after the click

  // window.sfumato.part(address, fields, into) loads a part of a page; the newest of several wins.
  const newest = new Map();
  const next = (into) => {
    const number = (newest.get(into) || 0) + 1;
    newest.set(into, number);
    return number;
  };
  window.sfumato = {
    async part(address, fields, into) {
      const number = next(into);
      const asked = { headers: { "X-Form": document.body.dataset.form }, credentials: "same-origin" };
      if (fields) {
        asked.method = "POST";
        asked.headers["Content-Type"] = "application/x-www-form-urlencoded";
        asked.body = new URLSearchParams(fields);
      }
      let text;
      try {
        const answer = await fetch(address, asked);
        if (answer.redirected) { location.assign(answer.url); return; }
        text = await answer.text();
      } catch {
        text = '<p class="note bad" role="alert">The server cannot be reached.</p>';
      }
      await released;
      if (newest.get(into) !== number) return;
      const fresh = into.cloneNode(false);
      fresh.innerHTML = text;
      const open = [...into.querySelectorAll("details[open] > summary")].map((line) => line.textContent);
      for (const line of fresh.querySelectorAll("details > summary"))
        if (open.includes(line.textContent)) line.parentNode.open = true;
      if (!fresh.isEqualNode(into)) into.replaceChildren(...fresh.childNodes);
      into.dispatchEvent(new CustomEvent("loaded", { bubbles: true }));
    },
    // What is on its way into a part is about something that is no longer asked.
    forget(into) { next(into); },
    later(call, milliseconds) {
      let timer;
      return (...values) => { clearTimeout(timer); timer = setTimeout(() => call(...values), milliseconds); };
    },
  };
})();
