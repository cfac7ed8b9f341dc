"""Ops that join rows with rows, or cut and pad them along their axes."""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from passes.vectorize.axes import all_axes, attribute, shifted, shifted_input, text
from passes.vectorize.ops.indexing import taken
from passes.vectorize.reshaping import exactly, row_shape, row_size
from passes.vectorize.vectorizer import Vectorizer, batched
from passes.writing import spelling

_PAD_HAS_AXES = 18


@batched("Concat")
def concat(node: NodeProto, at: Vectorizer) -> None:
    """Nothing broadcasts: what is the same for all rows is spread over them."""
    axis = shifted(attribute(node, "axis", 0))
    at.again(node, [at.spread(name) for name in node.input], axis=axis)


@batched("Split")
def split(node: NodeProto, at: Vectorizer) -> None:
    """The axis, 0 by default, moves by one."""
    at.only_rows(node, 1)
    at.again(node, axis=shifted(attribute(node, "axis", 0)))


@batched("Slice")
def slice_(node: NodeProto, at: Vectorizer) -> None:
    """Without axes the first ones of a row are meant, as many as there are starts."""
    at.only_rows(node, 1, 2, 3, 4)
    x, starts, ends, axes, *steps = [*node.input, ""][: max(4, len(node.input))]
    if axes:
        moved = shifted_input(at, axes)
    elif isinstance(count := at.dims(starts)[0], int):
        moved = at.author.ints(*all_axes(count))
    else:
        every = spelling.arange(at.author, at.op("Shape", starts))
        moved = at.op("Add", every, at.author.ints(1))
    if at.elem_type(starts) != TensorProto.INT64:  # all bounds are of one type
        moved = at.op("Cast", moved, to=at.elem_type(starts))
    at.again(node, [x, starts, ends, moved, *steps])


@batched("Pad")
def pad(node: NodeProto, at: Vectorizer) -> set[str] | None:
    """The new axis is not padded."""
    at.only_rows(node, 1, 3)
    x, pads, value, axes = [*node.input, "", ""][:4]
    if value and at.carries(value):
        if text(node, "mode", "constant") == "constant":
            _pad_each(node, at)
            return None
        value = ""  # it plays no part
    if not at.carries(x):
        at.again(node, _without_last([x, pads, value, axes]))
        return set(node.output)
    rank = at.rank(x)
    known = at.constant(pads)
    if axes:
        axes = shifted_input(at, axes)
    elif known is not None:
        pads = at.author.ints(0, *map(int, known[:rank]), 0, *map(int, known[rank:]))
    elif at.author.opset >= _PAD_HAS_AXES:
        axes = at.author.ints(*all_axes(rank))
    else:
        pads = _unpadded_axis(at, pads, rank)
    at.again(node, _without_last([x, pads, value, axes]))
    return None


def _without_last(inputs: list[str]) -> list[str]:
    while not inputs[-1]:
        inputs.pop()
    return inputs


def _unpadded_axis(at: Vectorizer, pads: str, rank: int) -> str:
    """[begins, ends] with a 0 in front of both."""
    none, middle, last = (at.author.ints(bound) for bound in (0, rank, 2 * rank))
    begins = at.op("Slice", pads, none, middle)
    return at.op("Concat", none, begins, none, at.op("Slice", pads, middle, last), axis=0)


def _pad_each(node: NodeProto, at: Vectorizer) -> None:
    """Every row has its own padding: pad the places of a row, and look them up.

    A row is its elements and its padding behind them; the padded places name the last.
    """
    x, pads, value, axes = [*node.input, ""][:4]
    rank = at.rank(x)
    elements = at.op("Flatten", at.spread(x), axis=1)
    padding = at.op("Reshape", value, at.author.ints(0, 1))
    row = row_shape(at, x)
    count = spelling.size_of_axis(at.author, elements, 1)
    places = spelling.arange(at.author, count)
    if all(isinstance(dim, int) and dim > 0 for dim in at.dims(x)):
        places = at.op("Reshape", places, row)
    else:
        places = exactly(at, places, [row_size(at, x, axis) for axis in range(rank)])
    last = spelling.squeeze(at.author, count, 0)
    found = at.author.fresh("places")
    at.again(node, _without_last([places, pads, last, axes]), [found])
    table = at.op("Concat", elements, padding, axis=1)
    at.note(table, at.elem_type(x), [None])
    at.note(found, TensorProto.INT64, [None] * rank, carries=False)
    at.name_as(taken(at, table, found, 0), node.output[0])
