document.documentElement.classList.add("js");
document.addEventListener("click", async e => {
  const button = e.target.closest("button.copy");
  if (!button) return;
  const command = button.previousElementSibling.textContent;
  try {
    await navigator.clipboard.writeText(command);
    document.getElementById("status").textContent = "copied: " + command;
    button.textContent = "Copied";
  } catch (error) {
    getSelection().selectAllChildren(button.previousElementSibling);
    button.textContent = "Press Ctrl-C";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
});
// patch makes the content of the element old equal to the content of now, and replaces only nodes that differ.
function patch(old, now) {
  if (old.isEqualNode(now)) return;
  const a = old.children, b = now.children;
  if (old.tagName !== now.tagName || a.length !== b.length || a.length === 0 ||
      [...a].some((child, i) => child.tagName !== b[i].tagName) || textOf(old) !== textOf(now)) {
    old.replaceWith(document.importNode(now, true));
    return;
  }
  for (const { name } of [...old.attributes]) if (!now.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of now.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  [...a].forEach((child, i) => patch(child, b[i]));
}
const textOf = e => [...e.childNodes].filter(n => n.nodeType === Node.TEXT_NODE).map(n => n.data).join("\0");
let failures = 0;
async function refresh() {
  try {
    const response = await fetch(location.pathname, { signal: AbortSignal.timeout(10000) });
    if (!response.ok) throw new Error(await response.text());
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    for (const part of document.querySelectorAll("[data-part]")) {
      const now = page.getElementById(part.id);
      if (now) patch(part, now);
    }
    failures = 0;
  } catch (error) {
    failures++;
  }
  document.getElementById("ended").hidden = failures < 2;
  setTimeout(refresh, 1500);
}
setTimeout(refresh, 1500);
