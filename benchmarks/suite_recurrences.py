"""Linear recurrences of published architectures as Scans, with mild inputs, a loop in float64, and
a model of nothing but what they need at least: the products of matrices of work in blocks; or what
each element needs, for all iterations at once, with no step from one to the next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, helper, numpy_helper

from benchmarks.suite import Arrays, model

Array = NDArray[np.float64]
#: Iterations in a block of the floor; the delta rule adds the products that correct a block.
_BLOCK = 32
#: How values are drawn: decays near 1, gates, rows that are normalised, parts of factors near 0.7,
#: rates of decay, and 1.
_DECAY, _GATE, _UNIT, _PART, _RATE, _ONE = "decay", "gate", "unit", "part", "rate", "one"


@dataclass(frozen=True)
class Step:
    """One iteration: the axes of what it reads, carries and returns, and its nodes.

    `H` heads of size `D`; `W` channels of `N` states. What is in `fixed` is the same in every
    iteration; `drawn` says how a value is drawn, where not as a normal one.
    """

    reads: Mapping[str, str]
    states: Mapping[str, str]
    returns: str
    nodes: str
    fixed: Mapping[str, str]
    drawn: Mapping[str, str]


@dataclass(frozen=True)
class Recurrence:
    """A model, its inputs, and the floor, what it needs at least, with inputs.

    `kind` is that of the thirteen that the geometric mean is about; "" for another one.
    """

    name: str
    original: ModelProto
    feeds: Arrays
    floor: tuple[ModelProto, Arrays]
    kind: str = ""


def cases(quick: bool = False) -> Iterator[Recurrence]:
    """Each architecture at its sizes: matrices first."""
    heads = ((32, 2, 8),) if quick else ((256, 4, 64), (256, 16, 128))
    for name, step in _MATRICES.items():
        for steps, count, wide in heads:
            sizes = {"H": count, "D": wide}
            said = f"{name}, {count} heads of {wide}, {steps} steps"
            floor = _products(steps, count, wide, "delta" in name)
            kind = f"{name} {wide}" if name == "GLA" else name
            yield Recurrence(said, *_model(step, steps, sizes), floor, kind * (name in _KINDS))
            if name == "delta rule":
                free = _model(step, steps, sizes, free=True)
                yield Recurrence(f"{said} of any number", *free, floor, f"{name} of any length")
    for name, step in _ELEMENTS.items():
        for wide in (8,) if quick else _WIDTHS[name]:
            steps, sizes = 32 if quick else 1024, {"W": wide, "N": 16}
            said = f"{name}, width {wide}, {steps} steps"
            made = _model(step, steps, sizes)
            yield Recurrence(said, *made, _at_once(*made), name * (name in _KINDS))


def short_cases(quick: bool = False) -> Iterator[Recurrence]:
    """Each architecture over a few iterations, whose number is fixed, or any."""
    for name, step in {**_MATRICES, **_ELEMENTS}.items():
        sizes = {"H": 4, "D": 64, "W": _WIDTHS.get(name, (0,))[0], "N": 16}
        for steps in (4,) if quick else (4, 16, 64):
            for free in (False, True):
                made = _model(step, steps, sizes, free=free)
                yield Recurrence(f"{name}, {steps} steps{' of any number' * free}", *made, made)


def exact(case: Recurrence) -> list[Array]:
    """What the outputs are, by a loop in float64."""
    graph = case.original.graph
    (scan,) = graph.node
    body = helper.get_node_attr_value(scan, "body")
    known = {one.name: numpy_helper.to_array(one).astype(np.float64) for one in graph.initializer}
    known |= {name: value.astype(np.float64) for name, value in case.feeds.items()}
    states = len(scan.output) - 1
    values = [known[name] for name in scan.input[:states]]
    rows = list[Array]()
    for step in zip(*(known[name] for name in scan.input[states:]), strict=True):
        inside = known | dict(zip((one.name for one in body.input), [*values, *step], strict=True))
        for node in body.node:
            inside[node.output[0]] = _OPERATORS[node.op_type](
                *(inside[name] for name in node.input), **_permutation(node)
            )
        *values, row = (inside[one.name] for one in body.output)
        rows.append(row)
    return [*values, np.stack(rows)]


def _permutation(node: NodeProto) -> dict[str, Any]:
    return {one.name: helper.get_attribute_value(one) for one in node.attribute}


_OPERATORS: Mapping[str, Any] = {
    "Abs": np.abs,
    "Add": np.add,
    "Div": np.divide,
    "Exp": np.exp,
    "Identity": np.array,
    "Log": np.log,
    "MatMul": np.matmul,
    "Max": np.maximum,
    "Mul": np.multiply,
    "Neg": np.negative,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Sub": np.subtract,
    "Transpose": lambda x, perm: np.transpose(x, perm),
}


def _model(
    step: Step, steps: int, sizes: Mapping[str, int], *, free: bool = False
) -> tuple[ModelProto, Arrays]:
    """A model, and inputs of `steps` iterations; `free`: it takes any number of them."""
    length = "T" if free else steps

    def shape(axes: str) -> tuple[int, ...]:
        return tuple(sizes.get(axis, 1) for axis in axes.split())

    def typed(kinds: Mapping[str, str], end: str, *leading: int | str) -> str:
        dims = {name: ",".join(map(str, (*leading, *shape(axes)))) for name, axes in kinds.items()}
        return ", ".join(f"float[{dims[name]}] {name}{end}" for name in dims)

    finals, states = ", ".join(step.states), ", ".join(f"{name}0" for name in step.states)
    text = f"""g ({typed(step.states, "0")}, {typed(step.reads, "s", length)})
        => ({typed(step.states, "")}, {typed({"ys": step.returns}, "", length)}) {{
        {finals}, ys = Scan <num_scan_inputs = {len(step.reads)}, body = step
            ({typed(step.states, "_in")}, {typed(step.reads, "")})
            => ({typed(step.states, "_out")}, {typed({"y": step.returns}, "")}) {{ {step.nodes} }}>
        ({states}, {", ".join(f"{name}s" for name in step.reads)}) }}"""
    draw = np.random.default_rng(0)

    def drawn(name: str, *leading: int) -> NDArray[np.generic]:
        axes = {**step.reads, **step.states, **step.fixed}[name]
        return _drawn(draw, (*leading, *shape(axes)), step.drawn.get(name, "")).astype(np.float32)

    feeds = {f"{name}0": np.zeros(shape(axes), np.float32) for name, axes in step.states.items()}
    feeds |= {f"{name}s": drawn(name, steps) for name in step.reads}
    return model(text, {name: drawn(name) for name in step.fixed}), feeds


def _drawn(draw: np.random.Generator, shape: Sequence[int], how: str) -> Array:
    normal = draw.standard_normal(shape)
    if how == _DECAY:
        return np.exp(-np.logaddexp(0, normal) / 16)
    if how == _GATE:
        return 1 / (1 + np.exp(-normal))
    if how in (_PART, _RATE, _ONE):
        return {_PART: 0.7, _RATE: -1.0, _ONE: 1.0}[how] * np.exp(-abs(normal) / 16 * (how != _ONE))
    if how == _UNIT:
        return normal / np.sqrt((normal**2).sum((-2, -1), keepdims=True))
    return normal / np.sqrt(shape[-2]) if len(shape) == 2 else normal


def _products(steps: int, heads: int, wide: int, delta: bool) -> tuple[ModelProto, Arrays]:
    """The products of each block with the state, which is read and written once a block."""
    blocks, length = max(1, steps // _BLOCK), min(_BLOCK, steps)
    rows, columns = f"{heads},{length},{wide}", f"{heads},{wide},{length}"
    state = f"float[{heads},{wide},{wide}]"
    before = (
        """B = MatMul (K, L)  U = MatMul (B, V)  P = MatMul (B, K)  R = MatMul (P, S_in)
        E = Sub (U, R)"""
        if delta
        else "E = Identity (V)"
    )
    text = f"""g ({state} S0, float[{blocks},{rows}] Ks, float[{blocks},{columns}] Ls,
        float[{blocks},{rows}] Vs) => ({state} S, float[{blocks},{rows}] ys) {{
        S, ys = Scan <num_scan_inputs = 3, body = block
            ({state} S_in, float[{rows}] K, float[{columns}] L, float[{rows}] V)
            => ({state} S_out, float[{rows}] y) {{
            {before}  A = MatMul (K, L)  a = MatMul (A, E)  b = MatMul (K, S_in)  y = Add (a, b)
            D = MatMul (L, E)  S_out = Add (S_in, D)
        }}> (S0, Ks, Ls, Vs) }}"""
    draw = np.random.default_rng(0)
    shapes = {"Ks": (length, wide), "Ls": (wide, length), "Vs": (length, wide)}
    feeds: dict[str, NDArray[np.generic]] = {
        name: (draw.standard_normal((blocks, heads, *shape)) / wide).astype(np.float32)
        for name, shape in shapes.items()
    }
    return model(text), {**feeds, "S0": np.zeros((heads, wide, wide), np.float32)}


def _at_once(original: ModelProto, feeds: Arrays) -> tuple[ModelProto, Arrays]:
    """The nodes of a step for all iterations at once, each of which starts from the first state:
    what is left of a recurrence where no iteration needs the one before."""
    (scan,) = original.graph.node
    body, made = helper.get_node_attr_value(scan, "body"), ModelProto()
    made.CopyFrom(original)
    states = len(scan.output) - 1
    inputs = zip((one.name for one in body.input), scan.input, strict=True)
    nodes = [helper.make_node("Identity", [outer], [name]) for name, outer in inputs]
    last = helper.make_node("Constant", [], ["last"], value_int=-1)
    ends = [
        helper.make_node("Gather", [one.name, "last"], [name], axis=0)
        for one, name in zip(body.output[:states], scan.output, strict=False)
    ]
    rows = helper.make_node("Identity", [body.output[-1].name], scan.output[states:])
    del made.graph.node[:]
    made.graph.node.extend([*nodes, *body.node, last, *ends, rows])
    return made, feeds


_ROWS = {"q": "H 1 D", "k": "H D 1", "v": "H 1 D"}
_STATE = {"S": "H D D"}
_ADDED = "kv = Mul (k, v)  S_out = Add (kept, kv)  y = MatMul (q, S_out)"
_CORRECTED = """t = Transpose <perm = [0, 2, 1]> (k)  old = MatMul (t, kept)  new = Sub (v, old)
    w = Mul (beta, new)  kw = Mul (k, w)  S_out = Add (kept, kw)  y = MatMul (q, S_out)"""
_MATRICES = {
    "GLA": Step(
        {**_ROWS, "a": "H D 1"}, _STATE, "H 1 D", f"kept = Mul (a, S_in)  {_ADDED}", {},
        {"k": _UNIT, "a": _DECAY},
    ),
    "RetNet": Step(
        _ROWS, _STATE, "H 1 D", f"kept = Mul (a, S_in)  {_ADDED}", {"a": "H 1 1"},
        {"k": _UNIT, "a": _DECAY},
    ),
    "Mamba-2": Step(
        {"x": "H D 1", "b": "1 1 D", "c": "D 1", "a": "H 1 1"}, _STATE, "H D 1",
        """kept = Mul (S_in, a)  xb = Mul (x, b)  S_out = Add (kept, xb)  y = MatMul (S_out, c)""",
        {}, {"a": _DECAY, "b": _UNIT, "c": _UNIT},
    ),
    "delta rule": Step(
        {**_ROWS, "beta": "H 1 1"}, _STATE, "H 1 D", f"kept = Identity (S_in)  {_CORRECTED}", {},
        {"k": _UNIT, "beta": _GATE},
    ),
    "gated delta rule": Step(
        {**_ROWS, "beta": "H 1 1", "a": "H 1 1"}, _STATE, "H 1 D",
        f"kept = Mul (a, S_in)  {_CORRECTED}", {}, {"k": _UNIT, "beta": _GATE, "a": _DECAY},
    ),
    "RWKV-6": Step(
        {**_ROWS, "a": "H D 1"}, _STATE, "H 1 D",
        """kv = Mul (k, v)  ukv = Mul (u, kv)  now = Add (S_in, ukv)  y = MatMul (q, now)
        kept = Mul (a, S_in)  S_out = Add (kept, kv)""",
        {"u": "H D 1"}, {"k": _UNIT, "a": _DECAY},
    ),
    "mLSTM": Step(
        {**_ROWS, "i": "H 1 1", "f": "H 1 1"}, {"S": "H D D", "n": "H D 1", "m": "H 1 1"}, "H 1 D",
        """forget = Mul (f, f)  log = Neg (forget)  fm = Add (log, m_in)  m_out = Max (fm, i)
        lower = Sub (fm, m_out)  a = Exp (lower)  over = Sub (i, m_out)  e = Exp (over)
        ek = Mul (e, k)  kept = Mul (a, S_in)  ekv = Mul (ek, v)  S_out = Add (kept, ekv)
        an = Mul (a, n_in)  n_out = Add (an, ek)  read = MatMul (q, S_out)
        weight = MatMul (q, n_out)  size = Abs (weight)  minus = Neg (m_out)  least = Exp (minus)
        most = Max (size, least)  y = Div (read, most)""",
        {}, {"k": _UNIT, "f": _GATE},
    ),
}  # fmt: skip
_ELEMENTS = {
    "moving average": Step(
        {"a": "W", "b": "W"}, {"h": "W"}, "W",
        "ah = Mul (a, h_in)  h_out = Add (ah, b)  y = Identity (h_out)", {}, {"a": _DECAY},
    ),
    "HGRN": Step(
        {"f": "W", "x": "W"}, {"h": "W"}, "W",
        """fh = Mul (f, h_in)  rest = Sub (one, f)  new = Mul (rest, x)  h_out = Add (fh, new)
        y = Identity (h_out)""",
        {"one": ""}, {"f": _GATE, "one": _ONE},
    ),
    "minGRU": Step(
        {"x": "1 W"}, {"h": "1 W"}, "1 W",
        """xz = MatMul (x, Z)  z = Sigmoid (xz)  new = MatMul (x, C)  keep = Sub (one, z)
        kh = Mul (keep, h_in)  zn = Mul (z, new)  h_out = Add (kh, zn)  y = Identity (h_out)""",
        {"Z": "W W", "C": "W W", "one": ""}, {"one": _ONE},
    ),
    "LRU": Step(
        {"b": "W", "c": "W"}, {"re": "W", "im": "W"}, "W",
        """ar = Mul (a, re_in)  wi = Mul (w, im_in)  ai = Mul (a, im_in)  wr = Mul (w, re_in)
        r = Sub (ar, wi)  re_out = Add (r, b)  i = Add (ai, wr)  im_out = Add (i, c)
        y = Add (re_out, im_out)""",
        {"a": "W", "w": "W"}, {"a": _PART, "w": _PART},
    ),
    "log-sum-exp": Step(
        {"x": "W"}, {"m": "W", "s": "W"}, "W",
        """m_out = Max (m_in, x)  lower = Sub (m_in, m_out)  a = Exp (lower)  over = Sub (x, m_out)
        e = Exp (over)  kept = Mul (s_in, a)  s_out = Add (kept, e)  log = Log (s_out)
        y = Add (m_out, log)""",
        {}, {},
    ),
    "log-add-exp": Step(
        {"x": "W"}, {"h": "W"}, "W",
        """m = Max (h_in, x)  lower = Sub (h_in, m)  a = Exp (lower)  over = Sub (x, m)
        e = Exp (over)  sum = Add (a, e)  log = Log (sum)  h_out = Add (m, log)
        y = Identity (h_out)""",
        {}, {},
    ),
    "Mamba": Step(
        {"dt": "W 1", "x": "W 1", "b": "1 N", "c": "N 1"}, {"S": "W N"}, "W 1",
        """dtr = Mul (dt, rates)  a = Exp (dtr)  dtx = Mul (dt, x)  xb = Mul (dtx, b)
        kept = Mul (a, S_in)  S_out = Add (kept, xb)  y = MatMul (S_out, c)""",
        {"rates": "W N"}, {"dt": _GATE, "rates": _RATE},
    ),
}  # fmt: skip
_WIDTHS = {
    "moving average": (64, 256, 1024),
    "HGRN": (64, 512),
    "minGRU": (64, 256),
    "LRU": (64, 256),
    "log-sum-exp": (64, 256),
    "log-add-exp": (64, 256),
    "Mamba": (64, 512),
}
#: Those of the geometric mean; GLA counts twice, by width, and the delta rule by its length.
_KINDS = (
    *("GLA", "RetNet", "delta rule", "gated delta rule", "RWKV-6", "mLSTM"),
    *("moving average", "HGRN", "minGRU", "log-sum-exp", "Mamba"),
)
