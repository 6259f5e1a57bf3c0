// Elements that scroll can be reached with the keyboard, whatever the theme decides from the size of the window. The theme
// adds the elements around tables later.
const scrolling = ".md-typeset__scrollwrap, .md-typeset pre > code, .md-search__scrollwrap";
function makeReachable() {
  for (const element of document.querySelectorAll(scrolling)) if (element.tabIndex !== 0) element.tabIndex = 0;
}
makeReachable();
new MutationObserver(makeReachable).observe(document.body, { childList: true, subtree: true, attributes: true, attributeFilter: ["tabindex"] });
document.querySelector(".md-search")?.setAttribute("aria-label", "Search");

// The name of the button that selects a version contains the version, which is its text. The theme adds the button later.
const header = document.querySelector(".md-header__topic");
function nameVersion() {
  const button = header.querySelector(".md-version__current:not([data-named])");
  if (!button) return;
  button.dataset.named = "";
  button.setAttribute("aria-label", `${button.textContent.trim()}: select version`);
}
if (header) new MutationObserver(nameVersion).observe(header, { childList: true, subtree: true });
