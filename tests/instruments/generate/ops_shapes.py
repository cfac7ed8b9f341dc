"""Ops that move elements: reshaping, slicing, joining, spreading."""

from __future__ import annotations

from onnx import TensorProto

from tests.instruments.generate.block import Block, NotHere
from tests.instruments.generate.templates import (
    an_axis,
    some_float,
    some_number,
    some_tensor,
    static,
    template,
)
from tests.instruments.generate.values import INT64, Value


def with_axes(b: Block, op: str, since: int, x: Value, axes: list[int], **more: int) -> Value:
    """An op whose axes are an input since some version, and an attribute before."""
    if b.version(op) >= since:
        return b.op(op, x, b.ints(*axes), **more)
    return b.op(op, x, axes=axes, **more)


@template(2)
def transpose(b: Block) -> None:
    x = some_tensor(b, rank=1)
    turn = b.choices.below(x.rank)
    perm = [*range(turn, x.rank), *range(turn)]
    b.op("Transpose", x, perm=None if b.choices.one_in(3) else perm)


@template(2)
def unsqueeze(b: Block) -> None:
    x = some_tensor(b)
    with_axes(b, "Unsqueeze", 13, x, [b.choices.below(x.rank + 1)])


@template()
def squeeze(b: Block) -> None:
    x = b.pick(lambda v: not v.sequence and 1 in v.shape)
    with_axes(b, "Squeeze", 13, x, [x.shape.index(1)])


@template(2)
def reshape(b: Block) -> None:
    x = some_tensor(b, rank=1)
    fixed = [axis for axis, dim in enumerate(x.shape) if isinstance(dim, int) and dim]
    options = [[-1], [0, -1], [*([0] * (x.rank - 1)), -1], [*([0] * x.rank), 1]]
    if x.rank > 1 and fixed == list(range(x.rank)):
        options.append([int(dim) for dim in reversed(x.shape)])
    b.op("Reshape", x, b.ints(*b.choices.pick(options)))


@template()
def flatten(b: Block) -> None:
    x = some_tensor(b, rank=1)
    b.op("Flatten", x, axis=b.choices.below(x.rank))


@template(2)
def join(b: Block) -> None:
    x = some_tensor(b, rank=1)
    axis = an_axis(b, x)
    others = [one for one in b.visible if one.like(x.elem, x.shape)]
    b.op("Concat", x, b.pick(others.__contains__), axis=axis)


@template(2)
def split(b: Block) -> None:
    x = some_tensor(b, rank=1)
    axis = an_axis(b, x)
    size = static(x, axis)
    sizes = [1, size - 1] if size > 1 else [1]
    if b.version("Split") >= 13:
        b.ops("Split", len(sizes), x, b.ints(*sizes), axis=axis)
    else:
        b.ops("Split", len(sizes), x, axis=axis, split=sizes)


@template(2)
def cut(b: Block) -> None:
    x = some_tensor(b, rank=1)
    axis = an_axis(b, x, since=10)
    start, end = b.choices.pick([(0, 2), (1, 100), (-2, 100), (0, -1)])
    if b.version("Slice") < 10:
        made = b.op("Slice", x, starts=[start], ends=[end], axes=[axis])
    elif b.choices.one_in(3):
        made = b.op("Slice", x, b.ints(-1), b.ints(-100), b.ints(axis), b.ints(-1))
    else:
        made = b.op("Slice", x, b.ints(start), b.ints(end), b.ints(axis))
    b.visible[-1] = b.of_unknown_size(made, axis, x.shape[axis])


@template(2)
def gather(b: Block) -> None:
    x = some_tensor(b, rank=1)
    axis = an_axis(b, x)
    last = static(x, axis) - 1
    first = -last - 1 if b.program.opset >= 11 and b.choices.one_in(4) else 0
    if b.choices.one_in(2):
        b.op("Gather", x, b.scalar(first), axis=axis)
    else:
        b.op("Gather", x, b.ints(last, first), axis=axis)


