// The forms of commands and targets, and the runs: progress, verdict, report, outcome.
import { $, ask, button, code, copied, el, plural, post, settled, ticks } from "./api.js";
import { open } from "./view.js";

let own = null; // the model: its key and name
let commands = [];

export function ready(model) {
  own = model;
  $("findings").replaceChildren();
  $("targets").value = "";
  $("results").replaceChildren();
  $("norun").hidden = false;
  line();
}

const id = (option, where) => `${where}-${option.name}`;

// An input for an option, as the command declares it.
function field(option, where) {
  const attributes = { id: id(option, where), name: option.name, "data-kind": option.kind, "aria-describedby": `${id(option, where)}-help` };
  const help = el("p", { class: "told", id: attributes["aria-describedby"] }, ticks(option.help), option.kind === "list" && !option.words.length ? " One a line." : "");
  if (option.kind === "flag") return el("div", { class: "field flag" }, el("label", {}, el("input", { ...attributes, type: "checkbox", checked: option.default === true }), code(option.flag)), help);
  const label = el("label", { for: attributes.id }, code(option.flag));
  if (option.kind === "text" && option.words.length) {
    const words = [...(option.default === null || !option.words.includes(option.default) ? [""] : []), ...option.words];
    return el("div", { class: "field" }, label, el("select", attributes, words.map((word) => el("option", { value: word, selected: word === (option.default ?? "") }, word || "not set"))), help);
  }
  if (option.kind === "list" && option.words.length) {
    const boxes = option.words.map((word) => el("label", {}, el("input", { type: "checkbox", value: word, name: option.name, "data-kind": "word" }), code(word)));
    return el("fieldset", { class: "field" }, el("legend", {}, code(option.flag)), boxes, help);
  }
  if (option.kind === "list") return el("div", { class: "field" }, label, el("textarea", { ...attributes, rows: 1, placeholder: option.hint, spellcheck: "false" }), help);
  return el("div", { class: "field" }, label, el("input", { ...attributes, type: "text", placeholder: option.default === null ? option.hint : option.default, spellcheck: "false", autocomplete: "off" }), help);
}

// What was entered: the options that are not left as they are.
function entered(form) {
  const found = {};
  for (const input of form.querySelectorAll("[data-kind]")) {
    const { kind } = input.dataset;
    if (kind === "flag") { if (input.checked !== input.defaultChecked) found[input.name] = input.checked; }
    else if (kind === "word") { if (input.checked) (found[input.name] ??= []).push(input.value); }
    else if (kind === "list") { const lines = input.value.split("\n").map((one) => one.trim()).filter(Boolean); if (lines.length) found[input.name] = lines; }
    else if (input.value.trim() && !(input.tagName === "SELECT" && input.selectedOptions[0].defaultSelected)) found[input.name] = input.value.trim();
  }
  return found;
}

const wanted = () => ({ command: $("commands").value, options: entered($("form")), strict: $("strict").checked });

const line = settled(async (isLatest) => {
  if (!own) return;
  const place = $("line");
  try {
    const found = await post(`models/${own.key}/line`, wanted());
    if (!isLatest()) return;
    place.textContent = found.line;
    $("wrong").textContent = "";
    $("start").disabled = false;
  } catch (error) {
    if (!isLatest()) return;
    $("wrong").textContent = error.message;
    $("start").disabled = true;
  }
}, 150);

function choose(name) {
  const command = commands.find((one) => one.name === name);
  const shared = el("details", {}, el("summary", {}, "Options of every command"), el("div", { class: "fields" }, command.shared.map((one) => field(one, "o"))));
  $("form").replaceChildren(
    el("p", {}, command.help),
    el("div", { class: "fields" }, command.own.map((one) => field(one, "o")),
      el("div", { class: "field flag" }, el("label", {}, el("input", { type: "checkbox", id: "strict" }), code("--strict")), el("p", { class: "told" }, "Write nothing if something stays that the command is to rewrite."))),
    shared,
    el("p", { id: "wrong", role: "alert" }),
    el("div", { class: "line" }, el("code", { id: "line" }), copied(() => $("line").textContent)),
    el("button", { class: "button main", id: "start" }, "Run"),
  );
  line();
}

