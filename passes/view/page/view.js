// The page: opens models, shows their loops and what the rules would do, finds nodes.
import { $, ask, button, code, copied, el, plural, query, quiet, settled, ticks } from "./api.js";
import { close, details, show } from "./graph.js";
import { forms, ready, setUp, targets } from "./run.js";

let model = null; // the key of the one that is shown
let answering = 0; // the number of the model whose rules are being asked
const starting = ask("start").then((started) => {
  forms(started);
  targets(started.targets);
  return started;
});

const failed = (error) => { $("state").textContent = ""; $("problem").replaceChildren(el("div", { class: "banner bad" }, el("h1", {}, "Failed"), el("p", {}, error.message))); };

async function upload(file) {
  $("problem").replaceChildren();
  $("state").textContent = `Reading ${file.name} …`;
  try {
    const { most } = await starting;
    if (file.size > most) throw new Error(`${file.name}: a file of more than ${most.toLocaleString("en")} bytes is not taken`);
    const opened = await ask(`models?${new URLSearchParams({ name: file.name })}`, { method: "POST", body: file });
    await open(opened);
  } catch (error) { failed(error); }
}

export async function open({ model: key, name }) {
  $("problem").replaceChildren();
  $("state").textContent = `Looking at ${name} …`;
  const own = ++answering;
  close();
  scrollTo(0, 0);
  let found;
  try {
    found = await ask(`models/${key}/overview`);
  } catch (error) {
    if (own !== answering) return;
    for (const id of ["work", "nav"]) $(id).hidden = true;
    $("drop").hidden = false;
    document.title = `Invalid: ${name}`;
    $("state").textContent = "";
    $("problem").replaceChildren(el("div", { class: "banner bad" }, el("h1", {}, "Not a model that can be worked with"), el("p", {}, ...ticks(error.message)), el("p", { class: "next" }, "Next: open another model, or mend this one.")));
    return;
  }
  if (own !== answering) return;
  model = key;
  location.hash = new URLSearchParams({ model: key, name });
  document.title = name;
  $("state").textContent = "";
  for (const id of ["work", "nav"]) $(id).hidden = false;
  $("drop").hidden = true;
  $("found").hidden = true;
  $("find").value = "";
  const loops = found.loops ? `${plural(found.loops, "loop")}${found.loop_kinds < found.loops ? ` of ${plural(found.loop_kinds, "kind")}` : ""}` : "no loops";
  const $banner = $("banner");
  $banner.querySelector("h1").textContent = `${name.split("/").at(-1)}: ${[loops, found.ifs && plural(found.ifs, "If"), found.sequences && plural(found.sequences, "sequence"), plural(found.nodes, "node")].filter(Boolean).join(", ")}`;
  $banner.querySelector(".sentence").textContent = [`opset ${found.opset}, IR version ${found.ir_version}`, found.functions && plural(found.functions, "function"), found.external_bytes && `${found.external_bytes.toLocaleString("en")} bytes in other files`, ...found.notes].filter(Boolean).join("; ");
  $("next").replaceChildren(found.groups.length ? "The rules are being asked …" : "Next: choose a target, or a command.");
  const signature = document.querySelector(".signature");
  signature.querySelector("summary").textContent = `${plural(found.inputs.length, "input")}, ${plural(found.outputs.length, "output")}`;
  signature.querySelector("div").replaceChildren(...["inputs", "outputs"].map((what) => el("div", {}, el("h3", {}, what), el("ul", { class: "plain" }, found[what].map((one) => el("li", {}, code(one)))))));
  const rows = found.groups.map((group, at) => laneOf(key, group, found.keys[at]));
  const graphs = found.graphs.map(([graph, path, nodes]) => graphLane(key, graph, path, nodes));
  $("lanes").replaceChildren(...rows.map((row) => row.element), ...graphs);
  document.querySelectorAll(".lane .open").forEach((one, number) => { one.tabIndex = number ? -1 : 0; });
  ready({ key, name });
  (rows[0]?.button ?? graphs[0].querySelector(".open")).click();
  for (const row of rows.slice(0, found.asked)) {
    if (rows.length > 1) await quiet();
    await row.asked().catch(() => {});
    if (own !== answering) return;
  }
  if (rows.length) await next(key, name, own);
}

