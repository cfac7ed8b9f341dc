// Asks the server, and makes elements.
export async function ask(path, { method = "GET", body } = {}) {
  const answer = await fetch(path, { method, body }).catch(() => null);
  if (!answer) throw new Error("The server does not answer: `passes view` was ended.");
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(found.error ?? `The server refused: ${answer.status}`);
  return found;
}

// What somebody waits for; `quiet` ends when nothing of it is left for a moment.
const waited = { number: 0, last: 0 };
export async function query(path, given) {
  waited.number++;
  try {
    return await ask(`${path}?${new URLSearchParams(given)}`);
  } finally {
    waited.number--;
    waited.last = Date.now();
  }
}
export async function quiet() {
  while (waited.number || Date.now() - waited.last < 500) await new Promise((wake) => setTimeout(wake, 100));
}

export const post = (path, given) => ask(path, { method: "POST", body: JSON.stringify(given) });

// An element with attributes, functions on events, and children; texts are never markup.
export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

export const code = (text) => el("code", {}, text);
export const button = (text, onclick, more = {}) => el("button", { type: "button", class: "button", onclick, ...more }, text);

// A sentence in which backticks mark code.
export const ticks = (text) => text.split(/`([^`]+)`/).map((part, number) => (number % 2 ? code(part) : part));

export function copied(text) {
  const made = button("Copy", async () => {
    try {
      await navigator.clipboard.writeText(text());
      made.textContent = "Copied";
    } catch {
      const range = document.createRange();
      range.selectNodeContents(made.previousElementSibling);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      made.textContent = "Selected: press Ctrl+C";
    }
    setTimeout(() => { made.textContent = "Copy"; }, 2000);
  });
  return made;
}

export const $ = (id) => document.getElementById(id);
export const plural = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

// Calls a function when nothing was entered for a while; of several answers, the last one counts.
export function settled(work, milliseconds = 200) {
  let timer, latest = 0;
  return (...given) => {
    clearTimeout(timer);
    const own = ++latest;
    timer = setTimeout(() => work(() => own === latest, ...given), milliseconds);
  };
}
