// Opens all details of a page and returns its layout, an object of the type layout in
// browser_test.go.
(() => {
  document.querySelectorAll("details").forEach((d) => { d.open = true; });
  const root = document.documentElement, listed = 5;
  const all = [...document.querySelectorAll("*")];
  const describe = (e) => `${e.tagName} ${e.className.baseVal ?? e.className} ${e.textContent.trim().slice(0, 40)}`;

  // Elements that scroll may have wide content.
  const scrolls = (e) => e && e !== root && (/auto|scroll/.test(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
  const overflow = root.scrollWidth - root.clientWidth;
  const wide = overflow <= 0 ? [] : all.filter((e) => e.getBoundingClientRect().right > root.clientWidth + 1 && !scrolls(e)).map(describe);

  const drawings = [...document.querySelectorAll("svg")];
  const empty = [], clipped = [], overlapping = [];
  for (const svg of drawings) {
    const frame = svg.getBoundingClientRect();
    const title = svg.querySelector("title")?.textContent ?? svg.getAttribute("class") ?? "";
    if (frame.width <= 0 || frame.height <= 0) {
      empty.push(title);
      continue;
    }
    const texts = [...svg.querySelectorAll("text")].map((e) => ({ box: e.getBoundingClientRect(), text: e.textContent }));
    const outside = texts.find(({ box }) => box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 3 || box.bottom > frame.bottom + 3);
    if (outside) clipped.push(`${title}: ${outside.text}`);
    // Bounding boxes have space above and below the letters.
    const overlap = (a, b) => a.left < b.right - 0.5 && b.left < a.right - 0.5 && a.top + 0.3 * a.height < b.bottom && b.top + 0.3 * b.height < a.bottom;
    texts.some((a, i) => texts.slice(i + 1).some((b) => overlap(a.box, b.box) && overlapping.push(`${title}: ${a.text} on ${b.text}`)));
  }

  const rows = [...document.querySelectorAll("tr")].filter((e) => getComputedStyle(e).display !== "table-row").map(describe);

  // Names in narrower columns are broken within words.
  const narrow = [...document.querySelectorAll("tbody th")].filter((e) => e.clientWidth < 90).map(describe);

  // Contrast as defined by WCAG 2.2.
  const channels = (color) => color.match(/[\d.]+/g).map(Number);
  const luminance = (color) => {
    const [r, g, b] = channels(color).map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const background = (e) => {
    if (!e) return "rgb(255, 255, 255)";
    const color = getComputedStyle(e).backgroundColor, parts = channels(color);
    return parts.length === 4 && parts[3] === 0 ? background(e.parentElement) : color;
  };
  const seen = new Set(), lowContrast = [];
  for (const e of all) {
    const hasText = [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim() !== "");
    if (!hasText || e.closest("head, script, title, desc")) continue;
    const style = getComputedStyle(e), color = e.closest("svg") ? style.fill : style.color, behind = background(e);
    if (seen.has(color + behind)) continue;
    seen.add(color + behind);
    const [low, high] = [luminance(color), luminance(behind)].sort((a, b) => a - b);
    if ((high + 0.05) / (low + 0.05) < 4.5) lowContrast.push(`${describe(e)}: ${color} on ${behind}`);
  }

  const scrolling = [...document.querySelectorAll(".wide")].filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.ariaLabel);

  return {
    scrolling, narrow: narrow.slice(0, listed),
    overflow: Math.max(overflow, 0), wide: wide.slice(0, listed), rows: rows.slice(0, listed),
    scripts: document.scripts.length,
    handlers: all.filter((e) => [...e.attributes].some((a) => a.name.startsWith("on"))).length,
    executed: "executed" in window,
    drawings: drawings.length, empty: empty.slice(0, listed), clipped: clipped.slice(0, listed), overlapping: overlapping.slice(0, listed),
    lowContrast: lowContrast.slice(0, listed),
  };
})()
