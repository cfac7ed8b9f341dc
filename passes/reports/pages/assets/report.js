// The theme, the filter, the keyboard, the tips of cells and the order of tables.
"use strict";
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const shown = (elements) => elements.filter((element) => element.offsetParent !== null);

document.getElementById("theme").addEventListener("click", () => {
  const dark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  const theme = dark ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try { localStorage.setItem("passes-theme", theme); } catch { /* a page without storage */ }
});

const filter = document.getElementById("filter");
const choices = all("select[data-key]");
const none = document.querySelector(".none");
function narrow() {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  let left = 0;
  for (const element of all(filter.dataset.filters)) {
    const text = element.dataset.text.toLowerCase();
    const fits = words.every((word) => text.includes(word))
      && choices.every((one) => !one.value || element.dataset[one.dataset.key].split(" ").includes(one.value));
    element.hidden = !fits;
    left += fits;
  }
  none.hidden = left > 0;
  const asked = [filter.value.trim(), ...choices.map((one) => one.value)].filter(Boolean);
  none.querySelector("[data-asked]").textContent = asked.map((one) => `“${one}”`).join(" and ");
  for (const count of all("[data-left]")) count.textContent = left.toLocaleString("en");
}
filter?.addEventListener("input", narrow);
none?.querySelector("button").addEventListener("click", () => {
  filter.value = "";
  for (const one of choices) one.value = "";
  narrow();
  filter.focus();
});
choices.forEach((one) => one.addEventListener("change", narrow));

addEventListener("keydown", (event) => {
  const target = event.target;
  if (event.key === "/" && filter && !target.matches("input, select, textarea")) {
    event.preventDefault();
    filter.focus();
  } else if (event.key === "Escape") {
    hideTip();
    if (target === filter) {
      if (filter.value) { filter.value = ""; narrow(); } else filter.blur();
    } else if (target.matches(".lane .open")) lanes.toggle(target, false);
  } else if (target === filter && event.key === "ArrowDown") {
    event.preventDefault();
    step(shown(all(".lane .open, tr.row a")), null, 0);
  } else if (target.matches(".lane .open, tr.row a")) {
    const group = shown(all(".lane .open, tr.row a"));
    const to = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    if (to) { event.preventDefault(); step(group, target, to); }
  } else if (target.matches(".strip .cell")) {
    const to = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
    if (to) { event.preventDefault(); step(all(".cell", target.parentElement), target, to); }
  }
});

// Moves the focus in a group of which one element is a stop of Tab.
function step(group, from, by) {
  if (!group.length) return;
  const index = Math.min(group.length - 1, Math.max(0, group.indexOf(from) + by));
  if (from) from.tabIndex = -1;
  group[index].tabIndex = 0;
  group[index].focus();
}

const tip = document.getElementById("tip");
let told = null; // the cell that the tip is about
function showTip(cell) {
  told = cell;
  tip.replaceChildren(...cell.getAttribute("aria-label").split("\n").map((line, number) => {
    const part = document.createElement(number ? "div" : "b");
    part.textContent = line;
    return part;
  }));
  tip.hidden = false;
  const { left, bottom, top } = cell.getBoundingClientRect();
  const [width, height] = [tip.offsetWidth, tip.offsetHeight];
  const below = bottom + 8 + height < innerHeight;
  tip.style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`;
  tip.style.top = `${below ? bottom + 6 : Math.max(8, top - height - 6)}px`;
}
const hideTip = () => { tip.hidden = true; told = null; };
for (const [on, off] of [["pointerover", "pointerout"], ["focusin", "focusout"]]) {
  document.addEventListener(on, (event) => { if (event.target.matches?.(".strip .cell")) showTip(event.target); });
  document.addEventListener(off, hideTip);
}
addEventListener("scroll", () => told && showTip(told), { passive: true, capture: true });

for (const button of all("th button.sort")) {
  button.addEventListener("click", () => {
    const head = button.closest("th");
    const [table, column] = [head.closest("table"), head.cellIndex];
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const value = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const numbers = button.dataset.kind === "number";
    const sorted = [...table.tBodies[0].rows].sort((left, right) => {
      const [a, b] = [value(left), value(right)];
      return (down ? -1 : 1) * (numbers ? a - b : a.localeCompare(b, "en", { numeric: true }));
    });
    table.tBodies[0].append(...sorted);
  });
}
