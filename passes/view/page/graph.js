// Graphs that are walked through by arrow keys, and the details of a node.
import { $, button, code, el, plural, query } from "./api.js";

// Draws a graph into a holder. `ask` are the parameters of its drawing, `focus` is a value to show.
export async function show(holder, model, ask, focus) {
  const drawing = await query(`models/${model}/drawing`, ask);
  const graph = el("div", { class: "graph", "data-side": "after", "data-label": drawing.path });
  const cut = el("p", { class: "cut" }, drawing.cut ? `${drawing.cut}.${ask.near ? "" : " Find a node to see what is around it."}` : "");
  holder.replaceChildren(ask.at ? "" : el("p", { class: "told" }, code(drawing.path)), graph, cut);
  if (!drawing.marks.length) { graph.replaceChildren(el("p", { class: "told" }, "This graph has no nodes.")); return; }
  lanes.draw(graph, drawing);
  const svg = graph.querySelector("svg");
  graph.scrollLeft = (graph.scrollWidth - graph.clientWidth) / 2;
  walked(svg, drawing, (mark) => details(model, ask.at || ask.graph, mark[2], holder));
  if (focus) {
    const at = drawing.marks.findIndex(([kind, , name]) => name === focus && kind === "node");
    const one = svg.querySelectorAll(".mark")[Math.max(at, 0)];
    one.classList.add("lit");
    one.focus({ preventScroll: true });
    centred(graph, one);
  }
}

function centred(graph, mark) {
  const [inner, outer] = [mark.getBoundingClientRect(), graph.getBoundingClientRect()];
  graph.scrollBy(inner.x + inner.width / 2 - outer.x - outer.width / 2, inner.y + inner.height / 2 - outer.y - outer.height / 2);
}

// One stop of Tab: arrows lead to what reads a value, to what makes it, and to its neighbours.
function walked(svg, { marks, arrows }, open) {
  const all = [...svg.querySelectorAll(".mark")];
  svg.setAttribute("role", "group");
  const graph = svg.parentElement;
  let pressed = [0, 0]; // a click that ends elsewhere dragged the graph
  graph.addEventListener("pointerdown", ({ clientX, clientY }) => { pressed = [clientX, clientY]; });
  const isClick = ({ clientX, clientY }) => Math.hypot(clientX - pressed[0], clientY - pressed[1]) < 5;
  const places = all.map((one) => {
    const { e, f } = one.transform.baseVal.consolidate().matrix;
    const { width, height } = one.querySelector("rect").getBBox();
    return [e + width / 2, f + height / 2];
  });
  all.forEach((one, number) => {
    const [kind, label, name] = marks[number];
    one.setAttribute("role", "button");
    one.setAttribute("aria-label", kind === "node" ? `${label} ${name}` : `${kind} ${name}`);
    one.tabIndex = number ? -1 : 0;
    one.addEventListener("click", (event) => { if (isClick(event)) { move(number); open(marks[number]); } });
  });
  const move = (number) => {
    for (const one of all) one.tabIndex = -1;
    all[number].tabIndex = 0;
    all[number].focus({ preventScroll: true });
    const [inner, outer] = [all[number].getBoundingClientRect(), graph.getBoundingClientRect()];
    if (inner.left < outer.left || inner.right > outer.right || inner.top < outer.top || inner.bottom > outer.bottom) centred(graph, all[number]);
    all[number].scrollIntoView({ block: "nearest", inline: "nearest" });
  };
  const near = (from, [dx, dy]) => {
    const along = (one) => (places[one][0] - places[from][0]) * dx + (places[one][1] - places[from][1]) * dy;
    const aside = (one) => Math.abs((places[one][0] - places[from][0]) * dy) + Math.abs((places[one][1] - places[from][1]) * dx);
    const linked = (one) => arrows.some(([a, b, back]) => !back && ((a === from && b === one) || (b === from && a === one)));
    const cost = (one) => along(one) + 2 * aside(one) - (dy && linked(one) ? 1e4 : 0);
    return all.map((_, number) => number).filter((one) => along(one) > 4).sort((a, b) => cost(a) - cost(b))[0];
  };
  const WAYS = { ArrowDown: [0, 1], ArrowUp: [0, -1], ArrowRight: [1, 0], ArrowLeft: [-1, 0] };
  svg.addEventListener("keydown", (event) => {
    const from = all.indexOf(event.target);
    if (from < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    if (WAYS[event.key]) { const to = near(from, WAYS[event.key]); if (to !== undefined) move(to); }
    else if (event.key === "Home") move(0);
    else if (event.key === "End") move(all.length - 1);
    else if (event.key === "Enter" || event.key === " ") open(marks[from]);
    else return;
    event.preventDefault();
  });
}

let opener = null; // what had the focus before the details

export async function details(model, graph, name, holder) {
  const panel = $("details");
  if (!panel.contains(document.activeElement)) opener = document.activeElement;
  let found;
  try {
    found = await query(`models/${model}/value`, { graph, name });
  } catch (error) {
    panel.replaceChildren(head("A value"), el("p", {}, error.message));
    panel.hidden = false;
    return;
  }
  const { node } = found;
  const parts = [head(node ? node.op : found.weights ? "Constant" : "Value"), el("p", { class: "told" }, code(node ? node.path : found.in))];
  if (!node) parts.push(values("", [found]));
  if (node) {
    parts.push(node.doc ? el("p", {}, node.doc) : "", values("Inputs", node.inputs), values("Outputs", node.outputs));
    if (node.attributes.length) parts.push(el("h3", {}, "Attributes"), el("ul", { class: "plain" }, node.attributes.map((one) => el("li", {}, code(one)))));
  }
  parts.push(el("p", { class: "told" }, `read by ${plural(found.readers, "node")}`));
  const into = (ask, focus) => () => { show(holder, model, ask, focus); holder.scrollIntoView({ block: "nearest" }); };
  const ways = [button("Show what is around it", into({ graph: found.graph, near: name }, name))];
  if (node?.holds) ways.push(button("Show it with its bodies", into({ graph: found.graph, at: node.key })));
  for (const [body, key, nodes] of node?.bodies ?? []) ways.push(button(`Open ${body} (${plural(nodes, "node")})`, into({ graph: key })));
  if (found.graph.includes("/")) ways.push(button("Show the graph around", into({ graph: found.graph.split("/").slice(0, -2).join("/") })));
  panel.replaceChildren(...parts.filter(Boolean), el("div", { class: "ways-on" }, ways));
  panel.hidden = false;
  panel.focus({ preventScroll: true });
}

function head(title) {
  return el("div", { class: "head" }, el("h2", {}, title), button("Close", close, { "aria-label": "Close the details" }));
}

export function close() {
  if ($("details").hidden) return false;
  $("details").hidden = true;
  opener?.focus?.({ preventScroll: true });
  return true;
}

function values(title, own) {
  const row = (one) => el("li", {}, code(one.name || "(left out)"), " ", el("span", { class: "told" }, one.type), one.weights ? el("div", { class: "weights" }, one.weights) : "");
  return el("div", {}, title ? el("h3", {}, title) : "", el("ul", { class: "plain" }, own.map(row)));
}
