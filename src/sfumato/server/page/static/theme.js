// Light or dark as was chosen here before; else as the system says. Runs before anything is drawn.
(() => {
  try {
    const chosen = localStorage.getItem("theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch { /* storage may be off */ }
})();