export function forms(started) {
  commands = started.commands;
  $("commands").replaceChildren(...commands.map((one) => el("option", { value: one.name, selected: one.name === "optimize" }, one.name)));
  $("facts").replaceChildren(el("div", { class: "fields" }, started.facts.map((one) => field(one, "f"))));
  choose($("commands").value);
}
$("commands").addEventListener("change", () => choose($("commands").value));
$("form").addEventListener("input", line);
$("form").addEventListener("submit", (event) => { event.preventDefault(); start(wanted()); });
$("facts").addEventListener("submit", (event) => event.preventDefault());

export function targets(names) {
  $("targets").append(...names.map((name) => el("option", { value: name }, name)));
}

// A button that sets up the form of a command, if the page has it.
export function setUp(text) {
  const [, name, , ...flags] = text.split(" ");
  const command = commands.find((one) => one.name === name);
  if (!command) return "";
  return button("Set it up", () => {
    $("commands").value = name;
    choose(name);
    const inputs = [...command.own, ...command.shared];
    for (let at = 0; at < flags.length; at++) {
      const option = inputs.find((one) => one.flag === flags[at]);
      const input = option && $(id(option, "o"));
      if (!option) continue;
      if (option.kind === "flag") { input.checked = true; continue; }
      const value = flags[++at] ?? "";
      if (input) input.value = option.kind === "list" && input.value ? `${input.value}\n${value}` : value;
      else $("form").querySelector(`[name="${option.name}"][value="${CSS.escape(value)}"]`)?.click();
    }
    line();
    $("command").scrollIntoView();
    $("start").focus({ preventScroll: true });
  });
}

const check = settled(async (isLatest) => {
  const target = $("targets").value;
  if (!target) { $("findings").replaceChildren(); return; }
  const given = { command: "check", target, options: entered($("facts")), strict: false };
  $("findings").replaceChildren(el("p", { class: "told", role: "status" }, `Checking for ${target}, and trying what clears it …`));
  let found, same;
  try {
    [found, same] = await Promise.all([post(`models/${own.key}/check`, given), post(`models/${own.key}/line`, given)]);
  } catch (error) {
    if (isLatest()) $("findings").replaceChildren(el("div", { class: "banner bad" }, el("h3", {}, "Cannot be checked"), el("p", {}, error.message)));
    return;
  }
  if (!isLatest()) return;
  if (!found.fits && !found.fixes) document.querySelector(".facts").open = true;
  const list = (title, lines) => (lines.length ? [el("h3", {}, title), el("ul", { class: "plain" }, lines.map((one) => el("li", {}, ticks(one))))] : []);
  const after = found.left ? `after this, ${plural(found.left, "node")} will still be in the way` : "after this it fits";
  const way = found.fixes ? [el("div", { class: "line" }, code(same.line), copied(() => same.line)), button(`Clear it: ${after}`, () => start(given), { class: "button main" })] : [];
  const none = !found.fits && !found.fixes ? [el("p", {}, found.clearing.length ? "Nothing clears it without another precision or a promise of yours: enter what you know of the inputs, or run one of these commands." : "No known command clears it.")] : [];
  $("findings").replaceChildren(el("div", { class: `banner ${found.fits ? "good" : "refused"}` }, el("h1", {}, found.fits ? "Fits" : "In the way"), el("p", {}, `${found.verdict}; ${found.summary}`)),
    ...list("What is in the way", found.findings), ...list("What clears it", found.clearing), ...none, ...way);
});
$("targets").addEventListener("change", check);
$("facts").addEventListener("input", () => { if ($("targets").value) check(); });

