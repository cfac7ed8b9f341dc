"""Operators that move elements: the sizes that they give and require, and the origin of each
element of the output."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto, numpy_helper

from passes.ir.attributes import attribute, attribute_proto, attributes, number, text
from passes.ir.operators import op_of
from passes.ir.versions import NEGATIVE_AXES
from passes.operators.contract import (
    TRACED,
    Choice,
    Contract,
    Index,
    InOrder,
    Item,
    Least,
    Most,
    Need,
    Number,
    Operands,
    Place,
    Product,
    Quotient,
    Read,
    Rest,
    Size,
    Source,
    Sum,
    Unstated,
    Value,
    axes_in,
    indices,
    joined,
    less,
    spread_at,
)


def _not_negative(
    numbers: Sequence[Number], what: str = "size", *, sure: bool = False
) -> list[Need]:
    why = f"a {what} is not negative"
    return [Need(one, "least", 0, why=why, sure=sure) for one in numbers]


def _in_axis(index: Number, size: Number, then: Source, other: Source) -> Choice:
    """An element where an index is located in an axis, else another one."""
    return Choice([index, less(less(size, 1), index)], then, other)


@TRACED.enter("CenterCropPad")
def _centered(given: Operands) -> Contract:
    x, wanted = given.sizes(0), given.list(1)
    sizes, at, chosen = list[Number](x), indices(x), attributes(given.node, "axes")
    axes = axes_in(range(len(x)) if chosen is None else chosen, len(x))
    if len(wanted) != len(axes):
        raise Unstated
    made: Source = Read(0, at)
    for axis, size in zip(axes, wanted, strict=True):
        cut, added = (Most([less(*pair), 0]) for pair in ((x[axis], size), (size, x[axis])))
        at[axis] = Sum([at[axis], Quotient([cut, 2]), Product([-1, Quotient([added, 2])])])
        sizes[axis] = size
        made = _in_axis(at[axis], x[axis], made, Value(0, 0))
    return Contract(sizes, _not_negative(wanted), elements=[made])


@TRACED.enter("Concat")
def _concat(given: Operands) -> Contract:
    first = given.sizes(0)
    axis = given.axis(len(first), 1)
    shapes = [given.sizes(place, len(first)) for place in range(len(given.node.input))]
    needs = [
        Need(size, "equal", first[size.axis], why="the other sizes agree")
        for shape in shapes[1:]
        for size in shape
        if size.axis != axis
    ]
    along = [shape[axis] for shape in shapes]
    before, after = indices(first)[:axis], indices(first)[axis + 1 :]
    reads: list[Source] = [
        Read(place, [*before, less(Index(axis), Sum(along[:place])), *after])
        for place in range(len(shapes))
    ]
    made = reads.pop()
    for place, one in reversed([*enumerate(reads)]):
        made = Choice([less(Sum([*along[: place + 1], -1]), Index(axis))], one, made)
    sizes = [*first[:axis], Sum(along), *first[axis + 1 :]]
    return Contract(sizes, needs, complete=True, elements=[made])


@TRACED.enter("ConstantOfShape")
def _filled(given: Operands) -> Contract:
    sizes, value = given.list(0), attribute_proto(given.node, "value")
    item = np.zeros(1, np.float32) if value is None else numpy_helper.to_array(value.t)
    if item.size != 1:
        raise Unstated
    kind = TensorProto.FLOAT if value is None else value.t.data_type
    needs = _not_negative(sizes, sure=True)
    return Contract(sizes, needs, elements=[Value(item.ravel()[0], kind)])


@TRACED.enter("DepthToSpace", "SpaceToDepth")
def _blocks(given: Operands) -> Contract:
    (n, c, h, w), by = given.sizes(0, 4), attribute(given.node, "blocksize", 1)
    at, why = indices(range(4)), "blocks fill the axis"
    if by < 1:
        raise Unstated
    if op_of(given.node) == "SpaceToDepth":
        sizes: list[Number] = [n, Product([c, by * by]), Quotient([h, by]), Quotient([w, by])]
        block = Quotient([at[1], c])
        places = zip(at[2:], (Quotient([block, by]), Rest([block, by])), strict=True)
        read = [at[0], Rest([at[1], c]), *(Sum([Product([i, by]), j]) for i, j in places)]
        needs = [Need(one, "multiple", by, why=why, sure=False) for one in (h, w)]
        return Contract(sizes, needs, elements=[Read(0, read)])
    deep = Quotient([c, by * by])
    inside = Sum([Product([Rest([at[2], by]), by]), Rest([at[3], by])])
    rows = text(given.node, "mode", "DCR") == "DCR"
    place = Sum([Product([inside, deep]), at[1]] if rows else [Product([at[1], by * by]), inside])
    read = [at[0], place, *(Quotient([one, by]) for one in at[2:])]
    needs = [Need(c, "multiple", by * by, why=why, sure=False)]
    sizes = [n, deep, Product([h, by]), Product([w, by])]
    return Contract(sizes, needs, elements=[Read(0, read)])


@TRACED.enter("Expand")
def _expand(given: Operands) -> Contract:
    x, shape = given.sizes(0), given.list(1)
    sizes, needs = joined(x, shape)
    read = Read(0, spread_at(x, sizes))
    needs = [*needs, *_not_negative(shape, sure=True)]
    return Contract(sizes, needs, complete=True, elements=[read])


@TRACED.enter("EyeLike")
def _diagonal(given: Operands) -> Contract:
    kind = attribute(given.node, "dtype", 0)
    off = less(less(Index(1), Index(0)), attribute(given.node, "k", 0))
    made = Choice([off, Product([-1, off])], Value(1, kind), Value(0, kind))
    return Contract(given.sizes(0, 2), elements=[made])


@TRACED.enter("Flatten")
def _flatten(given: Operands) -> Contract:
    x, axis = given.sizes(0), attribute(given.node, "axis", 1)
    if not -len(x) <= axis <= len(x):
        raise Unstated
    cut = axis + len(x) if axis < 0 else axis
    return Contract([Product(x[:cut]), Product(x[cut:])], elements=[InOrder(0)])


@TRACED.enter("Gather")
def _gather(given: Operands) -> Contract:
    x, index = given.sizes(0), given.sizes(1)
    axis, chosen = given.axis(len(x), 0), given.constant(given.node.input[1])
    least = 0
    if chosen is not None and chosen.size and chosen.dtype.kind in "iu":
        if chosen.min() < 0 and given.opset < NEGATIVE_AXES:
            raise Unstated
        least = max(int(chosen.max()) + 1, -int(chosen.min()))
    needs = [Need(x[axis], "least", least, why="an index is in range")]
    sizes = [*x[:axis], *index, *x[axis + 1 :]]
    place = Place([Item(1, indices(index, axis)), x[axis]])
    after = indices(x[axis + 1 :], axis + len(index))
    read = Read(0, [*indices(x[:axis]), place, *after])
    return Contract(sizes, needs, complete=chosen is not None, elements=[read])


@TRACED.enter("GatherElements")
def _gather_elements(given: Operands) -> Contract:
    x, index = given.sizes(0), given.sizes(1)
    if len(x) != len(index):
        return Contract(index)
    axis, at = given.axis(len(x), 0), indices(x)
    why, pairs = "the other axes are as long", zip(x, index, strict=True)
    others = [
        Need(*(own, "least", one), why=why, sure=False) for own, one in pairs if own.axis != axis
    ]
    read = [*at[:axis], Place([Item(1, at), x[axis]]), *at[axis + 1 :]]
    return Contract(index, others, elements=[Read(0, read)])


@TRACED.enter("GatherND")
def _gather_nd(given: Operands) -> Contract:
    x, index, batch = given.sizes(0), given.sizes(1), attribute(given.node, "batch_dims", 0)
    count = (given.dims(given.node.input[1]) or [None])[-1]
    if not isinstance(count, int) or not 0 < count <= len(x) - batch or len(index) <= batch:
        raise Unstated
    at, why = indices(index[:-1]), "the batch sizes agree"
    pairs = zip(x[:batch], index[:batch], strict=True)
    needs = [Need(*(own, "equal", one), why=why, sure=False) for own, one in pairs]
    places = [Place([Item(1, [*at, part]), x[batch + part]]) for part in range(count)]
    rest = x[batch + count :]
    read = Read(0, [*at[:batch], *places, *indices(rest, len(at))])
    return Contract([*index[:-1], *rest], needs, elements=[read])


@TRACED.enter("Identity")
def _same(given: Operands) -> Contract:
    return Contract(given.sizes(0), elements=[Read(0, indices(given.sizes(0)))])


@TRACED.enter("OneHot")
def _one_hot(given: Operands) -> Contract:
    sizes, depth = [*given.sizes(0)], Item(1)
    (axis,) = axes_in([attribute(given.node, "axis", -1)], len(sizes) + 1)
    at = indices(range(len(sizes) + 1))
    item = Item(0, [*at[:axis], *at[axis + 1 :]])
    needs = [
        Need(given.sizes(2, 1)[0], "equal", 2, why="there are two values", sure=False),
        Need(item, "least", Product([-1, depth]), why="an index is in range", sure=False),
        Need(depth, "least", Sum([item, 1]), why="an index is in range", sure=False),
        Need(depth, "least", 1, why="the depth is not 0", sure=False),
    ]
    made: Source = Read(2, [0])
    for off in (less(at[axis], item), less(at[axis], Sum([item, depth]))):
        made = Choice([off, Product([-1, off])], Read(2, [1]), made)
    return Contract([*sizes[:axis], depth, *sizes[axis:]], needs, elements=[made])


@TRACED.enter("Pad")
def _pad(given: Operands) -> Contract:
    x, mode, chosen = given.sizes(0), text(given.node, "mode", "constant"), given.numbers(3, "axes")
    pads = given.list(1, "pads")
    if chosen is None and given.has(3):
        raise Unstated
    axes = axes_in(range(len(x)) if chosen is None else chosen, len(x))
    if len(pads) != 2 * len(axes):
        raise Unstated
    sizes, at, needs = list[Number](x), indices(x), []
    made: Source = Read(0, at)
    agreed = _not_negative(pads, "width")
    fill = Read(2) if given.has(2) else Value(number(given.node, "value", 0), 0)
    for axis, *ends in zip(axes, pads, pads[len(axes) :], strict=False):
        sizes[axis], at[axis] = Sum([x[axis], *ends]), less(at[axis], ends[0])
        made = _in_axis(at[axis], x[axis], made, fill)
        known = [end if isinstance(end, int) else 0 for end in ends]
        least = max(known) + 1 if mode == "reflect" else -sum(min(end, 0) for end in known)
        needs.append(Need(x[axis], "least", least, why="its end is not cut off", sure=False))
    elements = [made] if mode == "constant" else []
    return Contract(sizes, needs, elements=elements, agreed=agreed)


@TRACED.enter("Range")
def _counted(given: Operands) -> Contract:
    step, start = given.numbers(2, ""), Item(0)
    if any(given.sizes(place, 0) for place in range(3)) or not step or not step[0]:
        raise Unstated
    made = Value(Sum([start, Product([Index(0), step[0]])]), 0)
    return Contract([_steps(start, Item(1), step[0])], elements=[made])


def _steps(start: Number, end: Number, step: int) -> Number:
    """The number of steps before an end."""
    length = less(end, start) if step > 0 else less(start, end)
    return Most([Quotient([Sum([length, abs(step) - 1]), abs(step)]), 0])


@TRACED.enter("ReverseSequence")
def _reversed(given: Operands) -> Contract:
    x, lengths, at = given.sizes(0), given.sizes(1, 1), indices(given.sizes(0))
    time, batch = attribute(given.node, "time_axis", 0), attribute(given.node, "batch_axis", 1)
    if sorted((time, batch)) != [0, 1] or len(x) < 2:
        raise Unstated
    length, why = Item(1, [at[batch]]), "the lengths are within the time"
    needs = [
        Need(x[batch], "equal", lengths[0], why="there is a length for each row", sure=False),
        Need(length, "least", 0, why=why, sure=False),
        Need(x[time], "least", length, why=why, sure=False),
    ]
    back = less(less(length, 1), at[time])
    read = [back if axis == time else one for axis, one in enumerate(at)]
    return Contract(x, needs, elements=[Choice([back], Read(0, read), Read(0, at))])


@TRACED.enter("Shape")
def _shape(given: Operands) -> Contract:
    sizes = given.sizes(0)[attribute(given.node, "start", 0) : attribute(given.node, "end", None)]
    made: Source = Value(sizes[-1] if sizes else 0)
    for place, size in reversed([*enumerate(sizes[:-1])]):
        made = Choice([less(place, Index(0))], Value(size), made)
    return Contract([len(sizes)], elements=[made])


@TRACED.enter("Size")
def _size(given: Operands) -> Contract:
    return Contract([], elements=[Value(Product(given.sizes(0)))])


@TRACED.enter("Slice")
def _sliced(given: Operands) -> Contract:
    starts, ends = given.list(1, "starts"), given.list(2, "ends")
    x, axes, steps = given.sizes(0), given.numbers(3, "axes"), given.numbers(4, "steps")
    if (axes is None and given.has(3)) or (steps is None and given.has(4)):
        raise Unstated
    steps = [1] * len(starts) if steps is None else steps
    axes = axes_in(range(len(starts)) if axes is None else axes, len(x))
    if 0 in steps or not len(axes) == len(starts) == len(ends) == len(steps):
        raise Unstated
    sizes, at, needs = list[Number](x), indices(x), []
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        if step < 0:
            why = "a reversed Slice does not start before the first element"
            inside = Sum([start, Most([x[axis], 1])])
            needs.append(Need(inside, "least", 0, why=why, sure=False))
        first, last = (_clamped(bound, x[axis], step) for bound in (start, end))
        sizes[axis], at[axis] = _steps(first, last, step), Sum([first, Product([at[axis], step])])
    return Contract(sizes, needs, elements=[Read(0, at)])


def _clamped(bound: Number, size: Size, step: int) -> Number:
    """A bound of a Slice, within its axis."""
    low, high = (0, size) if step > 0 else (-1, less(size, 1))
    return Most([Least([Place([bound, size]), high]), low])


@TRACED.enter("Split")
def _split(given: Operands) -> Contract:
    """Parts of given sizes, or equal ones; of unequal ones that are not given, executors differ."""
    x, count, listed = given.sizes(0), len(given.node.output), given.numbers(1, "split")
    axis = given.axis(len(x), 0)
    if given.has(1) or listed:
        parts = given.list(1, "split")
        needs = [
            Need(x[axis], "equal", Sum(parts), why="the parts add up to the axis"),
            *_not_negative(parts),
        ]
    else:
        parts = [Quotient([x[axis], count])] * count
        why = "the parts are of equal size"
        needs = [Need(x[axis], what, count, why=why, sure=False) for what in ("least", "multiple")]
    if len(parts) != count or attribute(given.node, "num_outputs", count) != count:
        raise Unstated
    at, each, reads = indices(x), [], []
    complete = bool(listed) or not given.has(1)
    for place, part in enumerate(parts):
        each.append([*x[:axis], part, *x[axis + 1 :]])
        index = Sum([at[axis], *parts[:place]])
        reads.append(Read(0, [*at[:axis], index, *at[axis + 1 :]]))
    return Contract([*x[:axis], None, *x[axis + 1 :]], needs, complete, each, reads)


@TRACED.enter("Squeeze")
def _squeeze(given: Operands) -> Contract:
    """Without axes it removes those of size 1; of an empty list executors differ."""
    x, axes, dims = given.sizes(0), given.numbers(1, "axes"), given.dims(given.node.input[0]) or ()
    if axes is None and not given.has(1) and all(isinstance(size, int) for size in dims):
        axes = [axis for axis, size in enumerate(dims) if size == 1]
    elif not axes:
        raise Unstated
    gone = axes_in(axes, len(x))
    needs = [Need(x[axis], "equal", 1, why="a squeezed axis has size 1") for axis in gone]
    kept = [size for size in x if size.axis not in gone]
    read = Read(0, [Index(kept.index(size)) if size in kept else 0 for size in x])
    return Contract(kept, needs, complete=True, elements=[read])


@TRACED.enter("Tile")
def _tiled(given: Operands) -> Contract:
    x, repeats = given.sizes(0), given.list(1)
    if len(repeats) != len(x):
        raise Unstated
    read = Read(0, [Rest(pair) for pair in zip(indices(x), x, strict=True)])
    sizes = [Product(pair) for pair in zip(x, repeats, strict=True)]
    return Contract(sizes, _not_negative(repeats, "repeat"), elements=[read])


@TRACED.enter("Transpose")
def _transpose(given: Operands) -> Contract:
    x = given.sizes(0)
    order = attributes(given.node, "perm") or [*range(len(x))][::-1]
    if sorted(order) != [*range(len(x))]:
        raise Unstated
    read = Read(0, [Index(order.index(axis)) for axis in range(len(x))])
    return Contract([x[axis] for axis in order], complete=True, elements=[read])


@TRACED.enter("Trilu")
def _triangle(given: Operands) -> Contract:
    x, k = given.sizes(0), Item(1) if given.has(1) else 0
    if len(x) < 2 or (k and given.sizes(1, 0)):
        raise Unstated
    above = less(less(Index(len(x) - 1), Index(len(x) - 2)), k)
    kept = above if attribute(given.node, "upper", 1) else Product([-1, above])
    return Contract(x, elements=[Choice([kept], Read(0, indices(x)), Value(0, 0))])


@TRACED.enter("Unsqueeze")
def _unsqueeze(given: Operands) -> Contract:
    x, axes = given.sizes(0), given.numbers(1, "axes")
    if not axes:  # executors differ
        raise Unstated
    rank = len(x) + len(axes)
    kept = [axis for axis in range(rank) if axis not in axes_in(axes, rank)]
    sizes = [x[kept.index(axis)] if axis in kept else 1 for axis in range(rank)]
    return Contract(sizes, complete=True, elements=[Read(0, [*map(Index, kept)])])
