"""Single nodes at old opsets, with inputs: what the reference executor is held against.

Each entry of `cases()` reads `(opset, "y = Op <attributes> (x)", {"x": array, ...})`. They
walk through the versions at which an operator's signature or meaning changed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import ModelProto, helper, parser

Feeds = dict[str, Any]
Entry = tuple[int, str, Feeds]
F32 = np.float32


def model_of(opset: int, node: str, feeds: Feeds) -> ModelProto:
    """A model of one node, its inputs typed as the feeds are.

    What stands behind a colon runs before it: `y = SequenceAt (s, i) : s = ...`.
    """
    inputs = ", ".join(f"{_spelled(value)} {name}" for name, value in feeds.items())
    outputs = ", ".join(name for name in node.split("=")[0].replace(" ", "").split(",") if name)
    nodes = " ".join(reversed(node.split(" : ")))
    text = f'<ir_version: 8, opset_import: ["": {opset}]> g ({inputs}) => ({outputs}) {{ {nodes} }}'
    return parser.parse_model(text)


def _spelled(value: np.ndarray[Any, Any]) -> str:
    kind = "string" if value.dtype.kind in "OUS" else _onnx_name(value.dtype)
    return f"{kind}[{','.join(map(str, value.shape))}]" if value.ndim else kind


def _onnx_name(dtype: np.dtype[Any]) -> str:
    number = helper.np_dtype_to_tensor_dtype(dtype)
    return {1: "float", 11: "double", 10: "float16"}.get(number, dtype.name)


def draw(*shape: int, seed: int = 0, dtype: Any = F32) -> np.ndarray[Any, Any]:
    """Values between -4 and 4, with repeats, the same ones for every run."""
    values = np.random.default_rng([seed, *shape]).integers(-16, 17, shape) / 4
    return np.asarray(values, dtype)


def positive(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Values of at least a quarter."""
    return np.asarray(np.abs(draw(*shape, seed=seed)) + F32(0.25), F32)


def ints(*values: int) -> np.ndarray[Any, Any]:
    """A vector of int64."""
    return np.array(values, np.int64)


def cases() -> Iterator[Entry]:
    """All entries, by family."""
    yield from flattening()
    yield from axes_as_attributes()
    yield from slicing()
    yield from arithmetic()
    yield from normalisation()
    yield from pooling()
    yield from resizing()
    yield from sampling()
    yield from recurrent()
    yield from scattering()
    yield from casts()
    yield from quantisation()
    yield from the_rest()


def flattening() -> Iterator[Entry]:
    """Softmax and its kin flatten to two dimensions below opset 13."""
    shapes = [(5,), (2, 3), (2, 3, 4), (2, 1, 3, 2)]
    for op, opset in itertools.product(("Softmax", "LogSoftmax", "Hardmax"), (7, 11, 12, 13)):
        for shape in shapes:
            lowest = -len(shape) if opset >= 11 else 0
            for axis in range(lowest, len(shape)):
                yield opset, f"y = {op} <axis={axis}> (x)", {"x": draw(*shape)}
            if len(shape) > 1:
                yield opset, f"y = {op} (x)", {"x": draw(*shape)}
    for opset, axis in itertools.product((7, 9, 11, 13), (0, 1, 2, 3)):
        yield opset, f"y = Flatten <axis={axis}> (x)", {"x": draw(2, 3, 4)}
    yield 11, "y = Flatten <axis=-1> (x)", {"x": draw(2, 3, 4)}
    yield 11, "y = Flatten <axis=-3> (x)", {"x": draw(2, 3, 4)}


REDUCERS = [
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
]


def axes_as_attributes() -> Iterator[Entry]:
    """Reducers, Squeeze, Unsqueeze, Split, ArgMax: axes as attributes, then as inputs."""
    x = positive(2, 3, 4)
    for op, opset in itertools.product(REDUCERS, (7, 11, 12, 13, 17)):
        if op == "ReduceSum" and opset >= 13:
            continue
        forms = ["", "<axes=[1]>", "<axes=[0, 2], keepdims=0>", "<keepdims=0>"]
        if opset >= 11:
            forms += ["<axes=[-1]>", "<axes=[-3, 1], keepdims=0>"]
        for form in forms:
            yield opset, f"y = {op} {form} (x)", {"x": x}
        yield opset, f"y = {op} <axes=[1]> (x)", {"x": np.arange(6, dtype=np.int32).reshape(2, 3)}
    for op, (opset, axes) in itertools.product(
        REDUCERS, ((18, ints(1)), (18, ints(-1, 0)), (13, ints(1)), (18, ints()))
    ):
        if opset == 18 or op == "ReduceSum":
            yield opset, f"y = {op} (x, axes)", {"x": x, "axes": axes}
            yield (
                opset,
                f"y = {op} <noop_with_empty_axes=1, keepdims=0> (x, axes)",
                {"x": x, "axes": axes},
            )
    thin = draw(1, 3, 1, 2)
    for opset in (7, 11, 12):
        yield opset, "y = Squeeze (x)", {"x": thin}
        yield opset, "y = Squeeze <axes=[0]> (x)", {"x": thin}
        yield opset, "y = Squeeze <axes=[2, 0]> (x)", {"x": thin}
        yield opset, "y = Unsqueeze <axes=[0, 3]> (x)", {"x": draw(2, 3)}
        yield opset, "y = Unsqueeze <axes=[2, 0, 4]> (x)", {"x": draw(2, 3)}
        yield opset, "a, b = Split <axis=1> (x)", {"x": draw(2, 4)}
        yield opset, "a, b = Split (x)", {"x": draw(2, 4)}
        yield opset, "a, b = Split <axis=1, split=[1, 3]> (x)", {"x": draw(2, 4)}
    yield 11, "y = Squeeze <axes=[-2]> (x)", {"x": thin}
    yield 11, "y = Unsqueeze <axes=[-1, 0]> (x)", {"x": draw(2, 3)}
    yield 11, "a, b = Split <axis=-1, split=[4, 0]> (x)", {"x": draw(2, 4)}
    for opset in (13, 18):
        yield opset, "y = Squeeze (x, axes)", {"x": thin, "axes": ints(-2, 0)}
        yield opset, "y = Squeeze (x)", {"x": thin}
        yield opset, "y = Unsqueeze (x, axes)", {"x": draw(2, 3), "axes": ints(3, 0)}
        yield opset, "y = Unsqueeze (x, axes)", {"x": draw(2, 3), "axes": ints(-1, -4)}
        yield opset, "a, b = Split (x, s)", {"x": draw(4, 2), "s": ints(1, 3)}
    yield 13, "a, b = Split <axis=1> (x)", {"x": draw(2, 4)}
    yield 18, "a, b = Split <axis=1, num_outputs=2> (x)", {"x": draw(2, 5)}
    for op, opset in itertools.product(("ArgMax", "ArgMin"), (7, 11, 12, 13)):
        for axis, keep in itertools.product((0, 1, 2), (0, 1)):
            form = f"<axis={axis}, keepdims={keep}>"
            yield opset, f"y = {op} {form} (x)", {"x": draw(3, 4, 5)}
        yield opset, f"y = {op} (x)", {"x": draw(3, 4)}
        if opset >= 11:
            yield opset, f"y = {op} <axis=-1> (x)", {"x": draw(3, 4)}
        if opset >= 12:
            yield opset, f"y = {op} <axis=1, select_last_index=1> (x)", {"x": draw(3, 9)}