async function start(given) {
  const card = el("article", { class: "run card", tabindex: "-1" });
  $("norun").hidden = true;
  $("results").prepend(card);
  let key;
  try {
    key = (await post(`models/${own.key}/runs`, given)).run;
  } catch (error) {
    card.append(el("div", { class: "banner bad" }, el("h1", {}, "Not started"), el("p", {}, error.message)));
    return;
  }
  const said = el("p", { class: "said", role: "status" }, "starting");
  const clock = el("span", { class: "told" });
  const end = button("End it", () => { end.disabled = true; ask(`runs/${key}`, { method: "DELETE" }); });
  const words = el("code");
  card.append(el("div", { class: "line" }, words), el("progress", { "aria-label": "At work" }), said, el("div", { class: "actions" }, end, clock));
  $("runs").scrollIntoView();
  card.focus({ preventScroll: true });
  for (;;) {
    let state;
    try { state = await ask(`runs/${key}`); } catch (error) { card.append(el("p", {}, error.message)); return; }
    words.textContent = state.line;
    if (state.done) { finished(card, key, state); return; }
    if (state.said && said.textContent !== state.said) said.textContent = state.said;
    clock.textContent = `${state.seconds.toFixed(0)} s`;
    await new Promise((wake) => setTimeout(wake, 300));
  }
}

// Shows an outcome in a window of its own: the runs stay in this one.
async function look(key) {
  const opened = await ask(`runs/${key}/model`, { method: "POST" });
  if (!window.open(`${location.pathname}#${new URLSearchParams(opened)}`)) open(opened);
}

function finished(card, key, { line: words, done }) {
  const had = card.contains(document.activeElement);
  const numbers = (done.numbers ?? []).filter((one) => one.after && one.before !== one.after);
  const actions = el("div", { class: "actions" });
  if (done.output) actions.append(el("a", { class: "button main", href: `runs/${key}/output`, download: done.output }, `Save ${done.output}`));
  if (done.reproducer) actions.append(el("a", { class: "button main", href: `runs/${key}/reproducer`, download: true }, "Save the reproducer"));
  if (done.output) actions.append(button("Look at the outcome", () => look(key), { "aria-description": "opens another window" }));
  if (done.numbers) {
    const frame = el("iframe", { title: "Report", hidden: true });
    frame.addEventListener("load", () => {
      const root = frame.contentDocument.documentElement;
      const theme = document.documentElement.dataset.theme;
      if (theme) root.dataset.theme = theme;
      const fit = () => { frame.style.blockSize = `${Math.min(root.querySelector("body").scrollHeight + 4, 4000)}px`; };
      new ResizeObserver(fit).observe(root.querySelector("body"));
      fit();
      frame.scrollIntoView(); // its graphs are drawn when they are seen
    });
    const toggle = button("Before and after, side by side", () => {
      frame.hidden = !frame.hidden;
      if (!frame.hidden && !frame.getAttribute("src")) frame.src = `runs/${key}/report`;
      toggle.setAttribute("aria-expanded", !frame.hidden);
    }, { "aria-expanded": "false" });
    actions.append(toggle, el("a", { class: "button", href: `runs/${key}/report`, target: "_blank", rel: "noreferrer" }, "The report on its own"));
    card.frame = frame;
  }
  const next = (done.next ?? []).map((one) => el("li", {}, ticks(one)));
  card.replaceChildren(...[
    el("div", { class: `banner ${done.look}`, role: "status" }, el("h1", {}, done.verdict), el("p", {}, ...ticks(done.sentence))),
    el("dl", { class: "numbers" }, numbers.map((one) => el("div", { class: "changed" }, el("dt", {}, one.name), el("dd", {}, el("span", { class: "was" }, one.before), " → ", el("b", {}, one.after))))),
    done.remarks?.length ? el("details", {}, el("summary", {}, plural(done.remarks.length, "remark")), el("ul", { class: "plain" }, done.remarks.map((one) => el("li", {}, ticks(one))))) : "",
    el("div", { class: "line" }, code(words), copied(() => words)),
    actions,
    card.frame ?? "",
    next.length ? el("div", {}, el("h3", {}, "Next"), el("ul", { class: "plain" }, next)) : "",
  ].filter(Boolean));
  if (had) card.focus({ preventScroll: true });
}