async function next(key, name, own) {
  const advice = await query(`models/${key}/next`, { file: name }).catch(() => []);
  if (own !== answering) return;
  const parts = advice.slice(0, 2).map(({ command, effect }, number) => el("div", {}, number ? "or: " : "Next: ", code(command), effect ? ` (${effect})` : "", " ", copied(() => command), " ", setUp(command)));
  $("next").replaceChildren(...(parts.length ? parts : ["Next: choose a target, or a command."]));
}

// A lane that draws when it is opened for the first time.
function lane(title, chips, fill) {
  const id = `lane-${lane.count = (lane.count ?? 0) + 1}`;
  const sides = el("div", { class: "sides alone", id, hidden: true });
  let drawn = false;
  const head = el("button", { type: "button", class: "open", "aria-expanded": "false", "aria-controls": id, onclick: () => {
    const now = head.getAttribute("aria-expanded") !== "true";
    head.setAttribute("aria-expanded", now);
    sides.hidden = !now;
    if (now && !drawn) { drawn = true; fill(sides); }
  } }, title, chips);
  return { element: el("article", { class: "lane" }, el("h3", {}, head), sides), button: head, open: () => { if (sides.hidden) head.click(); return sides.querySelector(".holder"); } };
}

function graphLane(key, graph, path, nodes) {
  const one = lane([code(path), el("span", { class: "title" }, `${graph.includes("/") ? "" : plural(nodes, "node")}, loops and Ifs folded`)], "", (sides) => {
    const holder = el("div", { class: "holder" });
    sides.append(el("figure", {}, holder));
    show(holder, key, { graph }).catch((error) => holder.replaceChildren(error.message));
  });
  one.element.dataset.graph = graph;
  one.element.openLane = one.open;
  return one.element;
}

function laneOf(key, group, node) {
  const chips = el("span", { class: "chips" });
  const answers = el("div", { class: "answers", "aria-live": "polite" }, el("p", { class: "told" }, "The rules are being asked …"));
  const trips = group.trip_counts.length ? `${group.trip_counts.slice(0, 3).join(" or ")} iterations` : "";
  const title = [
    el("span", { class: "times" }, group.paths.length > 1 ? `${group.paths.length} ×` : ""), code(group.pattern),
    el("span", { class: "title" }, [`${group.op}-${group.version}`, trips, `${plural(group.nodes, "node")} inside`].filter(Boolean).join(", ")),
  ];
  title[1].className = "path";
  const one = lane(title, chips, (sides) => {
    const holder = el("div", { class: "holder" });
    sides.append(el("figure", {}, facts(group), holder), el("figure", { class: "rules" }, el("figcaption", {}, el("b", {}, "Rules"), "what each would do, and why not"), answers));
    sides.classList.remove("alone");
    show(holder, key, { graph: node.split("/").slice(0, -1).join("/"), at: node }).catch((error) => holder.replaceChildren(error.message));
    asked();
  });
  let answer = null;
  const asked = () => answer ??= ask(`models/${key}/answers?${new URLSearchParams({ node })}`).then((found) => {
    const [does, refuses] = ["rewrites", "refuses"].map((what) => found.filter((one) => one.outcome === what));
    chips.replaceChildren(
      ...does.slice(0, 3).map((one) => el("span", { class: "chip good" }, one.rule)), does.length > 3 ? el("span", { class: "chip good" }, `+${does.length - 3}`) : "",
      ...(does.length ? [] : [...new Set(refuses.map((one) => one.code))].slice(0, 3).map((one) => el("span", { class: "chip refused" }, one))),
    );
    answers.replaceChildren(found.length ? el("ol", { class: "steps" },
      does.map((one) => el("li", {}, el("b", {}, one.rule), ` would rewrite it: ${one.note}`)),
      refuses.map((one) => el("li", { class: "no" }, el("b", {}, one.rule), " refuses: ", ticks(one.sentence), " ", code(one.code)))) : el("p", { class: "told" }, "No rule has anything to do with it."));
  }).catch((error) => { answer = null; answers.replaceChildren(el("p", {}, error.message), button("Ask again", asked)); throw error; });
  return { ...one, asked };
}

