// Before the page is painted: the theme that this reader has chosen, if any.
try {
  const chosen = localStorage.getItem('holdfast-docs-theme');
  if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
} catch {
  // Storage is refused: the page follows the system.
}
