// The slider and the number follow each other; what they do is drawn again a moment after each move.
(() => {
  "use strict";
  const form = document.getElementById("feel");
  const slider = document.getElementById("slider");
  const field = document.getElementById("epsilon");
  const felt = document.getElementById("felt");
  const A_DECADE = 20;

  const toEpsilon = (place) => String(Number((10 ** (place / A_DECADE)).toPrecision(2)));
  const follow = () => {
    const value = Number(field.value);
    if (value > 0) slider.value = String(Math.round(Math.log10(value) * A_DECADE));
    slider.setAttribute("aria-valuetext", `epsilon ${field.value}`);
  };
  const draw = () => {
    felt.setAttribute("aria-busy", "true");
    return window.sfumato.part("/feel", Object.fromEntries(new FormData(form)), felt);
  };
  const soon = window.sfumato.later(draw, 60);

  slider.addEventListener("input", () => {
    field.value = toEpsilon(Number(slider.value));
    slider.setAttribute("aria-valuetext", `epsilon ${field.value}`);
    soon();
  });
  field.addEventListener("input", () => { follow(); if (field.validity.valid) soon(); });
  document.getElementById("about").addEventListener("input", soon);
  const column = document.getElementById("column");
  if (column) column.addEventListener("change", draw);
  felt.addEventListener("loaded", () => {
    felt.removeAttribute("aria-busy");
    const told = felt.querySelector("[data-said]");
    document.getElementById("said").textContent = told ? told.textContent : "";
  });
  follow();
})();
