"""RNN, GRU and LSTM cells in the loops that exporters write them in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto

from benchmarks.cells import CELLS, scan_8
from benchmarks.suite import Arrays, Case, drawn, model

_MATMUL = "a = MatMul (x_t, W)"


@dataclass(frozen=True)
class _Sizes:
    batch: int
    width: int
    steps: int


def cases(quick: bool) -> Iterator[Case]:
    """Each cell as a Scan-8, a Scan and a Loop, and one LSTM in the branch of an If."""
    for cell in CELLS:
        yield _scan_8(cell, _Sizes(2, 4, 5) if quick else _Sizes(16, 256, 128))
    sizes = _Sizes(2, 4, 5) if quick else _Sizes(4, 256, 128)
    for cell in CELLS:
        body, feeds = _Cell(cell, sizes), _feeds(cell, sizes)
        others = {"its own op": body.own_op()}
        for name, original in (("Scan", body.scan()), ("Loop", body.loop())):
            yield Case(f"{cell}-{sizes.width}, {name}", original, feeds, body.by_hand(), others)
    lstm = _Cell("LSTM", sizes)
    feeds = {**_feeds("LSTM", sizes), "on": np.array(True)}
    hand, scan = lstm.in_branch(lstm.hand_nodes()), lstm.in_branch(lstm.scan_nodes())
    branch = hand.graph.node[0].attribute[0].g  # where onnxruntime finds the weights
    branch.initializer.extend(hand.graph.initializer)
    del hand.graph.initializer[:]
    yield Case(f"LSTM-{sizes.width}, Scan in an If", scan, feeds, hand)


def _scan_8(cell: str, sizes: _Sizes) -> Case:
    """A Scan-8, batch first: by hand the time comes first, as the Scan wants it."""
    time_first = _feeds(cell, sizes)
    feeds = {**time_first, "x": np.ascontiguousarray(time_first["x"].swapaxes(0, 1))}
    body = _Cell(cell, sizes, x="columns", y="found")
    width, states = sizes.width, CELLS[cell][0]
    finals = ", ".join(f"float[B,{width}] {name}T" for name in states)
    heads = ", ".join(f"float[B,{width}] {name}0" for name in states)
    kind = f"float[B,T,{width}]"

    def batch_first(nodes: str) -> ModelProto:
        text = f"""cell ({heads}, {kind} x) => ({finals}, {kind} y) {{
            columns = Transpose <perm = [1, 0, 2]> (x) {nodes}
            y = Transpose <perm = [1, 0, 2]> (found) }}"""
        return model(text, body.weights)

    return Case(
        f"{cell}-{width}, Scan-8",
        scan_8(cell, width, ragged=False),
        feeds,
        batch_first(body.hand_nodes()),
        {"its own op": batch_first(body.own_op_nodes())},
    )


class _Cell:
    """One cell, time first, in each of the forms; it reads `x` and collects `y`."""

    def __init__(self, cell: str, sizes: _Sizes, x: str = "x", y: str = "y") -> None:
        self.cell, self.x, self.y = cell, x, y
        self.states, self.gates, nodes = CELLS[cell]
        self.nodes = nodes.format(axis=1, count=f", num_outputs = {self.gates}")
        self.sizes = sizes
        self.weights = _weights(sizes.width, self.gates)

    def scan(self) -> ModelProto:
        return self._model(self.scan_nodes())

    def by_hand(self) -> ModelProto:
        return self._model(self.hand_nodes())

    def own_op(self) -> ModelProto:
        return self._model(self.own_op_nodes())

    def loop(self) -> ModelProto:
        """The rows read by the iteration number."""
        initials, outputs = self._names("0"), self._names("T")
        kind = f"float[B,{self.sizes.width}]"
        carried = ", ".join(f"{kind} {name}_in" for name in self.states)
        after = ", ".join(f"{kind} {name}_out" for name in self.states)
        return self._model(f"""shape = Shape <start = 0, end = 1> (x)
            axis = Constant <value = int64[1] {{0}}> ()
            trips = Squeeze (shape, axis)  yes = Constant <value = bool {{1}}> ()
            {outputs}, y = Loop <body = step (int64 now, bool go, {carried})
                => (bool on, {after}, {kind} y_t) {{
                on = Identity (go)  x_t = Gather (x, now)  {self.nodes}  y_t = Identity (h_out)
            }}> (trips, yes, {initials})""")

    def scan_nodes(self) -> str:
        """The cell as one Scan over time."""
        return self._scan(self.nodes, self.sizes.width, self.x)

    def hand_nodes(self) -> str:
        """What reads the inputs only runs in front, as one MatMul."""
        wide = self.sizes.width * self.gates
        step = self.nodes.replace(_MATMUL, "")
        for gone, new in (("aa = Add (a, bias)", ""), ("(aa)", "(x_t)"), ("d = Add (c, bias)", "")):
            step = step.replace(gone, new)
        step = step.replace("t = Add (s, bias)", "").replace("(d)", "(c)")
        step = step.replace("Add (a, b)", "Add (x_t, b)")
        if self.cell == "LSTM":
            step = step.replace("(t)", "(s)")
        return f"xw = MatMul ({self.x}, W)  xb = Add (xw, bias)  {self._scan(step, wide, 'xb')}"

    def own_op_nodes(self) -> str:
        """The operator of ONNX for the cell; its weights are rearranged when they are loaded."""
        initials = "".join(f"{name}s = Unsqueeze ({name}0, first)  " for name in self.states)
        ends = "  ".join(f"{name}T = Squeeze ({name}E, first)" for name in self.states)
        extra = ", linear_before_reset = 1" if self.cell == "GRU" else ""
        c0 = ", cs" if self.cell == "LSTM" else ""
        return f"""first = Constant <value = int64[1] {{0}}> ()
            second = Constant <value = int64[1] {{1}}> ()
            Wt = Transpose (W)  Rt = Transpose (R)
            Wo = Unsqueeze (Wt, first)  Ro = Unsqueeze (Rt, first)
            nought = Sub (bias, bias)  both = Concat <axis = 0> (bias, nought)
            Bo = Unsqueeze (both, first)  {initials}
            yd, {", ".join(f"{name}E" for name in self.states)} =
                {self.cell} <hidden_size = {self.sizes.width}{extra}>
                    ({self.x}, Wo, Ro, Bo, "", hs{c0})
            {self.y} = Squeeze (yd, second)  {ends}"""

    def in_branch(self, nodes: str) -> ModelProto:
        """The cell if `on`, else nothing but the initial states, spread."""
        width = self.sizes.width
        outs = ", ".join(f"float[B,{width}] {name}T" for name in self.states)
        idle = "".join(f"{name}R = Identity ({name}0)  " for name in self.states)
        idle_outs = ", ".join(f"float[B,{width}] {name}R" for name in self.states)
        finals = ", ".join(f"float[B,{width}] {name}F" for name in self.states)
        heads = ", ".join(f"float[B,{width}] {name}0" for name in self.states)
        ends = ", ".join(f"{name}F" for name in self.states)
        kind = f"float[T,B,{width}]"
        return model(f"""cell ({heads}, {kind} x, bool on) => ({finals}, {kind} yF) {{
            {ends}, yF = If (on) <
                then_branch = run () => ({outs}, {kind} y) {{ {nodes} }},
                else_branch = idle () => ({idle_outs}, {kind} yR) {{ {idle} yR = Tanh (x) }}> }}""",
            self.weights)  # fmt: skip

    def _scan(self, nodes: str, wide: int, scanned: str) -> str:
        kind = f"float[B,{self.sizes.width}]"
        carried = ", ".join(f"{kind} {name}_in" for name in self.states)
        after = ", ".join(f"{kind} {name}_out" for name in self.states)
        return f"""{self._names("T")}, {self.y} = Scan <num_scan_inputs = 1, body = step
            ({carried}, float[B,{wide}] x_t) => ({after}, {kind} y_t) {{
            {nodes}  y_t = Identity (h_out) }}> ({self._names("0")}, {scanned})"""

    def _names(self, suffix: str) -> str:
        return ", ".join(f"{name}{suffix}" for name in self.states)

    def _model(self, nodes: str) -> ModelProto:
        width = self.sizes.width
        heads = ", ".join(f"float[B,{width}] {name}0" for name in self.states)
        finals = ", ".join(f"float[B,{width}] {name}T" for name in self.states)
        kind = f"float[T,B,{width}]"
        text = f"cell ({heads}, {kind} x) => ({finals}, {kind} y) {{ {nodes} }}"
        return model(text, self.weights)


def _weights(width: int, gates: int) -> dict[str, NDArray[np.generic]]:
    """Those of benchmarks/cells.py, for the outputs are compared."""
    draw = np.random.default_rng(0)
    wide = width * gates
    shapes = {"W": (width, wide), "R": (width, wide), "bias": (wide,)}
    return {
        name: (draw.standard_normal(shape) / np.sqrt(width)).astype(np.float32)
        for name, shape in shapes.items()
    }


def _feeds(cell: str, sizes: _Sizes) -> Arrays:
    states = {f"{name}0": (sizes.batch, sizes.width) for name in CELLS[cell][0]}
    return drawn(1, **states, x=(sizes.steps, sizes.batch, sizes.width))