function facts(group) {
  const rows = [["carries", group.carried], ["scans", group.scanned], ["collects", group.collected], ["reads", group.captured]].filter(([, own]) => own.length);
  const list = rows.map(([verb, own]) => el("li", {}, `${verb} `, own.slice(0, 6).flatMap((one, at) => [at ? ", " : "", code(one.name), ` ${one.type}`, one.reversed ? " reversed" : ""]), own.length > 6 ? ` and ${own.length - 6} more` : ""));
  const others = group.paths.length > 1 ? el("details", {}, el("summary", {}, `All ${group.paths.length}; the first one is drawn`), el("p", { class: "paths" }, group.paths.flatMap((path) => [code(path), " "]))) : "";
  return el("figcaption", {}, el("ul", { class: "plain" }, list, group.unreadable ? el("li", {}, group.unreadable) : ""), others);
}

const search = settled(async (isLatest, text) => {
  $("found").hidden = !text;
  if (!text) return;
  const { total, nodes } = await query(`models/${model}/nodes`, { text }).catch(() => ({ total: 0, nodes: [] }));
  if (!isLatest()) return;
  const row = (one) => el("li", {}, button([el("b", {}, one.op), " ", code(one.path)], () => go(one), { class: "hit" }));
  $("found").replaceChildren(
    el("p", { class: "told", role: "status" }, total ? `${plural(total, "node")}${total > nodes.length ? `, the first ${nodes.length} are listed` : ""}` : `No operator, path or value has “${text}” in it.`),
    el("ul", {}, nodes.map(row)),
  );
});

// Shows a node, with what is around it, in the lane of its main graph or function.
function go({ graph, name }) {
  const home = document.querySelector(`.lane[data-graph="${graph.split("/")[0]}"]`);
  const holder = home.openLane();
  show(holder, model, { graph, near: name }, name).then(() => details(model, graph, name, holder));
  home.scrollIntoView({ block: "start" });
}

$("find").addEventListener("input", (event) => search(event.target.value.trim()));
$("file").addEventListener("change", (event) => { if (event.target.files[0]) upload(event.target.files[0]); event.target.value = ""; });
$("file").addEventListener("focus", (event) => event.target.parentElement.classList.add("focused"));
$("file").addEventListener("blur", (event) => event.target.parentElement.classList.remove("focused"));
addEventListener("dragover", (event) => { event.preventDefault(); document.body.classList.add("dropping"); });
addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("dropping"); });
addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("dropping");
  if (event.dataTransfer.files[0]) upload(event.dataTransfer.files[0]);
});
addEventListener("keydown", (event) => {
  if (event.key === "/" && model && !event.target.matches("input, select, textarea")) { event.preventDefault(); $("find").focus(); }
  else if (event.key === "Escape" && event.target === $("find")) { $("find").value = ""; $("found").hidden = true; }
  else if (event.key === "Escape") close();
  else if (event.target.matches?.("#find, .hit") && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
    const hits = [...document.querySelectorAll(".hit")];
    const to = hits.indexOf(event.target) + (event.key === "ArrowDown" ? 1 : -1);
    event.preventDefault();
    (hits[to] ?? (to < 0 ? $("find") : event.target)).focus();
  }
});

// Who works elsewhere needs the details no more.
addEventListener("focusin", (event) => { if (event.target.closest("#target, #command, #runs")) $("details").hidden = true; });

starting.then((started) => {
  const kept = new URLSearchParams(location.hash.slice(1));
  if (kept.get("model")) open({ model: kept.get("model"), name: kept.get("name") });
  else if (started.given.length) open(started.given[0]);
}, failed);
