"""Reductions, products, normalizations: ops that join elements."""

from __future__ import annotations

from onnx import TensorProto

from tests.instruments.generate.block import Block, NotHere
from tests.instruments.generate.ops_shapes import with_axes
from tests.instruments.generate.templates import an_axis, some_float, some_number, static, template
from tests.instruments.generate.values import FLOAT

_REDUCERS = (
    *("ReduceSum", "ReduceMean", "ReduceL1", "ReduceSumSquare", "ReduceLogSumExp", "ReduceL2"),
    "ReduceProd",
)


@template(3)
def reduce(b: Block) -> None:
    op = b.choices.pick(_REDUCERS)
    x = some_float(b, rank=1) if "L" in op or op == "ReduceMean" else some_number(b, rank=1)
    since = 13 if op == "ReduceSum" else 18
    with_axes(b, op, since, x, [an_axis(b, x)], keepdims=b.choices.below(2))


@template()
def reduce_to_extreme(b: Block) -> None:
    x = some_number(b, rank=1)
    axis = an_axis(b, x)
    static(x, axis)
    op = b.choices.pick(["ReduceMax", "ReduceMin"])
    with_axes(b, op, 18, x, [axis], keepdims=b.choices.below(2))


@template()
def reduce_all(b: Block) -> None:
    b.op("ReduceSum", some_number(b, rank=1), keepdims=b.choices.below(2))


@template()
def position_of_extreme(b: Block) -> None:
    x = some_number(b, rank=1, smooth=True)
    axis = an_axis(b, x)
    static(x, axis)
    b.op(b.choices.pick(["ArgMax", "ArgMin"]), x, axis=axis, keepdims=b.choices.below(2))


@template(2)
def running(b: Block) -> None:
    x = some_number(b, rank=1)
    axis = b.scalar(b.choices.below(x.rank))
    flags = {"exclusive": b.choices.below(2), "reverse": b.choices.below(2)}
    b.op("CumSum", x, axis, **flags)


@template(2)
def soft(b: Block) -> None:
    x = some_float(b, rank=1)
    b.op(b.choices.pick(["Softmax", "LogSoftmax"]), x, axis=x.rank - 1)


@template()
def hard(b: Block) -> None:
    x = some_float(b, rank=1, smooth=True)
    static(x, x.rank - 1)
    b.op("Hardmax", x, axis=x.rank - 1)


@template()
def best(b: Block) -> None:
    x = some_float(b, rank=1, smooth=True)
    static(x, x.rank - 1)
    if b.version("TopK") < 10:
        b.ops("TopK", 2, x, k=1, axis=x.rank - 1)
    else:
        b.ops("TopK", 2, x, b.ints(1), axis=-1)


@template(4)
def matrix_product(b: Block) -> None:
    x = some_float(b, rank=1)
    inner = static(x, x.rank - 1)
    b.op("MatMul", x, b.want(x.elem, (inner, b.choices.below(3) + 1)))


@template()
def gemm(b: Block) -> None:
    x = b.pick(lambda v: v.is_float and not v.sequence and v.rank == 2)
    inner, wide = static(x, 1), b.choices.below(3) + 1
    turned = b.choices.below(2)
    weight = b.want(x.elem, (wide, inner) if turned else (inner, wide))
    b.op("Gemm", x, weight, b.want(x.elem, (wide,)), transB=turned, alpha=0.5)


@template()
def einsum(b: Block) -> None:
    x = b.pick(lambda v: v.is_float and not v.sequence and v.rank == 2)
    equation = b.choices.pick(["ij,jk->ik", "ij,jk->k", "ij,jk->ikj"])
    b.op("Einsum", x, b.want(x.elem, (static(x, 1), 2)), equation=equation)


@template()
def convolution(b: Block) -> None:
    x = b.want(FLOAT, (1, 2, 4))
    b.op("Conv", x, b.want(FLOAT, (2, 2, 2)), pads=[1, 0], strides=[b.choices.below(2) + 1])


@template()
def pooling(b: Block) -> None:
    x = b.want(FLOAT, b.choices.pick([(1, 2, 4), (2, 1, 3, 3)]))
    op = b.choices.pick(["MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "LpPool"])
    b.op(op, x, kernel_shape=None if "Global" in op else [2] * (x.rank - 2))


@template()
def normalization(b: Block) -> None:
    x = some_float(b, rank=2)
    size = static(x, 1)
    kind = b.choices.below(5)
    scales = [b.want(x.elem, (size,)) for _ in range(2)]
    if kind == 0:
        b.op("InstanceNormalization", x, *scales)
    elif kind == 1:
        b.op("LayerNormalization", x, b.want(x.elem, x.shape[-1:]), axis=-1)
    elif kind == 2:
        b.op("LpNormalization", x, axis=x.rank - 1, p=2)
    elif kind == 3:
        positive = b.op("Abs", b.want(x.elem, (size,)))
        b.op("BatchNormalization", x, *scales, b.want(x.elem, (size,)), positive)
    elif x.rank == 4:
        b.op("LRN", x, size=3)
    else:
        b.op("MeanVarianceNormalization", x, axes=[1])


@template()
def quantized(b: Block) -> None:
    x = some_float(b, smooth=True)
    if x.elem != FLOAT:
        raise NotHere
    scale, zero = b.scalar(2, FLOAT), b.scalar(3, TensorProto.UINT8)
    small = b.op("QuantizeLinear", x, scale, zero)
    b.op("DequantizeLinear", small, scale, zero)


@template()
def recurrent(b: Block) -> None:
    x = b.want(FLOAT, b.choices.pick([(2, 1, 2), ("T", "B", 2)]))
    op, gates = b.choices.pick([("RNN", 1), ("GRU", 3), ("LSTM", 4)])
    weights = [b.want(FLOAT, (1, gates * 2, 2)) for _ in range(2)]
    b.ops(op, 2, x, *weights, hidden_size=2)


@template()
def reversed_rows(b: Block) -> None:
    x = some_float(b, rank=2)
    longest, rows = static(x, 0), static(x, 1)
    lengths = [b.choices.below(longest) + 1 for _ in range(rows)]
    b.op("ReverseSequence", x, b.ints(*lengths))
