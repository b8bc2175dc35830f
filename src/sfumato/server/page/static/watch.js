// Copies a token that is shown once.
(() => {
  "use strict";
  const button = document.getElementById("copy");
  if (!button) return;
  const field = document.getElementById(button.dataset.from);
  const told = document.getElementById("copied");
  button.addEventListener("click", async () => {
    field.focus();
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
      told.textContent = "Copied.";
    } catch {
      told.textContent = "It is marked: press Ctrl and C.";
    }
  });
})();