def slicing() -> Iterator[Entry]:
    """Slice, Pad, TopK, Gather, Tile, Expand, Concat, Transpose, Reshape."""
    x = draw(3, 4, 5)
    for opset in (7, 9):
        yield opset, "y = Slice <starts=[1], ends=[3]> (x)", {"x": x}
        yield opset, "y = Slice <axes=[1], starts=[-3], ends=[1000]> (x)", {"x": x}
        yield opset, "y = Slice <axes=[2, 0], starts=[1, 0], ends=[-1, 2]> (x)", {"x": x}
        yield opset, "y = Slice <starts=[2], ends=[1]> (x)", {"x": x}
        yield opset, "y = Slice <axes=[0], starts=[-1000], ends=[2]> (x)", {"x": x}
    for opset, (starts, ends, axes, steps) in itertools.product(
        (10, 11, 13),
        (
            ((1,), (3,), (0,), (1,)),
            ((-1,), (-1000,), (1,), (-1,)),
            ((4, 0), (0, 3), (2, 1), (-2, 2)),
            ((0, 1), (10, 10), (-1, -3), (3, 1)),
            ((100,), (-100,), (0,), (-1,)),
            ((-1,), (np.iinfo(np.int64).min,), (2,), (-1,)),
        ),
    ):
        feeds = {"s": ints(*starts), "e": ints(*ends), "a": ints(*axes), "t": ints(*steps)}
        yield opset, "y = Slice (x, s, e, a, t)", {"x": x, **feeds}
        if all(step == 1 for step in steps):
            yield opset, "y = Slice (x, s, e, a)", {"x": x, **{k: feeds[k] for k in "sea"}}
            yield opset, "y = Slice (x, s, e)", {"x": x, **{k: feeds[k] for k in "se"}}
    yield 10, "y = Slice (x, s, e, , t)", {"x": x, "s": ints(2), "e": ints(0), "t": ints(-1)}
    for mode in ("constant", "reflect", "edge"):
        form = f'mode="{mode}", pads=[0, 1, 2, 1, 0, 2]'
        for opset in (7, 10):
            yield opset, f"y = Pad <{form}, value=1.5> (x)", {"x": x}
            yield opset, f"y = Pad <{form}> (x)", {"x": x}
        for opset in (11, 13, 18):
            pads = ints(0, 1, 2, 1, 0, 2)
            yield opset, f'y = Pad <mode="{mode}"> (x, p)', {"x": x, "p": pads}
            value = np.array(2.5, F32)
            yield opset, f'y = Pad <mode="{mode}"> (x, p, v)', {"x": x, "p": pads, "v": value}
    yield 7, 'y = Pad <mode="constant", pads=[0, -1, 0, 0, -1, 1]> (x)', {"x": x}
    yield 11, "y = Pad (x, p)", {"x": x, "p": ints(0, -1, 0, 0, -1, 1)}
    yield 18, "y = Pad (x, p, , a)", {"x": x, "p": ints(1, 2), "a": ints(-1)}
    for axis in (0, 1, -1):
        yield 7, f"v, i = TopK <k=2, axis={axis}> (x)", {"x": draw(4, 5)}
        yield 10, f"v, i = TopK <axis={axis}> (x, k)", {"x": draw(4, 5), "k": ints(3)}
        for largest, opset in itertools.product((0, 1), (11, 24)):
            form = f"<axis={axis}, largest={largest}>"
            yield opset, f"v, i = TopK {form} (x, k)", {"x": draw(4, 5), "k": ints(3)}
    yield 10, "v, i = TopK (x, k)", {"x": draw(3, 5), "k": ints(0)}
    for opset in (7, 11, 13):
        index = np.array([[0, 2], [1, 0]], np.int64)
        yield opset, "y = Gather (x, i)", {"x": x, "i": index}
        yield opset, "y = Gather <axis=2> (x, i)", {"x": x, "i": index.astype(np.int32)}
        yield opset, "y = Gather <axis=1> (x, i)", {"x": x, "i": np.array(3, np.int64)}
        yield opset, "y = Tile (x, r)", {"x": draw(2, 3), "r": ints(2, 1)}
        yield opset, "y = Concat <axis=1> (x, z)", {"x": draw(2, 3), "z": draw(2, 1)}
        yield opset, "y = Transpose (x)", {"x": x}
        yield opset, "y = Transpose <perm=[1, 2, 0]> (x)", {"x": x}
        yield opset, "y = Reshape (x, s)", {"x": x, "s": ints(0, -1, 2)}
        yield opset, "y = Reshape (x, s)", {"x": x, "s": ints(-1)}
        yield opset, "y = Shape (x)", {"x": x}
        yield opset, "y = Size (x)", {"x": x}
    yield 14, "y = Reshape <allowzero=1> (x, s)", {"x": draw(0, 3), "s": ints(3, 0)}
    for opset in (8, 13):
        yield opset, "y = Expand (x, s)", {"x": draw(3, 1), "s": ints(2, 1, 4)}
        yield opset, "y = Expand (x, s)", {"x": draw(3, 1), "s": ints(1)}


