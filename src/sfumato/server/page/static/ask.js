// The query page: completion from what is declared, and a quote while one types. Nothing here pays.
(() => {
  "use strict";
  const settings = document.getElementById("settings");
  if (settings) settings.addEventListener("change", () => settings.requestSubmit());

  const form = document.getElementById("ask");
  if (!form) return;
  const text = document.getElementById("sql");
  const place = document.getElementById("quote");
  const said = document.getElementById("said");
  const part = (name) => form.elements[name];

  // ── the quote

  const quote = () => {
    const sent = { sql: text.value };
    for (const name of ["epsilon", "error", "confidence"]) sent[name] = part(name).value;
    window.sfumato.part("/ask/quote", sent, place);
  };
  const soon = window.sfumato.later(quote, 150);
  const typed = () => {
    window.sfumato.forget(place);
    place.classList.add("stale");
    for (const button of place.querySelectorAll("button")) button.disabled = true;
    soon();
  };
  place.addEventListener("loaded", () => {
    place.classList.remove("stale");
    const words = place.querySelector("[data-said]");
    said.textContent = words ? words.dataset.said : "";
  });
  for (const name of ["epsilon", "error", "confidence"]) part(name).addEventListener("input", typed);
  text.addEventListener("input", typed);
  const release = (button) => button && button.id === "release";
  form.addEventListener("submit", (event) => {
    if (release(event.submitter)) return;
    event.preventDefault();
    event.stopPropagation();
    const button = event.submitter;
    if (button && button.name === "repair") { text.value = button.value; text.focus(); }
    if (button && button.name === "price") { part("epsilon").value = button.value; part("error").value = ""; part("epsilon").focus(); }
    close();
    typed();
  });
  addEventListener("pageshow", (event) => { if (event.persisted && text.value.trim()) quote(); });

  // ── completion

  const list = document.getElementById("suggestions");
  const words = [];
  for (const found of document.querySelectorAll("[data-column]"))
    words.push({ word: found.dataset.column, kind: "column of " + found.dataset.of });
  for (const found of document.querySelectorAll("[data-table]")) words.push({ word: found.dataset.table, kind: "table" });
  for (const word of form.dataset.functions.split(" ")) words.push({ word, kind: "function", after: "(" });
  for (const word of form.dataset.keywords.split(" ")) words.push({ word, kind: "keyword" });
  let options = [], chosen = -1, moved = false;

  const begun = () => {
    const before = text.value.slice(0, text.selectionStart);
    if (text.selectionStart !== text.selectionEnd || (before.split("'").length - 1) % 2) return null;
    const found = /[A-Za-z_][A-Za-z0-9_]*$/.exec(before);
    return found ? found[0] : "";
  };
  const close = () => {
    list.hidden = true;
    options = [];
    text.removeAttribute("aria-activedescendant");
  };
  const choose = (number) => {
    chosen = (number + options.length) % options.length;
    [...list.children].forEach((line, at) => line.setAttribute("aria-selected", String(at === chosen)));
    text.setAttribute("aria-activedescendant", list.children[chosen].id);
    list.children[chosen].scrollIntoView({ block: "nearest" });
  };
  const take = () => {
    const { word, after = "" } = options[chosen];
    const end = text.selectionStart, start = end - begun().length;
    const tail = after && text.value[end] === after ? "" : after;
    text.setRangeText(word + tail, start, end, "end");
    close();
    typed();
  };
  const offer = (all) => {
    const start = begun();
    if (start === null || (!start && !all)) return close();
    const small = start.toLowerCase(), seen = new Set();
    options = words.filter(({ word }) => {
      const name = word.toLowerCase().replace(/^"/, "");
      const fits = name.startsWith(small) && (all || name !== small) && !seen.has(word);
      if (fits) seen.add(word);
      return fits;
    }).slice(0, 12);
    if (!options.length) return close();
    list.replaceChildren(...options.map(({ word, kind }, at) => {
      const line = document.createElement("li"), small_ = document.createElement("small");
      line.id = "suggestion-" + at;
      line.setAttribute("role", "option");
      line.textContent = word;
      small_.textContent = kind;
      line.append(small_);
      line.addEventListener("mousedown", (event) => { event.preventDefault(); chosen = at; take(); });
      return line;
    }));
    list.hidden = false;
    put();
    moved = false;
    choose(0);
    said.textContent = options.length === 1 ? "1 suggestion" : options.length + " suggestions";
  };

  // Where the cursor is: the same text in a box that looks like the editor.
  const put = () => {
    const box = document.createElement("div"), mark = document.createElement("span");
    const style = getComputedStyle(text);
    for (const name of ["font", "lineHeight", "padding", "border", "letterSpacing", "tabSize", "boxSizing"]) box.style[name] = style[name];
    Object.assign(box.style, { position: "absolute", visibility: "hidden", whiteSpace: "pre-wrap", overflowWrap: "break-word", width: text.clientWidth + "px", top: "0", left: "0" });
    box.textContent = text.value.slice(0, text.selectionStart - begun().length);
    mark.textContent = "​";
    box.append(mark);
    text.parentNode.append(box);
    const room = text.clientWidth - list.offsetWidth;
    list.style.left = Math.max(0, Math.min(mark.offsetLeft, room)) + "px";
    list.style.top = Math.min(mark.offsetTop + mark.offsetHeight - text.scrollTop + 4, text.offsetHeight) + "px";
    box.remove();
  };

  text.setAttribute("aria-autocomplete", "list");
  text.setAttribute("aria-haspopup", "listbox");
  text.setAttribute("aria-controls", "suggestions");
  text.addEventListener("input", () => offer(false));
  text.addEventListener("blur", close);
  text.addEventListener("click", close);
  text.addEventListener("keydown", (event) => {
    if (event.key === " " && event.ctrlKey) { event.preventDefault(); offer(true); return; }
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); close(); quote(); return; }
    if (list.hidden) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      moved = true;
      choose(chosen + (event.key === "ArrowDown" ? 1 : -1));
    } else if (event.key === "Tab" && !event.shiftKey || event.key === "Enter" && moved) {
      event.preventDefault();
      take();
    } else if (event.key === "Escape") {
      event.preventDefault();
      close();
    } else if (event.key === "ArrowLeft" || event.key === "ArrowRight") close();
  });
})();
