// Draws the graphs of lanes, each when it is opened and seen.
"use strict";
const lanes = (() => {
  const NS = "http://www.w3.org/2000/svg";
  const GAP = 9; // between arrows back
  const PLAIN = { node: 0, state: 12, scanned: 12, collected: 12, iteration: 12, input: 12, result: 12 };

  const make = (name, attributes, parent, text) => {
    const element = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    parent?.append(element);
    return element;
  };
  const trimmed = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);

  function layout({ marks, arrows, boxes }) {
    const graph = new dagre.graphlib.Graph({ compound: true, multigraph: true });
    graph.setGraph({ ranksep: 22, nodesep: 14, edgesep: 8, marginx: 6, marginy: 14 });
    boxes.forEach((_, number) => graph.setNode("b" + number, {}));
    boxes.forEach(([, parent], number) => { if (parent >= 0) graph.setParent("b" + number, "b" + parent); });
    marks.forEach(([kind, label, name, box], id) => {
      const texts = kind === "node" ? [trimmed(label, 24), trimmed(name, 26)] : [trimmed(name, 24)];
      const room = kind === "node" ? 30 : 22;
      const width = Math.max(texts[0].length * 7.2 + room, (texts[1]?.length ?? 0) * 5.9 + room, 44);
      graph.setNode(id, { texts, width, height: kind === "node" ? 36 : 22 });
      if (box >= 0) graph.setParent(id, "b" + box);
    });
    arrows.forEach(([source, target, back], id) => {
      if (!back) graph.setEdge(source, target, {}, "" + id);
    });
    dagre.layout(graph);
    // arrows back run beside their box, on the nearer side: the layout knows nothing of them, so
    // all that is beyond moves away
    const rooms = boxes.map(() => ({ left: 0, right: 0 }));
    const sides = {};
    arrows.forEach(([source, target, back], id) => {
      if (!back) return;
      const box = marks[target][3];
      sides[id] = graph.node(source).x + graph.node(target).x < 2 * graph.node("b" + box).x ? "left" : "right";
      rooms[box][sides[id]] += rooms[box][sides[id]] ? GAP : GAP + 8;
    });
    const points = [...graph.nodes().map((id) => graph.node(id)), ...graph.edges().flatMap((edge) => graph.edge(edge).points)];
    const edges = boxes.map((_, number) => graph.node("b" + number))
      .map((box) => [box.x - (box.width ?? 0) / 2, box.x + (box.width ?? 0) / 2]);
    const moved = (x) => rooms.reduce((sum, room, number) =>
      sum + (x > edges[number][0] ? room.left : 0) + (x > edges[number][1] ? room.right : 0), x);
    for (const point of points) point.x = moved(point.x);
    boxes.forEach((_, number) => {
      const inner = boxes.some(([, parent]) => parent === number) ? 14 : 0; // around a box in it
      const box = graph.node("b" + number);
      box.from = moved(edges[number][0]) - inner / 2;
      box.to = moved(edges[number][1]) + rooms[number].right + inner / 2;
      box.top = box.y - box.height / 2 - 8 - inner;
      box.bottom = box.y + box.height / 2 + 8 + inner / 2;
    });
    graph.graph().width += rooms.reduce((sum, room) => sum + room.left + room.right, 0);
    return { graph, rooms, sides };
  }

  const curve = (points) => {
    let path = `M${points[0].x},${points[0].y}`;
    for (let i = 1; i < points.length - 1; i++) {
      const [here, next] = [points[i], points[i + 1]];
      const last = i === points.length - 2;
      const [x, y] = last ? [next.x, next.y] : [(here.x + next.x) / 2, (here.y + next.y) / 2];
      path += `Q${here.x},${here.y} ${x},${y}`;
    }
    return points.length === 2 ? path + `L${points[1].x},${points[1].y}` : path;
  };

  function draw(holder, drawing) {
    const { graph, rooms, sides } = layout(drawing);
    const { marks, arrows, boxes } = drawing;
    const size = graph.graph();
    const [width, height] = [Math.max(size.width, 120), size.height + 26];
    const svg = make("svg", { viewBox: `0 -20 ${width} ${height}`, width, height, role: "img" });
    svg.setAttribute("aria-label", `${holder.dataset.label}. ${marks.filter((m) => m[0] === "node").length} nodes`);
    svg.style.minInlineSize = `${Math.min(width, Math.max(width * 0.55, 200))}px`;
    boxes.forEach(([, , loop], number) => {
      const box = graph.node("b" + number);
      if (!box?.width) return;
      make("rect", { class: loop ? "box" : "box branch", x: box.from, y: box.top, width: box.to - box.from, height: box.bottom - box.top, rx: 12 }, svg);
    });
    for (const edge of graph.edges()) {
      const path = make("path", { class: "edge", d: curve(graph.edge(edge).points) }, svg);
      path.dataset.ends = `${edge.v} ${edge.w}`;
      arrowhead(svg, graph.edge(edge).points.slice(-2), "edgehead");
    }
    boxes.forEach(([title], number) => {
      const box = graph.node("b" + number);
      if (box?.width && holder.dataset.side === "after") make("text", { class: "boxtitle", x: box.from + 10, y: box.top - 6 }, svg, trimmed(title, 60));
    });
    const used = {};
    for (const [id, side] of Object.entries(sides)) {
      const [source, target] = arrows[id];
      const [from, to, number] = [graph.node(source), graph.node(target), marks[target][3]];
      const box = graph.node("b" + number);
      const lane = (used[side + number] = (used[side + number] ?? 0) + 1);
      const way = side === "left" ? -1 : 1;
      const x = way < 0 ? box.from + rooms[number].left - lane * GAP : box.to - rooms[number].right + lane * GAP;
      const r = 6;
      const [x0, x1] = [from.x + (way * from.width) / 4, to.x + (way * to.width) / 4];
      const [y0, y1] = [from.y + 23 + 2 * lane, to.y - 23 - 2 * lane]; // between two ranks
      make("path", {
        class: "back",
        d: `M${x0},${from.y + from.height / 2}V${y0 - r}Q${x0},${y0} ${x0 + way * r},${y0}H${x - way * r}Q${x},${y0} ${x},${y0 - r}`
          + `V${y1 + r}Q${x},${y1} ${x - way * r},${y1}H${x1 + way * r}Q${x1},${y1} ${x1},${y1 + r}V${to.y - to.height / 2 - 5}`,
      }, svg);
      arrowhead(svg, [{ x: x1, y: y1 }, { x: x1, y: to.y - to.height / 2 }], "backhead");
    }
    marks.forEach(([kind, , name, , twin, moved], id) => {
      const { x, y, width: w, height: h, texts } = graph.node(id);
      const group = make("g", { class: `mark ${kind}${moved ? " moved" : ""}`, transform: `translate(${x - w / 2},${y - h / 2})` }, svg);
      if (twin >= 0) group.dataset.twin = twin;
      make("title", {}, group, [marks[id][1], name, kind === "node" ? (moved ? "moved out of the loop" : "") : kind].filter(Boolean).join("\n"));
      make("rect", { width: w, height: h, rx: PLAIN[kind] || 6 }, group);
      if (twin >= 0 && kind === "node") {
        const bar = make("rect", { class: "twinbar", x: 4, y: 6, width: 3, height: h - 12, rx: 1.5 }, group);
        bar.style.setProperty("--hue", (twin * 137.5) % 360);
      }
      const middle = w / 2 + (kind === "node" ? 3 : 0);
      make("text", { class: "op", x: middle, y: kind === "node" ? 15 : h / 2 + 4 }, group, texts[0]);
      if (texts[1] !== undefined) make("text", { class: "name", x: middle, y: 28 }, group, texts[1]);
    });
    holder.replaceChildren(svg);
    zoomable(holder, svg, width);
    return width;
  }

  // A graph fits the width of the page where it can be read so; else it scrolls. Buttons, the keys
  // + - 0, and the wheel with Control zoom; the pointer drags.
  function zoomable(holder, svg, width) {
    const zoom = (factor, x = holder.clientWidth / 2, y = holder.clientHeight / 2) => {
      const before = svg.getBoundingClientRect().width;
      const after = Math.min(4 * width, Math.max(0.2 * width, before * factor));
      holder.classList.toggle("zoomed", factor > 0);
      svg.style.inlineSize = factor ? `${after}px` : "";
      svg.style.minInlineSize = factor ? "" : fitting;
      const now = svg.getBoundingClientRect().width / before;
      holder.scrollLeft = (holder.scrollLeft + x) * now - x;
      holder.scrollTop = (holder.scrollTop + y) * now - y;
    };
    const fitting = svg.style.minInlineSize;
    const bar = document.createElement("div");
    bar.className = "zoom";
    for (const [sign, label, factor] of [["−", "Zoom out", 1 / 1.3], ["+", "Zoom in", 1.3], ["fit", "Fit to the width", 0]]) {
      const button = document.createElement("button");
      Object.assign(button, { type: "button", textContent: sign, title: label, ariaLabel: label, onclick: () => zoom(factor) });
      bar.append(button);
    }
    holder.before(bar);
    Object.assign(holder, { tabIndex: 0, role: "group", ariaLabel: "Graph; + and - zoom, 0 fits it to the width, arrows scroll" });
    holder.addEventListener("keydown", ({ key, ctrlKey, metaKey }) => {
      const factor = { "+": 1.3, "=": 1.3, "-": 1 / 1.3, 0: 0 }[key];
      if (factor !== undefined && !ctrlKey && !metaKey) zoom(factor);
    });
    holder.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      const { left, top } = holder.getBoundingClientRect();
      zoom(event.deltaY < 0 ? 1.15 : 1 / 1.15, event.clientX - left, event.clientY - top);
    }, { passive: false });
    holder.addEventListener("pointermove", ({ buttons, pointerType, movementX, movementY }) => {
      if (buttons === 1 && pointerType === "mouse") holder.scrollBy(-movementX, -movementY);
    });
  }

  function arrowhead(svg, [from, to], name) {
    const angle = (Math.atan2(to.y - from.y, to.x - from.x) * 180) / Math.PI;
    make("path", { class: name, d: "M0,0L-7,-3.2L-7,3.2Z", transform: `translate(${to.x},${to.y}) rotate(${angle})` }, svg);
  }

  function fill(sides) {
    if (sides.dataset.drawn) return;
    sides.dataset.drawn = "yes";
    const data = JSON.parse(sides.querySelector(".drawing").textContent);
    const widths = [...sides.querySelectorAll(".graph")].map((holder) => draw(holder, data[holder.dataset.side]));
    if (widths.length === 2) { // the wider drawing gets more of the room
      const share = Math.min(0.7, Math.max(0.3, widths[0] / (widths[0] + widths[1])));
      sides.style.setProperty("--share", `minmax(0, ${share}fr) minmax(0, ${1 - share}fr)`);
    }
    const lit = (twin) => {
      for (const mark of sides.querySelectorAll(".mark")) {
        mark.classList.toggle("lit", twin !== undefined && mark.dataset.twin === twin);
      }
    };
    sides.addEventListener("pointerover", (event) => lit(event.target.closest?.(".mark")?.dataset.twin));
    sides.addEventListener("pointerleave", () => lit(undefined));
  }

  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (isIntersecting) { seen.unobserve(target); fill(target); }
    }
  }, { rootMargin: "300px" });

  function toggle(button, open = button.getAttribute("aria-expanded") !== "true") {
    const sides = document.getElementById(button.getAttribute("aria-controls"));
    button.setAttribute("aria-expanded", open);
    sides.hidden = !open;
    if (open) seen.observe(sides);
  }

  const buttons = [...document.querySelectorAll(".lane .open")];
  buttons.forEach((button, number) => {
    button.tabIndex = number ? -1 : 0; // one stop of Tab; arrow keys from there
    button.addEventListener("click", () => toggle(button));
  });
  const FEW = 4;
  const done = buttons.filter((button) => button.querySelector(".chip"));
  (done.length ? done : buttons).slice(0, FEW).forEach((button) => toggle(button, true));
  addEventListener("beforeprint", () => buttons.slice(0, 50).forEach((button) => {
    toggle(button, true);
    fill(document.getElementById(button.getAttribute("aria-controls")));
  }));
  return { toggle, buttons, draw };
})();
