"""Single nodes on operands that do not fit: every runtime must refuse them.

Each entry of `refused()` reads as in `old_op_cases`; onnxruntime refuses every one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from old_op_cases import F32, Entry, draw, ints

X3, X23 = draw(3), draw(2, 3)


def refused() -> Iterator[Entry]:
    """All entries, by family."""
    yield from divisions()
    yield from indices_out_of_range()
    yield from updates()
    yield from lengths()
    yield from shapes()
    yield from axes()
    yield from operands()
    yield from sequences()


def divisions() -> Iterator[Entry]:
    """Integers divided by zero."""
    one, zero = np.array([1], np.int32), np.array([0], np.int32)
    yield 7, "y = Div (a, b)", {"a": ints(1, 2), "b": ints(1, 0)}
    yield 13, "y = Div (a, b)", {"a": one, "b": zero}
    yield 13, "y = Mod (a, b)", {"a": one, "b": zero}
    yield 13, "y = Mod <fmod = 1> (a, b)", {"a": one, "b": zero}


def indices_out_of_range() -> Iterator[Entry]:
    """One too large, one too small, for everything that gathers and scatters."""
    for index in (3, -4):
        vector, matrix = ints(index), ints(index).reshape(1, 1)
        update = draw(1)
        yield 13, "y = Gather (x, i)", {"x": X3, "i": vector}
        yield 13, "y = Gather (x, i)", {"x": X3, "i": np.array(index)}
        yield 13, "y = Gather <axis = 1> (x, i)", {"x": X23, "i": matrix}
        yield 13, "y = GatherElements (x, i)", {"x": X3, "i": vector}
        yield 13, "y = GatherND (x, i)", {"x": X3, "i": matrix}
        yield 13, "y = GatherND <batch_dims = 1> (x, i)", {"x": X23, "i": ints(index, 0)[:, None]}
        scatter = {"x": X3, "i": vector, "u": update}
        yield 10, "y = Scatter (x, i, u)", scatter
        yield 13, "y = ScatterElements (x, i, u)", scatter
        yield 16, 'y = ScatterElements <reduction = "add"> (x, i, u)', scatter
        yield 13, "y = ScatterND (x, i, u)", {**scatter, "i": matrix}
        yield 16, 'y = ScatterND <reduction = "add"> (x, i, u)', {**scatter, "i": matrix}
    yield 13, "y = Gather (x, i)", {"x": draw(0, 3), "i": ints(0)}
    yield 13, "y = Gather <axis = 1> (x, i)", {"x": draw(0, 1), "i": ints(1)}


def updates() -> Iterator[Entry]:
    """More or fewer updates than indices, or of another shape."""
    row, few = ints(0, 1), {"x": X23, "i": ints(0, 1).reshape(2, 1), "u": draw(2, 2)}
    yield 10, "y = Scatter (x, i, u)", few
    for opset in (11, 13, 18):
        yield opset, "y = ScatterElements (x, i, u)", few
        yield opset, "y = ScatterElements (x, i, u)", {"x": X23, "i": row, "u": draw(2)}
        yield opset, "y = ScatterND (x, i, u)", {**few, "u": draw(3, 3)}
        yield opset, "y = ScatterND (x, i, u)", {**few, "u": draw(2, 1)}
        yield opset, "y = ScatterND (x, i, u)", {**few, "u": draw(1, 3)}


def lengths() -> Iterator[Entry]:
    """Counts, steps and lengths that are negative, too large, or do not add up."""
    slices = {"x": X3, "s": ints(0), "e": ints(1), "a": ints(0)}
    yield 13, "y = Slice (x, s, e, a, t)", {**slices, "t": ints(0)}
    yield 13, "y = Slice (x, s, e, a)", {**slices, "a": ints(1)}
    yield 13, "y = Slice (x, s, e)", {"x": X23, "s": ints(0, 0), "e": ints(1)}
    yield 13, "y = Slice (x, s, e, a)", {**slices, "x": X23, "a": ints(0, 1)}
    yield 13, "y = Slice (x, s, e, a, t)", {**slices, "x": X23, "t": ints(1, 1)}
    twice = {"x": X23, "s": ints(0, 0), "e": ints(1, 1)}
    yield 13, "y = Slice (x, s, e)", {**twice, "x": X3}
    yield 13, "y = Slice (x, s, e, a)", {**twice, "a": ints(0, 0)}
    yield 7, "v, i = TopK <k = 4> (x)", {"x": X3}
    for opset in (10, 11, 24):
        yield opset, "v, i = TopK (x, k)", {"x": X3, "k": ints(4)}
        yield opset, "v, i = TopK (x, k)", {"x": X3, "k": ints(-1)}
        yield opset, "v, i = TopK (x, k)", {"x": draw(0, 3), "k": ints(4)}
    for opset in (13, 18):
        for parts in ((1, 2), (1, 1, 2), (5, -1)):
            yield opset, "a, b = Split (x, s)", {"x": draw(4), "s": ints(*parts)}
    yield 11, "a, b = Split <split = [1, 2]> (x)", {"x": draw(4)}
    yield 11, "a, b = Split (x)", {"x": X3}
    yield 13, "a, b = Split (x)", {"x": X3}
    yield 13, "y = Tile (x, r)", {"x": X3, "r": ints(-1)}
    yield 13, "y = Tile (x, r)", {"x": X3, "r": ints(1, 1)}
    bounds = {"a": np.array(0), "b": np.array(3), "c": np.array(0)}
    yield 13, "y = Range (a, b, c)", bounds
    rows = "batch_axis = 0, time_axis = 1"
    for lens in ((4, 0), (1,)):
        yield 10, f"y = ReverseSequence <{rows}> (x, l)", {"x": X23, "l": ints(*lens)}
    feeds = {"x": draw(3, 2, 3), "w": draw(1, 8, 3), "r": draw(1, 8, 2)}
    wrong = {**feeds, "l": np.array([0, 4], np.int32)}
    yield 14, "y = LSTM <hidden_size = 2> (x, w, r, , l)", wrong


def shapes() -> Iterator[Entry]:
    """Shapes that cannot be made."""
    for shape in ((2,), (-1, -1), (3, 0), (-1, 2), (0, 0), (-2,)):
        yield 13, "y = Reshape (x, s)", {"x": X3, "s": ints(*shape)}
    for shape in ((0, -1), (2,)):
        yield 13, "y = Reshape (x, s)", {"x": draw(0, 3), "s": ints(*shape)}
    yield 13, "y = Expand (x, s)", {"x": X3, "s": ints(2)}
    yield 13, "y = Expand (x, s)", {"x": X3, "s": ints(-1)}
    yield 9, "y = ConstantOfShape (s)", {"s": ints(-1)}
    for depth in (0, -1):
        yield 13, "y = OneHot (i, d, v)", {"i": ints(0), "d": ints(depth), "v": draw(2)}
    yield 13, "y = Pad (x, p)", {"x": X3, "p": ints(1)}
    yield 13, "y = Pad (x, p)", {"x": X3, "p": ints(-2, -2)}
    yield 13, 'y = Pad <mode = "reflect"> (x, p)', {"x": X3, "p": ints(3, 0)}
    for op in ("MaxPool", "AveragePool"):
        yield 11, f"y = {op} <kernel_shape = [5]> (x)", {"x": draw(1, 2, 2)}
    yield 11, "y = Conv (x, w)", {"x": draw(1, 3, 4, 4), "w": draw(1, 2, 2, 2)}
    yield 11, "y = Conv (x, w)", {"x": draw(1, 2, 1, 4), "w": draw(1, 2, 2, 2)}
    yield 11, "y = DepthToSpace <blocksize = 2> (x)", {"x": draw(1, 3, 2, 2)}
    yield 11, "y = SpaceToDepth <blocksize = 2> (x)", {"x": draw(1, 3, 3, 2)}
    scales = {"x": draw(1, 1, 2), "s": np.array([1, 1], F32)}
    yield 10, "y = Resize (x, s)", scales
    yield 13, "y = Resize (x, , s)", scales
    unpooled = {"x": draw(1, 1, 2), "i": ints(0, 9).reshape(1, 1, 2)}
    yield 9, "y = MaxUnpool <kernel_shape = [2]> (x, i)", unpooled


def axes() -> Iterator[Entry]:
    """Axes out of range, named twice, of the wrong length."""
    yield 13, "y = ArgMax <axis = 0> (x)", {"x": draw(0, 3)}
    yield 13, "y = ArgMax <axis = 2> (x)", {"x": X23}
    yield 11, "y = Squeeze <axes = [0]> (x)", {"x": draw(3, 1)}
    for axis in (0, 2):
        yield 13, "y = Squeeze (x, a)", {"x": draw(3, 1), "a": ints(axis)}
    yield 13, "y = Squeeze (x, a)", {"x": draw(3, 1), "a": np.array(1)}
    yield 11, "y = Unsqueeze <axes = [3]> (x)", {"x": X3}
    yield 13, "y = Unsqueeze (x, a)", {"x": X3, "a": ints(3)}
    yield 13, "y = Unsqueeze (x, a)", {"x": X3, "a": ints(0, 0)}
    yield 13, "y = CumSum (x, a)", {"x": X3, "a": np.array(1)}
    yield 13, "y = Concat <axis = 2> (x, z)", {"x": X23, "z": X23}
    yield 13, "y = Transpose <perm = [0, 0]> (x)", {"x": X23}
    yield 13, "y = Transpose <perm = [0]> (x)", {"x": X23}
    yield 13, "y = Compress <axis = 1> (x, c)", {"x": X3, "c": np.array([True])}
    yield 11, "y = Softmax <axis = 3> (x)", {"x": X23}
    yield 13, "y = Softmax <axis = 2> (x)", {"x": X23}
    yield 13, "y = Flatten <axis = 3> (x)", {"x": X23}
    yield 11, "y = ReduceSum <axes = [2]> (x)", {"x": X23}
    yield 13, "y = ReduceSum (x, a)", {"x": X23, "a": ints(2)}
    yield 18, "y = ReduceMax (x, a)", {"x": X23, "a": ints(2)}


def operands() -> Iterator[Entry]:
    """Operands that do not go together."""
    yield 13, "y = Concat <axis = 0> (x, z)", {"x": X23, "z": draw(2, 2)}
    yield 13, "y = Add (x, z)", {"x": X23, "z": draw(2, 2)}
    yield 13, "y = Max (x, z)", {"x": X23, "z": draw(2, 2)}
    yield 13, "y = Where (c, x, z)", {"c": np.array(True), "x": X23, "z": draw(2, 2)}
    yield 13, "y = MatMul (x, z)", {"x": X23, "z": draw(2, 2)}
    yield 13, "y = MatMul (x, z)", {"x": X23, "z": np.array(1, F32)}
    yield 13, "y = Gemm (x, z)", {"x": X23, "z": draw(2, 2)}
    yield 13, "y = Gemm (x, z, c)", {"x": draw(2, 2), "z": draw(2, 2), "c": draw(3)}
    yield 13, "y = Gemm (x, z, c)", {"x": draw(1, 2), "z": draw(2, 2), "c": draw(2, 2)}
    yield 12, 'y = Einsum <equation = "ij,jk->ik"> (a, b)', {"a": X23, "b": X23}
    yield 13, "y = PRelu (x, s)", {"x": X23, "s": draw(2)}
    one, image, kernel = draw(1), draw(2, 3, 4), draw(3, 3, 2)
    several = {"s": draw(3), "b": one, "m": draw(3), "v": np.abs(draw(3))}
    for opset in (13, 15):
        yield opset, "y = BatchNormalization (x, s, b, m, v)", {"x": image, **several}
    yield 13, "y = InstanceNormalization (x, s, b)", {"x": image, "s": draw(3), "b": one}
    yield (
        21,
        "y = GroupNormalization <num_groups = 3> (x, s, b)",
        {"x": draw(2, 6, 4), "s": draw(3), "b": draw(3)},
    )
    yield 13, "y = Conv (x, w, b)", {"x": image, "w": kernel, "b": one}
    yield 13, "y = ConvTranspose (x, w, b)", {"x": image, "w": kernel, "b": one}
    bytes_ = np.ones((2, 2), np.uint8)
    for scale, zero in ((draw(2), bytes_[0, :1]), (np.array(1, F32), bytes_[0])):
        given = {"s": np.abs(scale), "z": zero}
        for opset in (13, 21):
            yield opset, "y = QuantizeLinear (x, s, z)", {"x": draw(2, 2), **given}
            yield opset, "y = DequantizeLinear (x, s, z)", {"x": bytes_, **given}
    yield 13, "y = Clip (x, l)", {"x": X3, "l": X3}
    yield 13, "y = OneHot (i, d, v)", {"i": ints(0), "d": ints(2), "v": draw(3)}
    regions = {"x": draw(1, 1, 4, 4), "r": np.abs(draw(1, 4)), "b": ints(0, 0)}
    yield 16, "y = RoiAlign <output_height = 1> (x, r, b)", regions
    for shape in ((1, 2, 2, 2), (2, 2, 2, 3)):
        yield 16, "y = GridSample (x, g)", {"x": draw(2, 1, 3, 3), "g": draw(*shape)}
    for split in ((1, 1), (-1, 4)):
        text = "y = SequenceAt (s, i) : s = SplitToSequence (x, p)"
        yield 13, text, {"x": X3, "p": ints(*split), "i": np.array(0)}
    signal = {"x": draw(1, 8, 1), "n": np.array(0), "w": draw(4)}
    yield 17, "y = STFT (x, n, w)", signal
    yield 17, "y = HannWindow (n)", {"n": np.array(-1)}
    parts = {"s": draw(2), "b": draw(2), "m": draw(2), "v": draw(2)}
    yield 13, "y = BatchNormalization (x, s, b, m, v)", {"x": X23, **parts}
    yield 13, "y = InstanceNormalization (x, s, b)", {"x": draw(1, 2, 3), "s": X3, "b": X3}
    yield 17, "y = LayerNormalization (x, s)", {"x": X23, "s": draw(2)}
    quantized = {"x": np.zeros((2, 3), np.uint8), "s": draw(2)}
    yield 10, "y = DequantizeLinear (x, s)", quantized
    yield 13, "y = DequantizeLinear <axis = 1> (x, s)", quantized
    yield 13, "y = QuantizeLinear <axis = 1> (x, s)", {"x": X23, "s": draw(2)}
    yield 13, "y = Cast <to = 7> (x)", {"x": np.array(["a"], object)}
    yield 9, "y = EyeLike (x)", {"x": X3}
    yield 14, "y = Trilu (x)", {"x": X3}
    yield 11, "y = Det (x)", {"x": X23}


def sequences() -> Iterator[Entry]:
    """Positions outside of a sequence, elements that do not join."""
    for position in (1, -2):
        feeds = {"x": X3, "i": np.array(position)}
        yield 11, "y = SequenceAt (s, i) : s = SequenceConstruct (x)", feeds
        yield 11, "y = SequenceErase (s, i) : s = SequenceConstruct (x)", feeds
    feeds = {"x": X3, "i": np.array(3)}
    yield 11, "y = SequenceInsert (s, x, i) : s = SequenceConstruct (x)", feeds
    mixed = {"x": X23, "z": draw(2, 2)}
    made = "s = SequenceConstruct (x, z)"
    yield 11, f"y = ConcatFromSequence <axis = 0> (s) : {made}", mixed
    yield 11, f"y = ConcatFromSequence <axis = 0, new_axis = 1> (s) : {made}", mixed
