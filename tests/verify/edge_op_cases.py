"""Single nodes on empty tensors, NaN and infinities; entries as in `old_op_cases`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from old_op_cases import F32, REDUCERS, SIGNED, Entry, draw, ints, positive

EMPTY = draw(0, 3)
SPECIAL = np.array([[1, np.nan, -2], [np.inf, -np.inf, 0.5]], F32)


def edges() -> Iterator[Entry]:
    """All entries, at an old opset, two in between, and a recent one."""
    for opset in (11, 13, 18, 22):
        yield from elementwise(opset)
        yield from reductions(opset)
        yield from movements(opset)
        yield from networks(opset)


def elementwise(opset: int) -> Iterator[Entry]:
    """Unary and binary operators."""
    more = ["Exp", "Sqrt", "Log", "Identity", "Erf", "Round", "Sign", "IsNaN", "IsInf"]
    for op, x in itertools.product(SIGNED + more, (EMPTY, SPECIAL)):
        yield opset, f"y = {op} (x)", {"x": x}
    for op in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "Less", "Greater", "Mean", "Sum"):
        yield opset, f"y = {op} (a, b)", {"a": SPECIAL, "b": SPECIAL[::-1].copy()}
        yield opset, f"y = {op} (a, b)", {"a": EMPTY, "b": draw(3)}
    for op in ("Softsign", "Tanh", "Sigmoid", "Neg", "Relu", "Softplus", "Elu"):
        yield opset, f"y = {op} (x)", {"x": np.array(2, F32)}
    far = np.array([3e9, -3e9, 1e19, -1e19, np.inf, -np.inf, 2.0**31, 126.5, -0.0], F32)
    with np.errstate(over="ignore"):
        far_halves = far.astype(np.float16)
    # no NaN, which the document leaves open and onnxruntime makes another number
    whole = (np.array(3, np.int8), np.array(-3, np.int8), np.array(200, np.uint8))
    for zero, scale in itertools.product(whole, (0.5, 0)):
        numbers, halves = (x if scale else x[x != 0] for x in (far, far_halves))  # 0 / 0 is NaN
        feeds = {"x": numbers, "s": np.array(scale, F32), "z": zero}
        yield opset, "y = QuantizeLinear (x, s, z)", feeds
        if opset >= 19:
            half = {"x": halves, "s": np.array(scale, np.float16), "z": zero}
            yield opset, "y = QuantizeLinear (x, s, z)", half
    low, high = np.array(-1, F32), np.array(1, F32)
    yield opset, "y = Clip (x, l, h)", {"x": SPECIAL, "l": low, "h": high}
    yield opset, "y = Clip (x)", {"x": EMPTY}
    chosen = np.array([True, False, True])
    yield opset, "y = Where (c, a, b)", {"c": chosen, "a": SPECIAL, "b": draw(3)}
    yield opset, "y = Where (c, a, b)", {"c": np.zeros((0, 1), bool), "a": EMPTY, "b": EMPTY}
    for target in (6, 7, 9):
        yield opset, f"y = Cast <to = {target}> (x)", {"x": SPECIAL}
    yield opset, "y = Cast <to = 6> (x)", {"x": np.array([1.9, -1.9, -0.0], F32)}
    yield opset, "y = Cast <to = 3> (x)", {"x": np.array([300, -200], np.int32)}
    yield opset, "y = Cast <to = 10> (x)", {"x": np.array([1e6, -1e6, 1e-8], F32)}
    yield opset, "y = Cast <to = 8> (x)", {"x": EMPTY}
    if opset >= 18:
        for op in ("HardSwish", "Mish"):
            yield opset, f"y = {op} (x)", {"x": SPECIAL}


def reductions(opset: int) -> Iterator[Entry]:
    """Reducers and Softmax; what a maximum makes of a NaN is left open by the documents."""
    whole = np.zeros((0, 3), np.int32)
    for op in REDUCERS:
        yield opset, f"y = {op} (x)", {"x": np.array(2, F32)}
        fed = opset >= 18 or (op == "ReduceSum" and opset >= 13)
        for x, axis in ((EMPTY, 0), (EMPTY, 1), (SPECIAL, 1), (whole, 0)):
            if x is SPECIAL and op in ("ReduceMax", "ReduceMin"):
                continue
            if fed:
                yield opset, f"y = {op} (x, a)", {"x": x, "a": ints(axis)}
            else:
                yield opset, f"y = {op} <axes = [{axis}]> (x)", {"x": x}
        yield opset, f"y = {op} <keepdims = 0> (x)", {"x": EMPTY}
    for op in ("Softmax", "LogSoftmax", "Hardmax"):
        yield opset, f"y = {op} (x)", {"x": EMPTY}
        yield opset, f"y = {op} <axis = 0> (x)", {"x": EMPTY}
        yield opset, f"y = {op} <axis = 1> (x)", {"x": draw(2, 0)}
        if op != "Hardmax":
            yield opset, f"y = {op} <axis = 1> (x)", {"x": SPECIAL}
    for op in ("ArgMax", "ArgMin"):
        yield opset, f"y = {op} <axis = 1> (x)", {"x": EMPTY}
    yield opset, "y = CumSum (x, a)", {"x": EMPTY, "a": np.array(0)}
    yield opset, "y = CumSum (x, a)", {"x": SPECIAL, "a": np.array(1)}


def movements(opset: int) -> Iterator[Entry]:
    """What moves data: nothing of it, or onto nothing."""
    yield opset, "v, i = TopK <axis = 0> (x, k)", {"x": EMPTY, "k": ints(0)}
    yield opset, "v, i = TopK <axis = 1> (x, k)", {"x": EMPTY, "k": ints(2)}
    yield opset, "y = Gather (x, i)", {"x": EMPTY, "i": ints()}
    yield opset, "y = Gather <axis = 1> (x, i)", {"x": EMPTY, "i": ints(0, 2)}
    none = np.zeros((0, 2), np.int64)
    x = draw(3, 2)
    yield opset, "y = GatherElements (x, i)", {"x": x, "i": none}
    yield opset, "y = GatherND (x, i)", {"x": x, "i": none[:, :1]}
    if opset >= 12:
        batch = np.zeros((0, 2, 1), np.int64)
        yield opset, "y = GatherND <batch_dims = 1> (x, i)", {"x": EMPTY, "i": batch}
    updates = np.zeros((0, 2), F32)
    yield opset, "y = ScatterElements (x, i, u)", {"x": x, "i": none, "u": updates}
    yield opset, "y = ScatterND (x, i, u)", {"x": x, "i": none[:, :1], "u": updates}
    yield opset, "y = Concat <axis = 0> (a, b)", {"a": EMPTY, "b": draw(2, 3)}
    yield opset, "y = Transpose (x)", {"x": EMPTY}
    yield opset, "y = Reshape (x, s)", {"x": EMPTY, "s": ints(0, 1, 3)}
    yield opset, "y = Reshape (x, s)", {"x": draw(1), "s": ints()}
    back = {"s": ints(-1), "e": ints(-9), "a": ints(0), "t": ints(-1)}
    yield opset, "y = Slice (x, s, e, a, t)", {"x": EMPTY, **back}
    yield opset, "y = Pad (x, p)", {"x": EMPTY, "p": ints(1, 0, 1, 0)}
    yield opset, "y = Tile (x, r)", {"x": draw(2, 3), "r": ints(0, 2)}
    yield opset, "y = Expand (x, s)", {"x": draw(1, 3), "s": ints(0, 3)}
    yield opset, "y = NonZero (x)", {"x": EMPTY}
    yield opset, "y = NonZero (x)", {"x": SPECIAL}
    yield opset, "y = Compress <axis = 0> (x, c)", {"x": x, "c": np.array([False])}
    yield opset, "y = OneHot (i, d, v)", {"i": ints(), "d": ints(3), "v": draw(2)}
    fractions = np.array([-1.5, -0.5, 0.6, 1.9, 3.1, -3.7], np.float32)
    yield opset, "y = OneHot (i, d, v)", {"i": fractions, "d": ints(3), "v": ints(0, 7)}
    yield opset, "y, i, j, c = Unique (x)", {"x": draw(0)}
    twice = np.array([[2, 1, 2], [0, 3, 0], [2, 1, 2]], F32)
    for given in ("", "axis = 0, ", "axis = 1, "):
        yield opset, f"y = Unique <{given}sorted = 0> (x)", {"x": twice}
        yield opset, f"y, i, j, c = Unique <{given}sorted = 0> (x)", {"x": twice}
    bounds = {"a": np.array(3), "b": np.array(1), "c": np.array(1)}
    yield opset, "y = Range (a, b, c)", bounds
    yield opset, "y = Flatten <axis = 1> (x)", {"x": draw(2, 0, 3)}
    yield opset, "y = Flatten <axis = 0> (x)", {"x": EMPTY}
    yield opset, "y = ReverseSequence (x, l)", {"x": draw(2, 0), "l": ints()}
    into = "y = ConcatFromSequence <axis = 0> (t) : t = SequenceInsert (s, x, i)"
    for count, places in ((0, (0,)), (2, (0, 1, 2, -1, -2))):
        made = "s = SequenceEmpty ()" if not count else "s = SequenceConstruct (a, b)"
        fed = {"a": draw(2), "b": draw(2)} if count else {}
        for place in places:
            yield opset, f"{into} : {made}", {"x": draw(2), "i": np.array(place), **fed}
    if opset >= 13:
        yield opset, "a, b = Split (x, s)", {"x": draw(2, 3), "s": ints(0, 2)}
        yield opset, "y = Squeeze (x)", {"x": draw(1, 0)}


def networks(opset: int) -> Iterator[Entry]:
    """Products, pools, convolutions, normalisations, cells; other ranks than the usual one."""
    yield opset, "y = MatMul (a, b)", {"a": draw(2, 0), "b": draw(0, 3)}
    yield opset, "y = MatMul (a, b)", {"a": draw(0, 2), "b": draw(2, 3)}
    yield opset, "y = Gemm (a, b, c)", {"a": draw(2, 0), "b": draw(0, 3), "c": draw(3)}
    yield opset, "y = Det (x)", {"x": draw(0, 2, 2)}
    for op in ("MaxPool <kernel_shape = [2]>", "AveragePool <kernel_shape = [2]>"):
        yield opset, f"y = {op} (x)", {"x": draw(0, 2, 5)}
    holes = np.array([[[1, np.nan, 3, np.nan, 2]]], F32)
    for op in ("MaxPool", "AveragePool"):
        yield opset, f"y = {op} <kernel_shape = [2]> (x)", {"x": holes}
    for op, batch in itertools.product(("GlobalAveragePool", "GlobalMaxPool"), (0, 1)):
        yield opset, f"y = {op} (x)", {"x": draw(batch, 2, 5)}
    yield opset, "y = Conv (x, w)", {"x": draw(0, 2, 5, 5), "w": draw(3, 2, 2, 2)}
    yield opset, "y = Conv (x, w)", {"x": draw(1, 2, 5), "w": draw(3, 2, 2)}
    yield opset, "y = Conv (x, w)", {"x": draw(1, 2, 4, 4, 4), "w": draw(3, 2, 2, 2, 2)}
    yield opset, "y = ConvTranspose (x, w)", {"x": draw(1, 2, 5), "w": draw(2, 3, 2)}
    cube = {"x": draw(1, 2, 3, 3, 3), "w": draw(2, 3, 2, 2, 2)}
    yield opset, "y = ConvTranspose <strides = [2, 1, 2]> (x, w)", cube
    channel = {"s": draw(2), "b": draw(2)}
    yield opset, "y = InstanceNormalization (x, s, b)", {"x": draw(0, 2, 5), **channel}
    yield opset, "y = LRN <size = 3> (x)", {"x": draw(0, 2, 3, 3)}
    parts = {"s": draw(3), "b": draw(3), "m": draw(3), "v": positive(3)}
    yield opset, "y = BatchNormalization (x, s, b, m, v)", {"x": draw(0, 3, 2), **parts}
    weights = {"w": draw(1, 8, 3) / F32(8), "r": draw(1, 8, 2) / F32(8)}
    yield opset, "y = LSTM <hidden_size = 2> (x, w, r)", {"x": draw(0, 2, 3), **weights}
    long = {"x": draw(2, 2, 3), **weights}
    short = {"x": draw(3, 2, 3), **weights, "l": np.array([0, 2], np.int32)}
    yield opset, "y, h, c = LSTM <hidden_size = 2> (x, w, r, , l)", short
    infinite = {"h": draw(1, 2, 2), "c": np.full((1, 2, 2), np.inf, F32)}
    yield opset, "y, f, g = LSTM <hidden_size = 2> (x, w, r, , , h, c)", {**long, **infinite}