def arithmetic() -> Iterator[Entry]:
    """Elementwise operators, Gemm, Clip, Dropout, Mod, Pow, comparisons."""
    for opset in (7, 8, 12, 13, 14):
        for op in ("Add", "Sub", "Mul", "Div"):
            yield opset, f"y = {op} (a, b)", {"a": draw(2, 3), "b": positive(3)}
            whole = {"a": np.array([7, -7, 8], np.int32), "b": np.array([2, 2, -3], np.int32)}
            yield opset, f"y = {op} (a, b)", whole
        for op in ("Max", "Min", "Sum", "Mean"):
            feeds = {"a": draw(2, 3), "b": draw(2, 3, seed=1)}
            yield opset, f"y = {op} (a, b)", feeds
            yield opset, f"y = {op} (a)", {"a": draw(2, 3)}
            if opset >= 8:
                yield opset, f"y = {op} (a, b)", {"a": draw(2, 3), "b": draw(1, 3, seed=1)}
        for op in ("Greater", "Less", "Equal"):
            kind = np.int64 if op == "Equal" else F32
            feeds = {"a": draw(2, 3, dtype=kind), "b": draw(3, seed=1, dtype=kind)}
            yield opset, f"y = {op} (a, b)", feeds
        for op in ("And", "Or", "Xor"):
            yield opset, f"y = {op} (a, b)", {"a": draw(2, 3) > 0, "b": draw(3, seed=2) > 0}
        yield opset, "y = Pow (a, b)", {"a": positive(2, 3), "b": draw(3)}
        yield opset, "y = MatMul (a, b)", {"a": draw(2, 2, 3), "b": draw(3, 4)}
        for c in ((3, 5), (5,), (3, 1), ()):
            form = "<alpha=0.5, beta=2.0, transA=1, transB=1>"
            feeds = {"a": draw(2, 3), "b": draw(5, 2), "c": draw(*c)}
            yield opset, f"y = Gemm {form} (a, b, c)", feeds
        if opset >= 12:
            yield opset, "y = Gemm (a, b)", {"a": draw(2, 3), "b": draw(3, 2)}
        for op in UNARY:
            yield opset, f"y = {op} (x)", {"x": positive(2, 3) / F32(8)}
        for op in SIGNED:
            yield opset, f"y = {op} (x)", {"x": draw(3, 4)}
        yield opset, "y = PRelu (x, s)", {"x": draw(2, 3, 4), "s": draw(3, 1)}
        yield opset, "y = Not (x)", {"x": draw(3) > 0}
        yield opset, "y = Identity (x)", {"x": draw(2)}
    for form in ("<min=-1.0, max=2.0>", "<min=0.5>", "<max=0.5>", ""):
        yield 7, f"y = Clip {form} (x)", {"x": draw(3, 4)}
    low, high = np.array(-1, F32), np.array(2, F32)
    for opset in (11, 12, 13):
        yield opset, "y = Clip (x, l, h)", {"x": draw(3, 4), "l": low, "h": high}
        yield opset, "y = Clip (x, , h)", {"x": draw(3, 4), "h": high}
        yield opset, "y = Clip (x, l)", {"x": draw(3, 4), "l": low}
        yield opset, "y = Clip (x)", {"x": draw(3, 4)}
    yield 13, "y = Clip (x, l, h)", {"x": draw(3, 4), "l": high, "h": low}
    for opset in (7, 10):
        yield opset, "y = Dropout <ratio=0.3> (x)", {"x": draw(3, 4)}
        yield opset, "y, m = Dropout (x)", {"x": draw(3, 4)}
    for opset in (12, 13):
        yield opset, "y, m = Dropout (x)", {"x": draw(3, 4)}
        yield opset, "y, m = Dropout (x, r)", {"x": draw(3, 4), "r": np.array(0.5, F32)}
    whole = {"a": np.array([7, -7, 7, -7], np.int64), "b": np.array([3, 3, -3, -3], np.int64)}
    for opset in (10, 13):
        yield opset, "y = Mod (a, b)", whole
        yield opset, "y = Mod <fmod=1> (a, b)", whole
        floats = {name: value.astype(F32) + F32(0.5) for name, value in whole.items()}
        yield opset, "y = Mod <fmod=1> (a, b)", floats
    for left, right in itertools.product((np.int32, np.int64, F32), repeat=2):
        feeds = {"a": np.array([2, 3], left), "b": np.array([3, 2], right)}
        yield 12, "y = Pow (a, b)", feeds
        yield 15, "y = Pow (a, b)", feeds
    for op in ("GreaterOrEqual", "LessOrEqual"):
        yield 12, f"y = {op} (a, b)", {"a": draw(2, 3), "b": draw(3)}
    for op in ("BitShift",):
        feeds = {"a": np.array([1, 8], np.uint8), "b": np.array([2, 1], np.uint8)}
        yield 11, f'y = {op} <direction="LEFT"> (a, b)', feeds
        yield 11, f'y = {op} <direction="RIGHT"> (a, b)', feeds
    yield 10, "y = IsInf (x)", {"x": np.array([1, np.inf, -np.inf, np.nan], F32)}
    yield 10, "y = IsInf <detect_negative=0> (x)", {"x": np.array([1, np.inf, -np.inf], F32)}
    yield 9, "y = IsNaN (x)", {"x": np.array([1, np.inf, np.nan], F32)}
    yield 11, "y = Round (x)", {"x": np.array([0.5, 1.5, -0.5, -2.5, 2.3], F32)}
    yield 9, "y = Erf (x)", {"x": draw(5)}
    yield 9, "y = Sign (x)", {"x": draw(5)}
    yield 9, "y = Where (c, a, b)", {"c": draw(2, 1) > 0, "a": draw(2, 3), "b": draw(3, seed=1)}
    for form in ("", "<lambd=1.0, bias=0.5>"):
        yield 9, f"y = Shrink {form} (x)", {"x": draw(3, 4)}
    nans = np.array([1, np.nan, -2, 0.5], F32)
    for op in ("Max", "Min"):
        yield 8, f"y = {op} (a, b)", {"a": nans, "b": np.array([np.nan, 1, 2, -0.5], F32)}
        yield 13, f"y = {op} (a, b)", {"a": nans, "b": np.array([np.nan, 1, 2, -0.5], F32)}
    yield 7, "y = Relu (x)", {"x": nans}
    yield 9, "y = Sign (x)", {"x": nans}


