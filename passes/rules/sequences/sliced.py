"""Reads of a sequence of all slices of a tensor: they become reads of the tensor."""

from __future__ import annotations

from onnx import NodeProto

from passes.analysis.integers.affine import number_of
from passes.analysis.integers.integer_ops import is_settled
from passes.analysis.integers.integers import Integers
from passes.ir.attributes import attribute
from passes.ir.operators import op_of
from passes.ir.purposes import GUARD_JOINED
from passes.ir.versions import ZERO_IS_A_SIZE
from passes.rule import Site
from passes.rules.sequences.elements import Slices, are_strings
from passes.types.value_types import Dims, dims_of, elem_type_of
from passes.writing import guards, spelling
from passes.writing.author import Author


def suits(site: Site, slices: Slices, reader: NodeProto) -> bool:
    """Return whether a node that reads the sequence can read the tensor instead."""
    if op_of(reader) == "SequenceAt":
        return not are_strings(site, slices.tensor)
    if op_of(reader) == "ConcatFromSequence":
        return is_settled(reader) and _place(site, slices, reader) is not None
    return op_of(reader) == "SequenceLength"


def read(site: Site, author: Author, slices: Slices, node: NodeProto) -> None:
    """Write a SequenceAt as a Gather, which fails on the same positions."""
    position = node.input[1]
    number = number_of(Integers(site).outside(position))
    if number is not None:
        index = author.ints(number) if slices.keeps else author.int(number)
    elif slices.keeps:
        index = author.op("Reshape", position, author.ints(1))
    else:
        index = spelling.scalar(author, position, site.type_of(position))
    author.op("Gather", slices.tensor, index, outputs=node.output, axis=slices.axis)


def measure(site: Site, author: Author, slices: Slices) -> None:
    """Write a SequenceLength as the size of an axis."""
    size = spelling.scalar_size(author, slices.tensor, slices.axis)
    author.name_as(size, site.node.output[0])


def join(site: Site, author: Author, slices: Slices) -> None:
    """Write a ConcatFromSequence as the tensor, its axis moved.

    Without slices there is nothing to join, and the new model fails as well.

    Raises:
        Refused: `zero-size`.
    """
    place = _place(site, slices, site.node)
    assert place is not None
    dims, source, axis = place
    order = [position for position in range(len(dims)) if position != source]
    order.insert(axis, source)
    value = _not_empty(site, author, slices)
    if order != sorted(order):
        value = author.op("Transpose", value, perm=order)
    if not slices.keeps and not _stacks(site.node):
        value = _merged(site, author, value, tuple(dims[position] for position in order), axis)
    author.name_as(value, site.node.output[0])


def _stacks(node: NodeProto) -> bool:
    return attribute(node, "new_axis", 0) == 1


def _place(site: Site, slices: Slices, node: NodeProto) -> tuple[Dims, int, int] | None:
    """The sizes of the tensor, the axis that is split, and the one on which a ConcatFromSequence
    joins the slices; None where that takes more than to move an axis."""
    dims, axis = dims_of(site.type_of(slices.tensor)), attribute(node, "axis", 0) or 0
    if dims is None or not -len(dims) <= slices.axis < len(dims):
        return None
    rank = len(dims) if _stacks(node) or slices.keeps else len(dims) - 1
    if not -rank <= axis < rank:
        return None
    source, axis = slices.axis % len(dims), axis % rank
    if slices.keeps and (_stacks(node) or axis != source):
        return None
    return dims, source, axis


def _not_empty(site: Site, author: Author, slices: Slices) -> str:
    """The tensor, or a failure where it has no slices."""
    size = Integers(site).size(slices.tensor, slices.axis)
    if site.assumes("valid-inputs") or (size is not None and size.at_least(1)):
        return slices.tensor
    with author.serving(GUARD_JOINED):
        count = spelling.scalar_size(author, slices.tensor, slices.axis)
        some = author.op("Greater", count, author.int(0))
        return guards.guarded(
            author, slices.tensor, some, elem_type_of(site.type_of(slices.tensor))
        )


def _merged(site: Site, author: Author, value: str, dims: Dims, axis: int) -> str:
    """A value with an axis and the one after it merged."""
    sizes = [spelling.size_of_axis(author, value, position) for position in range(len(dims))]
    if all(isinstance(dim, int) and dim > 0 for dim in (*dims[:axis], *dims[axis + 2 :])):
        sizes[axis : axis + 2] = [author.ints(-1)]
        return author.op("Reshape", value, author.op("Concat", *sizes, axis=0))
    if author.opset < ZERO_IS_A_SIZE:
        raise site.refused(
            "zero-size",
            f"sizes of the elements may be 0, which Reshape cannot write at opset {author.opset}; "
            f"opset {ZERO_IS_A_SIZE} can",
            site.node.input[0],
        )
    sizes[axis : axis + 2] = [author.op("Mul", *sizes[axis : axis + 2])]
    return author.op("Reshape", value, author.op("Concat", *sizes, axis=0), allowzero=1)
