"""Loops that need not be any: distances, frames, regions, rows of a batch; and what never changes
in one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.suite import Arrays, Case, drawn, model

_TRIPS = """shape = Shape <start = 0, end = 1> (x)  zero = Constant <value_ints = [0]> ()
    trips = Squeeze (shape, zero)  yes = Constant <value = bool {1}> ()"""


def cases(quick: bool) -> Iterator[Case]:
    """The maps, then the invariants."""
    for queries in (1, 4) if quick else (1, 500):
        yield from _neighbours(queries, *((5, 3) if quick else (1_000, 16)))
    yield _frames(4, 3, 5) if quick else _frames(256, 256, 512)
    yield _regions(3, 4, 5) if quick else _regions(64, 32, 7)
    yield _rows(2, 3, 4) if quick else _rows(16, 64, 128)
    yield _spreading(5, 2, 3) if quick else _spreading(400, 10, 30)


def _neighbours(queries: int, known: int, width: int) -> Iterator[Case]:
    """The pairwise distances of skl2onnx, whose Scan carries the other matrix along."""
    norms = {
        "Euclid": "r = ReduceSumSquare <axes = [1], keepdims = 0> (d)",
        "Manhattan": "a = Abs (d)  r = ReduceSum <keepdims = 0> (a, axis)",
    }
    head = f"knn (float[N,{width}] x) => (float[N,5] near, int64[N,5] y)"
    best = "near, y = TopK <largest = 0, sorted = 1> (dt, five)"
    weights: dict[str, np.ndarray] = {
        **drawn(0, known=(known, width)), "five": np.array([5]), "axis": np.array([1]),
    }  # fmt: skip
    for name, norm in norms.items():
        # the queries are carried along, the known points scanned: so it is exported
        original = f"""{head} {{
            unread, all = Scan <num_scan_inputs = 1, body = each
                (float[N,{width}] next_in, float[{width}] next)
                => (float[N,{width}] next_out, float[N] out) {{
                next_out = Identity (next_in)  d = Sub (next_in, next)  {norm}
                out = Identity (r) }}> (x, known)
            dt = Transpose <perm = [1, 0]> (all)  {best} }}"""
        by_hand = f"""{head} {{
            dt = Scan <num_scan_inputs = 1, body = each (float[{width}] next)
                => (float[{known}] out) {{ d = Sub (known, next)  {norm}
                out = Identity (r) }}> (x)  {best} }}"""
        matrix = f"""{head} {{ xx0 = ReduceSumSquare <axes = [1], keepdims = 1> (x)
            kt = Transpose <perm = [1, 0]> (known)  xk = MatMul (x, kt)
            two = Constant <value = float {{2}}> ()  xk2 = Mul (xk, two)
            kk = ReduceSumSquare <axes = [0], keepdims = 1> (kt)
            s = Add (xx0, kk)  dt = Sub (s, xk2)  {best} }}"""
        others = {"as a MatMul": model(matrix, weights, 15)} if name == "Euclid" else {}
        yield Case(
            f"KNN {name}, {queries}",
            model(original, weights, 15),
            drawn(1, x=(queries, width)),
            model(by_hand, weights, 15),
            others,
        )


def _frames(frames: int, width: int, wide: int) -> Case:
    """A network for each frame, the outcomes collected."""
    nodes = """m = ReduceMean <axes = [-1], keepdims = 1> ({0})  d = Sub ({0}, m)
        dd = Mul (d, d)  v = ReduceMean <axes = [-1], keepdims = 1> (dd)
        tiny = Constant <value = float {{0.00001}}> ()  ve = Add (v, tiny)  sd = Sqrt (ve)
        n = Div (d, sd)  g = Mul (n, gain)  a = MatMul (g, W1)  b = Add (a, b1)  c = Relu (b)
        e = MatMul (c, W2)  {1} = Add (e, b2)"""
    kind = f"float[1,{width}]"
    head = f"frames (float[T,1,{width}] x) => (float[T,1,{width}] y)"
    original = f"""{head} {{ {_TRIPS}
        y = Loop <body = each (int64 now, bool go) => (bool on, {kind} y_t) {{
            on = Identity (go)  x_t = Gather (x, now)  {nodes.format("x_t", "y_t")}
        }}> (trips, yes) }}"""
    weights = drawn(0, gain=(width,), W1=(width, wide), b1=(wide,), W2=(wide, width), b2=(width,))
    feeds = drawn(1, x=(frames, 1, width))
    by_hand = f"{head} {{ {nodes.format('x', 'y')} }}"
    return Case("frames", model(original, weights, 17), feeds, model(by_hand, weights, 17))


def _regions(regions: int, channels: int, size: int) -> Case:
    """The head of a detector, one region at a time."""
    nodes = """c = Conv <pads = [1, 1, 1, 1]> ({0}, K1, b1)  r = Relu (c)
        p = GlobalAveragePool (r)  f = Flatten (p)  l = Gemm (f, W2, b2)  s = Softmax (l)"""
    kind = f"float[N,{channels},{size},{size}]"
    head = f"heads ({kind} x) => (float[N,81] y)"
    original = f"""{head} {{ {_TRIPS}
        y = Loop <body = each (int64 now, bool go) => (bool on, float[81] y_t) {{
            on = Identity (go)  x_t = Gather (x, now)  one = Unsqueeze (x_t, zero)
            {nodes.format("one")}  y_t = Squeeze (s, zero) }}> (trips, yes) }}"""
    kernel = (2 * channels, channels, 3, 3)
    weights = drawn(0, K1=kernel, b1=(2 * channels,), W2=(2 * channels, 81), b2=(81,))
    feeds = drawn(1, x=(regions, channels, size, size))
    by_hand = f"{head} {{ {nodes.format('x')}  y = Identity (s) }}"
    return Case("regions", model(original, weights), feeds, model(by_hand, weights))


def _rows(batch: int, steps: int, width: int) -> Case:
    """A loop over the rows of a batch around a recurrence."""
    cell = "p = MatMul ({0}, W)  q = MatMul (h_in, R)  s = Add (p, q)  h_out = Tanh (s)"
    one, row = f"float[1,{width}]", f"float[T,1,{width}]"
    head = f"rows (float[B,T,1,{width}] x, {one} h0) => (float[B,T,1,{width}] y)"
    original = f"""{head} {{ {_TRIPS}
        full = Shape <start = 1, end = 2> (x)  inner = Squeeze (full, zero)
        y = Loop <body = each (int64 now, bool go) => (bool on, {row} y_b) {{
            on = Identity (go)  x_b = Gather (x, now)
            hT, y_b = Loop <body = step (int64 at, bool go_, {one} h_in)
                => (bool on_, {one} h_out, {one} y_t) {{
                on_ = Identity (go_)  x_t = Gather (x_b, at)  {cell.format("x_t")}
                y_t = Identity (h_out) }}> (inner, yes, h0) }}> (trips, yes) }}"""
    rest = cell.replace("p = MatMul ({0}, W)", "")
    by_hand = f"""{head} {{ size = Shape <start = 0, end = 1> (x)
        last = Constant <value_ints = [{width}]> ()  to = Concat <axis = 0> (size, last)
        hs = Expand (h0, to)  flat = Transpose <perm = [1, 0, 2, 3]> (x)
        two = Constant <value_ints = [2]> ()  rows = Squeeze (flat, two)  ps = MatMul (rows, W)
        hT, ys = Scan <num_scan_inputs = 1, body = step
            (float[B,{width}] h_in, float[B,{width}] p)
            => (float[B,{width}] h_out, float[B,{width}] y_t) {{
            {rest}  y_t = Identity (h_out) }}> (hs, ps)
        yr = Transpose <perm = [1, 0, 2]> (ys)  y = Unsqueeze (yr, two) }}"""
    weights = drawn(0, W=(width, width), R=(width, width))
    feeds = drawn(1, x=(batch, steps, 1, width), h0=(1, width))
    return Case("rows of a batch", model(original, weights), feeds, model(by_hand, weights))


def _spreading(places: int, labels: int, rounds: int) -> Case:
    """Labels that spread over a graph, its weights normalised in every round."""
    norm = """sums = ReduceSum <keepdims = 1> (weights, last)  n = Div (weights, sums)
        part = Constant <value = float {0.8}> ()  rest = Constant <value = float {0.2}> ()
        own = Mul (start, rest)"""
    step = "m = MatMul (n, f_in)  mp = Mul (m, part)  f_out = Add (mp, own)"
    kind = f"float[N,{labels}]"
    head = f"spread (float[N,N] weights, {kind} start) => ({kind} f)"

    def loop(front: str, inside: str) -> str:
        return f"""{head} {{ trips = Constant <value = int64 {{{rounds}}}> ()
            yes = Constant <value = bool {{1}}> ()  last = Constant <value_ints = [1]> ()  {front}
            f = Loop <body = step (int64 now, bool go, {kind} f_in) => (bool on, {kind} f_out) {{
                on = Identity (go)  {inside}  {step} }}> (trips, yes, start) }}"""

    draw = np.random.default_rng(1)
    feeds: Arrays = {
        "weights": draw.random((places, places), np.float32),
        "start": draw.random((places, labels), np.float32),
    }
    return Case("label spreading", model(loop("", norm)), feeds, model(loop(norm, "")))