@template()
def gather_each(b: Block) -> None:
    x = b.pick(lambda v: not v.sequence and v.shape[:1] not in ((), (0,)))
    if any(not isinstance(dim, int) for dim in x.shape):
        raise NotHere
    index = b.op("ConstantOfShape", b.ints(*(int(dim) for dim in x.shape)), value=_zero())
    b.op("GatherElements", x, index, axis=an_axis(b, x))


@template()
def gather_points(b: Block) -> None:
    x = b.pick(lambda v: not v.sequence and v.shape[:1] not in ((), (0,)))
    static(x, 0)
    b.op("GatherND", x, b.op("Unsqueeze", b.ints(0, 0), b.ints(1)))


@template()
def scatter(b: Block) -> None:
    x = some_tensor(b, rank=1)
    size = static(x, 0)
    update = b.want(x.elem, (1, *x.shape[1:]))
    i = b.op("Unsqueeze", b.ints(b.choices.below(size)), b.ints(1))
    b.op("ScatterND", x, i, update)


@template()
def spread(b: Block) -> None:
    x = some_tensor(b)
    kind = b.choices.below(3)
    if kind == 0:
        b.op("Expand", x, b.ints(2, *[1] * x.rank))
    elif kind == 1 and x.rank:
        b.op("Tile", x, b.ints(*[2] * x.rank))
    else:
        b.op("Expand", x, b.op("Shape", some_tensor(b)) if not x.rank else b.op("Shape", x))


@template()
def pad(b: Block) -> None:
    x = some_float(b, rank=1)
    before, behind = [0] * x.rank, [1] * x.rank
    if b.version("Pad") < 11:
        b.op("Pad", x, pads=[*before, *behind], value=0.5)
    else:
        b.op("Pad", x, b.ints(*before, *behind), b.scalar(2, x.elem))


@template(2)
def measure(b: Block) -> None:
    x = some_tensor(b)
    if b.choices.one_in(3):
        b.op("Size", x)
        return
    shape = b.op("Shape", x)
    if x.rank and b.choices.one_in(2):
        b.op("Gather", shape, b.scalar(b.choices.below(x.rank)))
    elif b.choices.one_in(2):
        b.op("ConstantOfShape", shape, value=_zero(b.choices.pick([TensorProto.FLOAT, INT64])))


@template()
def counted(b: Block) -> None:
    if b.choices.one_in(2):
        b.op("Range", b.scalar(0), b.scalar(b.choices.below(4) + 1), b.scalar(1))
    else:
        b.op("EyeLike", b.pick(lambda v: v.is_float and not v.sequence and v.rank == 2))


@template()
def triangle(b: Block) -> None:
    b.op("Trilu", some_float(b, rank=2), upper=b.choices.below(2))


@template()
def chosen(b: Block) -> None:
    """What the values of a tensor choose: the sizes are known by nobody before."""
    x = some_number(b, rank=1, smooth=True)
    kind = b.choices.below(3)
    if kind == 0:
        b.op("NonZero", x)
    elif kind == 1:
        flags = b.want(TensorProto.BOOL, x.shape[:1], smooth=True)
        b.op("Compress", x, flags, axis=0)
    else:
        b.op("Unique", x)


@template()
def one_hot(b: Block) -> None:
    """Whole indices, or fractions, which are cut off."""
    kinds = (INT64, TensorProto.FLOAT)
    x = b.pick(lambda v: v.elem in kinds and not v.sequence and v.rank < 3 and not v.rough)
    b.op("OneHot", x, b.scalar(3), b.want(TensorProto.FLOAT, (2,)), axis=-1)


@template()
def blocks(b: Block) -> None:
    x = b.want(TensorProto.FLOAT, (1, 4, 2, 2))
    b.op(b.choices.pick(["DepthToSpace", "SpaceToDepth"]), x, blocksize=2)


def _zero(elem: int = INT64) -> TensorProto:
    return TensorProto(data_type=elem, dims=[1], raw_data=bytes({1: 4, 7: 8}[elem]))