UNARY = ["Log", "Sqrt", "Reciprocal", "Exp", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan"]
SIGNED = [
    "Abs",
    "Neg",
    "Ceil",
    "Floor",
    "Relu",
    "LeakyRelu",
    "LeakyRelu <alpha=0.3>",
    "Elu",
    "Elu <alpha=2.0>",
    "Selu",
    "Selu <alpha=2.0, gamma=3.0>",
    "HardSigmoid",
    "HardSigmoid <alpha=0.5, beta=0.6>",
    "Sigmoid",
    "Tanh",
    "Softplus",
    "Softsign",
]


def normalisation() -> Iterator[Entry]:
    """BatchNormalization, InstanceNormalization, LRN, LpNormalization, MeanVariance..."""
    for shape, opset in itertools.product(((2, 3), (2, 3, 4), (2, 3, 4, 2)), (7, 8, 9, 13, 14, 15)):
        x = draw(*shape)
        if len(shape) == 2 and opset < 9:
            continue
        parts = {"s": positive(3), "b": draw(3), "m": draw(3, seed=1), "v": positive(3, seed=2)}
        yield opset, "y = BatchNormalization (x, s, b, m, v)", {"x": x, **parts}
        form = "<epsilon=0.1, momentum=0.5>"
        yield opset, f"y = BatchNormalization {form} (x, s, b, m, v)", {"x": x, **parts}
        if opset < 9:
            yield opset, "y = BatchNormalization <spatial=1> (x, s, b, m, v)", {"x": x, **parts}
            wide = {
                "s": positive(*shape[1:]),
                "b": draw(*shape[1:]),
                "m": draw(*shape[1:], seed=1),
                "v": positive(*shape[1:], seed=2),
            }
            yield opset, "y = BatchNormalization <spatial=0> (x, s, b, m, v)", {"x": x, **wide}
        if opset >= 14:
            form = "<training_mode=1, momentum=0.5>"
            node = f"y, rm, rv = BatchNormalization {form} (x, s, b, m, v)"
            yield opset, node, {"x": x, **parts}
    image = draw(2, 4, 3, 3)
    for opset in (7, 13):
        feeds = {"x": image, "s": positive(4), "b": draw(4)}
        yield opset, "y = InstanceNormalization <epsilon=0.01> (x, s, b)", feeds
        for size in (1, 3, 5):
            yield opset, f"y = LRN <size={size}, alpha=0.1, bias=2.0> (x)", {"x": image}
        for axis, p in itertools.product((0, 1, -1), (1, 2)):
            form = f"<axis={axis}, p={p}>"
            yield opset, f"y = LpNormalization {form} (x)", {"x": draw(3, 4)}
        if opset >= 9:
            yield opset, "y = MeanVarianceNormalization (x)", {"x": image}
            yield opset, "y = MeanVarianceNormalization <axes=[1, 2]> (x)", {"x": image}
    yield 9, "y = MeanVarianceNormalization (x)", {"x": image}
    yield 17, "y = LayerNormalization <axis=1> (x, s)", {"x": draw(2, 3, 4), "s": draw(3, 4)}


def pooling() -> Iterator[Entry]:
    """Convolutions and pools: padding, strides, dilations, ceil_mode, indices."""
    x = draw(1, 2, 7, 6)
    forms = [
        "kernel_shape=[2, 2]",
        "kernel_shape=[3, 2], strides=[2, 2]",
        "kernel_shape=[3, 3], pads=[1, 1, 1, 1]",
        "kernel_shape=[3, 3], strides=[2, 3], pads=[1, 0, 0, 1]",
        'kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER"',
        'kernel_shape=[2, 2], strides=[2, 2], auto_pad="SAME_LOWER"',
        'kernel_shape=[3, 3], strides=[2, 2], auto_pad="VALID"',
    ]
    for opset, form in itertools.product((7, 8, 10, 11, 12, 19, 22), forms):
        yield opset, f"y = MaxPool <{form}> (x)", {"x": x}
        yield opset, f"y = AveragePool <{form}> (x)", {"x": x}
        yield opset, f"y = AveragePool <{form}, count_include_pad=1> (x)", {"x": x}
        if opset >= 8:
            yield opset, f"y, i = MaxPool <{form}> (x)", {"x": x}
            yield opset, f"y, i = MaxPool <{form}, storage_order=1> (x)", {"x": x}
        if opset >= 10 and "auto_pad" not in form:
            yield opset, f"y = MaxPool <{form}, ceil_mode=1> (x)", {"x": x}
            yield opset, f"y = MaxPool <{form}, dilations=[2, 1]> (x)", {"x": x}
            yield opset, f"y = AveragePool <{form}, ceil_mode=1> (x)", {"x": x}
            with_pads = f"{form}, ceil_mode=1, count_include_pad=1"
            yield opset, f"y = AveragePool <{with_pads}> (x)", {"x": x}
            if opset >= 19:
                yield opset, f"y = AveragePool <{form}, dilations=[2, 1]> (x)", {"x": x}
    for opset, form, p in itertools.product((7, 11, 18), forms, (1, 2, 3)):
        yield opset, f"y = LpPool <{form}, p={p}> (x)", {"x": x}
    for opset, op in itertools.product((7, 22), ("GlobalMaxPool", "GlobalAveragePool")):
        yield opset, f"y = {op} (x)", {"x": x}
    yield 7, "y = GlobalLpPool <p=3> (x)", {"x": x}
    yield 7, "y = GlobalLpPool (x)", {"x": x}
    for rank in (1, 3):
        line = draw(2, 2, *(5,) * rank)
        size = ", ".join(["2"] * rank)
        for op, opset in itertools.product(("MaxPool", "AveragePool", "LpPool"), (7, 11)):
            yield opset, f"y = {op} <kernel_shape=[{size}]> (x)", {"x": line}
    weights = draw(4, 2, 3, 2)
    for opset, form in itertools.product(
        (7, 11),
        (
            "",
            "<strides=[2, 1], pads=[1, 0, 1, 1]>",
            "<dilations=[2, 2]>",
            '<auto_pad="SAME_UPPER", strides=[2, 2]>',
            '<auto_pad="SAME_LOWER", strides=[2, 2]>',
        ),
    ):
        yield opset, f"y = Conv {form} (x, w)", {"x": x, "w": weights}
        yield opset, f"y = Conv {form} (x, w, b)", {"x": x, "w": weights, "b": draw(4)}
    yield 7, "y = Conv <group=2> (x, w)", {"x": x, "w": draw(4, 1, 2, 2)}
    for opset, form in itertools.product(
        (7, 11),
        (
            "",
            "<strides=[2, 2], pads=[1, 1, 0, 0]>",
            "<strides=[2, 3], output_padding=[1, 2]>",
            "<strides=[2, 2], output_shape=[15, 12]>",
            '<strides=[2, 2], auto_pad="SAME_UPPER">',
            '<strides=[2, 2], auto_pad="SAME_LOWER">',
            "<dilations=[2, 1]>",
        ),
    ):
        feeds = {"x": x, "w": draw(2, 3, 3, 3)}
        yield opset, f"y = ConvTranspose {form} (x, w)", feeds
    yield 7, "y = ConvTranspose <group=2> (x, w)", {"x": x, "w": draw(2, 3, 2, 2)}
    pooled = {"x": draw(1, 1, 2, 2), "i": np.array([[[[5, 7], [13, 15]]]], np.int64)}
    for opset in (9, 11):
        form = "<kernel_shape=[2, 2], strides=[2, 2]>"
        yield opset, f"y = MaxUnpool {form} (x, i)", pooled


def resizing() -> Iterator[Entry]:
    """Upsample-7 (scales as an attribute), Upsample-9, Resize-10 and later."""
    x = draw(1, 2, 3, 4)
    scalings = [(1, 1, 2, 3), (1, 1, 1, 2), (1, 1, 2.5, 1.5)]
    for mode, scales in itertools.product(("nearest", "linear"), scalings):
        listed = ", ".join(f"{float(scale)}" for scale in scales)
        for opset in (7, 8):
            yield opset, f'y = Upsample <mode="{mode}", scales=[{listed}]> (x)', {"x": x}
        feeds = {"x": x, "s": np.array(scales, F32)}
        yield 9, f'y = Upsample <mode="{mode}"> (x, s)', feeds
        yield 10, f'y = Resize <mode="{mode}"> (x, s)', feeds
    for mode, scales in itertools.product(
        ("nearest", "linear"), ((1, 1, 0.5, 0.5), (1, 1, 0.6, 0.6), (1, 1, 2, 0.5), (1, 1, 1.3, 3))
    ):
        yield 10, f'y = Resize <mode="{mode}"> (x, s)', {"x": x, "s": np.array(scales, F32)}
    yield 10, "y = Resize (x, s)", {"x": draw(6), "s": np.array([0.4], F32)}
    yield 9, "y = Upsample (x, s)", {"x": draw(5), "s": np.array([2.3], F32)}
    yield 10, "y = Resize (x, s)", {"x": draw(2, 3, 4), "s": np.array([1, 2, 2], F32)}
    blank = np.array([], F32)
    modes = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
    for mode, how in itertools.product(("nearest", "linear", "cubic"), modes):
        form = f'mode="{mode}", coordinate_transformation_mode="{how}"'
        for scales in ((1, 1, 2, 3), (1, 1, 0.5, 1)):
            if how == "align_corners" and scales[2] < 1:
                continue
            feeds = {"x": x, "s": np.array(scales, F32)}
            yield 11, f"y = Resize <{form}> (x, r, s)", {"x": x, "r": blank, "s": feeds["s"]}
            yield 13, f"y = Resize <{form}> (x, , s)", feeds
            yield 18, f"y = Resize <{form}> (x, , s)", feeds
        sizes = {"x": x, "z": ints(1, 2, 5, 7)}
        yield 13, f"y = Resize <{form}> (x, , , z)", sizes
        yield 11, f"y = Resize <{form}> (x, r, s, z)", {"r": blank, "s": blank, **sizes}
    for nearest in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
        form = f'mode="nearest", nearest_mode="{nearest}"'
        feeds = {"x": x, "s": np.array((1, 1, 2, 0.5), F32)}
        yield 13, f"y = Resize <{form}> (x, , s)", feeds
    half = 'mode="nearest", coordinate_transformation_mode="tf_half_pixel_for_nn"'
    yield 11, f"y = Resize <{half}> (x, r, s)", {"x": x, "r": blank, "s": feeds["s"]}
    for mode, antialias in itertools.product(("linear", "cubic"), (0, 1)):
        form = f'mode="{mode}", axes=[3, 2], antialias={antialias}'
        yield 18, f"y = Resize <{form}> (x, , s)", {"x": x, "s": np.array((0.5, 1.5), F32)}
    ones, count = np.arange(24).reshape(1, 1, 4, 6), np.array((1, 1, 1.5, 2.3), F32)
    for kind in (np.uint8, np.int32):
        yield 10, 'y = Resize <mode="linear"> (x, s)', {"x": ones.astype(kind), "s": count}
    for opset, mode in itertools.product((11, 13), ("DCR", "CRD")):
        form = f'<blocksize=2, mode="{mode}">'
        yield opset, f"y = DepthToSpace {form} (x)", {"x": draw(1, 8, 2, 3)}
    yield 7, "y = DepthToSpace <blocksize=2> (x)", {"x": draw(1, 8, 2, 3)}
    yield 7, "y = SpaceToDepth <blocksize=2> (x)", {"x": draw(1, 2, 4, 6)}


def sampling() -> Iterator[Entry]:
    """GridSample-16 with the old names of its modes, and later."""
    feeds = {"x": draw(2, 3, 4, 5), "g": draw(2, 3, 2, 2, seed=5) / F32(2)}
    names = {16: ("bilinear", "bicubic", "nearest"), 20: ("linear", "cubic", "nearest")}
    for opset, align in itertools.product(names, (0, 1)):
        for mode in names[opset]:
            form = f'mode="{mode}", align_corners={align}'
            yield opset, f"y = GridSample <{form}> (x, g)", feeds
            for padding in ("border", "reflection", "zeros"):
                padded = f'{form}, padding_mode="{padding}"'
                wide = {**feeds, "g": feeds["g"] * F32(4)}
                yield opset, f"y = GridSample <{padded}> (x, g)", wide


def recurrent() -> Iterator[Entry]:
    """RNN, GRU, LSTM: directions, activations, clip, lengths, initial states."""
    steps, batch, wide, hidden = 3, 2, 4, 5
    x = draw(steps, batch, wide) / F32(4)
    for (op, gates), opset, direction in itertools.product(
        (("RNN", 1), ("GRU", 3), ("LSTM", 4)), (7, 14), ("forward", "reverse", "bidirectional")
    ):
        ways = 2 if direction == "bidirectional" else 1
        w = draw(ways, gates * hidden, wide) / F32(8)
        r = draw(ways, gates * hidden, hidden, seed=3) / F32(8)
        b = draw(ways, 2 * gates * hidden, seed=4) / F32(8)
        form = f'hidden_size={hidden}, direction="{direction}"'
        plain = {"x": x, "w": w, "r": r}
        outputs = "y, h, c" if op == "LSTM" else "y, h"
        yield opset, f"{outputs} = {op} <{form}> (x, w, r)", plain
        yield opset, f"{outputs} = {op} <{form}> (x, w, r, b)", {**plain, "b": b}
        yield opset, f"{outputs} = {op} <{form}, clip=0.25> (x, w, r, b)", {**plain, "b": b}
        lengths = {"l": np.array([2, 3], np.int32)}
        yield opset, f"{outputs} = {op} <{form}> (x, w, r, , l)", {**plain, **lengths}
        start = {"h0": draw(ways, batch, hidden, seed=5) / F32(4)}
        yield opset, f"{outputs} = {op} <{form}> (x, w, r, b, , h0)", {**plain, "b": b, **start}
        both = {**plain, "b": b, **lengths, **start}
        yield opset, f"{outputs} = {op} <{form}> (x, w, r, b, l, h0)", both
        if op == "GRU":
            linear = f"{form}, linear_before_reset=1"
            yield opset, f"y, h = GRU <{linear}> (x, w, r, b)", {**plain, "b": b}
            yield opset, f"y, h = GRU <{linear}> (x, w, r, b, l, h0)", both
        if op == "LSTM":
            peep = {"c0": draw(ways, batch, hidden, seed=6) / F32(4)}
            p = {"p": draw(ways, 3 * hidden, seed=7) / F32(8)}
            yield (
                opset,
                f"y, h, c = LSTM <{form}> (x, w, r, b, , h0, c0, p)",
                {**plain, "b": b, **start, **peep, **p},
            )
            yield (
                opset,
                f"y, h, c = LSTM <{form}, input_forget=1> (x, w, r, b)",
                {**plain, "b": b},
            )
        names = {"RNN": ["Relu"], "GRU": ["HardSigmoid", "Softsign"]}.get(
            op, ["HardSigmoid", "Softsign", "Tanh"]
        )
        acts = ", ".join(f'"{name}"' for name in names * ways)
        yield (
            opset,
            f"{outputs} = {op} <{form}, activations=[{acts}]> (x, w, r, b)",
            {
                **plain,
                "b": b,
            },
        )
    for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        feeds = {
            "x": draw(batch, steps, wide) / F32(4),
            "w": draw(1, gates * hidden, wide) / F32(8),
            "r": draw(1, gates * hidden, hidden) / F32(8),
        }
        yield 7, f"y = {op} <hidden_size={hidden}> (x, w, r)", feeds
        yield 7, f", h = {op} <hidden_size={hidden}> (x, w, r)", feeds


def scattering() -> Iterator[Entry]:
    """Scatter-9, ScatterElements, ScatterND, GatherElements, GatherND, OneHot, ..."""
    x = draw(3, 4)
    index = np.array([[1, 0, 2], [0, 2, 1]], np.int64)
    feeds = {"x": x, "i": index, "u": draw(2, 3, seed=1)}
    for opset in (9, 10):
        yield opset, "y = Scatter (x, i, u)", feeds
        yield opset, "y = Scatter <axis=1> (x, i, u)", feeds
    for opset in (11, 13, 16, 18):
        yield opset, "y = ScatterElements (x, i, u)", feeds
        yield opset, "y = ScatterElements <axis=-1> (x, i, u)", {**feeds, "i": index - 2}
        nd = {"x": x, "i": np.array([[0], [2]], np.int64), "u": draw(2, 4, seed=1)}
        yield opset, "y = ScatterND (x, i, u)", nd
    for reduction in ("add", "mul"):
        repeated = {**feeds, "i": index * 0}
        form = f'<reduction="{reduction}">'
        yield 16, f"y = ScatterElements {form} (x, i, u)", repeated
    for opset in (11, 13):
        yield opset, "y = GatherElements <axis=1> (x, i)", {"x": x, "i": index}
        yield opset, "y = GatherElements (x, i)", {"x": x, "i": index - 1}
        yield opset, "y = GatherND (x, i)", {"x": x, "i": np.array([[0, 1], [2, 3]], np.int64)}
    values = np.array([0.5, 2], F32)
    for opset, axis in itertools.product((9, 11), (-1, 0, 1)):
        hot = {"i": ints(0, 2, 3), "d": np.array(4, np.int64), "v": values}
        yield opset, f"y = OneHot <axis={axis}> (i, d, v)", hot
    yield 11, "y = OneHot (i, d, v)", {"i": ints(-1, 5, -4), "d": ints(4), "v": values}
    yield 9, "y = OneHot (i, d, v)", {"i": ints(1, 3, 9), "d": ints(4), "v": values}
    for opset in (9, 13):
        yield opset, "y = NonZero (x)", {"x": x}
    for opset, axis in itertools.product((9, 11), (0, 1)):
        picks = {"x": x, "c": np.array([True, False, True])}
        yield opset, f"y = Compress <axis={axis}> (x, c)", picks
        yield opset, "y = Compress (x, c)", picks
    for axes in ("batch_axis=1, time_axis=0", "batch_axis=0, time_axis=1"):
        lengths = {"x": draw(3, 3), "l": ints(1, 3, 2)}
        yield 10, f"y = ReverseSequence <{axes}> (x, l)", lengths
    for exclusive, reverse in itertools.product((0, 1), repeat=2):
        form = f"<exclusive={exclusive}, reverse={reverse}>"
        for opset in (11, 14):
            yield opset, f"y = CumSum {form} (x, a)", {"x": x, "a": np.array(1, np.int32)}
    for opset in (11,):
        yield opset, "y, i, j, c = Unique (x)", {"x": draw(9)}
        yield opset, "y, i, j, c = Unique <sorted=0> (x)", {"x": draw(9)}
        yield (
            opset,
            "y, i, j, c = Unique <axis=0> (x)",
            {"x": np.array([[1, 2], [0, 1], [1, 2]], F32)},
        )


def casts() -> Iterator[Entry]:
    """Cast, Constant, ConstantOfShape, EyeLike, Range."""
    kinds = [np.bool_, np.int8, np.uint8, np.int32, np.int64, np.float16, F32, np.float64]
    number = helper.np_dtype_to_tensor_dtype
    x = np.array([0, 1, 2.5, 3.75, 100], F32)
    for opset, source, target in itertools.product((7, 9, 13, 19), kinds, kinds):
        form = f"<to={number(np.dtype(target))}>"
        yield opset, f"y = Cast {form} (x)", {"x": x.astype(source)}
    words = np.array(["1", "-2.5", "3e2", "INF", "-inf", "NaN"], object)
    for opset in (9, 13):
        yield opset, "y = Cast <to=1> (x)", {"x": words}
        yield opset, "y = Cast <to=7> (x)", {"x": np.array(["1", "-20"], object)}
        yield opset, "y = Cast <to=8> (x)", {"x": np.array([1, -20], np.int64)}
        yield opset, "y = Cast <to=8> (x)", {"x": np.array([1.5, np.inf, np.nan, 0.1, 1e20], F32)}
        yield opset, "y = Cast <to=8> (x)", {"x": np.array([True, False])}
    for opset in (7, 9, 11, 12, 13):
        yield opset, "y = Constant <value = float[2] {1.5, 2.5}> ()", {}
    for form in ("value_float=1.5", "value_floats=[1.5, 2.0]", "value_int=3", "value_ints=[3, 4]"):
        yield 12, f"y = Constant <{form}> ()", {}
    for opset in (9, 20):
        yield opset, "y = ConstantOfShape (s)", {"s": ints(2, 3)}
        yield opset, "y = ConstantOfShape <value = int64[1] {7}> (s)", {"s": ints(2)}
        yield opset, "y = ConstantOfShape <value = int64[1] {7}> (s)", {"s": ints()}
        yield opset, "y = ConstantOfShape (s)", {"s": ints(0, 2)}
    yield 9, "y = EyeLike (x)", {"x": draw(3, 4)}
    yield 9, "y = EyeLike <k=1, dtype=7> (x)", {"x": draw(3, 4)}
    yield 9, "y = EyeLike <k=-1> (x)", {"x": draw(4, 3, dtype=np.int64)}
    for kind in (np.int32, np.int64, F32, np.float64):
        for start, stop, step in ((0, 5, 1), (5, 0, -2), (1, 1, 1), (3, 1, 1)):
            feeds = {
                "a": np.array(start, kind),
                "b": np.array(stop, kind),
                "c": np.array(step, kind),
            }
            yield 11, "y = Range (a, b, c)", feeds


def quantisation() -> Iterator[Entry]:
    """QuantizeLinear, DequantizeLinear and what goes with them."""
    for opset, kind in itertools.product((10, 13, 19, 21), (np.uint8, np.int8)):
        q = np.arange(-6, 6).astype(kind).reshape(3, 4)
        scale, zero = np.array(0.5, F32), np.array(3, kind)
        feeds = {"x": q, "s": scale, "z": zero}
        yield opset, "y = DequantizeLinear (x, s, z)", feeds
        yield opset, "y = DequantizeLinear (x, s)", {"x": q, "s": scale}
        yield opset, "y = QuantizeLinear (x, s, z)", {"x": draw(3, 4) * 40, "s": scale, "z": zero}
        yield opset, "y = QuantizeLinear (x, s)", {"x": draw(3, 4) * 40, "s": scale}
        if opset >= 13:
            axis = {"s": positive(4), "z": np.array([1, 2, 3, 4], kind)}
            yield opset, "y = DequantizeLinear <axis=1> (x, s, z)", {"x": q, **axis}
            yield opset, "y = QuantizeLinear <axis=1> (x, s, z)", {"x": draw(3, 4) * 9, **axis}
            yield opset, "y = DequantizeLinear <axis=-1> (x, s)", {"x": q, "s": axis["s"]}
    whole = np.array([100, -100], np.int32)
    yield 10, "y = DequantizeLinear (x, s)", {"x": whole, "s": np.array(0.5, F32)}
    yield 11, "y, s, z = DynamicQuantizeLinear (x)", {"x": draw(3, 4)}
    bytes_ = {"a": np.arange(6, dtype=np.uint8).reshape(2, 3)}
    other = {"b": np.arange(6, dtype=np.uint8).reshape(3, 2)}
    zeros = {"p": np.array(1, np.uint8), "q": np.array(2, np.uint8)}
    yield 10, "y = MatMulInteger (a, b, p, q)", {**bytes_, **other, **zeros}
    yield 10, "y = MatMulInteger (a, b)", {**bytes_, **other}
    image = {"x": np.arange(16, dtype=np.uint8).reshape(1, 1, 4, 4)}
    kernel = {"w": np.arange(4, dtype=np.uint8).reshape(1, 1, 2, 2)}
    yield 10, "y = ConvInteger (x, w, p)", {**image, **kernel, "p": zeros["p"]}
    scales = {"sa": np.array(0.5, F32), "sb": np.array(0.25, F32), "sy": np.array(2, F32)}
    node = "y = QLinearMatMul (a, sa, p, b, sb, q, sy, z)"
    order = {**bytes_, "sa": scales["sa"], "p": zeros["p"], **other, "sb": scales["sb"]}
    yield 10, node, {**order, "q": zeros["q"], "sy": scales["sy"], "z": np.array(4, np.uint8)}


def the_rest() -> Iterator[Entry]:
    """Einsum, Det, Trilu, NonMaxSuppression, StringNormalizer, sequences."""
    yield 12, 'y = Einsum <equation="ij,jk->ik"> (a, b)', {"a": draw(2, 3), "b": draw(3, 2)}
    yield 11, "y = Det (x)", {"x": draw(2, 3, 3)}
    yield 14, "y = Trilu <upper=0> (x)", {"x": draw(3, 4)}
    boxes = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3]]], F32)
    scores = np.array([[[0.9, 0.75, 0.6]]], F32)
    thresholds = {"m": ints(3), "i": np.array([0.5], F32), "t": np.array([0], F32)}
    for opset in (10, 11):
        node = "y = NonMaxSuppression (b, s, m, i, t)"
        yield opset, node, {"b": boxes, "s": scores, **thresholds}
        yield opset, "y = NonMaxSuppression (b, s)", {"b": boxes, "s": scores}
        many = {"b": np.abs(draw(2, 20, 4)), "s": np.round(draw(2, 3, 20, seed=1), 1)}
        form = "<center_point_box = 1>"
        yield opset, f"y = NonMaxSuppression {form} (b, s, m, i, t)", {**many, **thresholds}
        most = {"m": ints(4), "i": np.array([0.1], F32)}
        yield opset, "y = NonMaxSuppression (b, s, m, i)", {**many, **most}
    rois = {"r": np.array([[0, 0, 3, 3], [1, 1, 5, 4]], F32), "b": ints(0, 0)}
    for opset, mode in itertools.product((10, 16), ("avg", "max")):
        form = f'<output_height=2, output_width=2, sampling_ratio=2, mode="{mode}">'
        node = f"y = RoiAlign {form} (x, r, b)"
        yield opset, node, {"x": draw(1, 2, 6, 6), **rois}
    outside = {"r": np.array([[-9, -2, 1, 2], [4, 3, 9, 30]], F32), "b": ints(1, 0)}
    for half, mode in itertools.product(("half_pixel", "output_half_pixel"), ("avg", "max")):
        form = f'coordinate_transformation_mode="{half}", mode="{mode}", spatial_scale=0.5'
        node = f"y = RoiAlign <output_height=3, output_width=2, {form}> (x, r, b)"
        yield 16, node, {"x": draw(2, 3, 6, 5), **outside}
    yield (
        7,
        "y = MaxRoiPool <pooled_shape=[2, 2]> (x, r)",
        {
            "x": draw(1, 2, 6, 6),
            "r": np.array([[0, 0, 0, 3, 3], [0, 1, 1, 5, 4]], F32),
        },
    )
    grams = (
        'mode="TF", min_gram_length=2, max_gram_length=2, max_skip_count=0, ngram_counts=[0, 4], '
        "ngram_indexes=[0, 1, 2, 3, 4, 5, 6], pool_int64s=[2, 3, 5, 4, 5, 6, 7, 8, 6, 7]"
    )
    text = {"x": np.array([1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8], np.int32)}
    yield 9, f"y = TfIdfVectorizer <{grams}> (x)", text
