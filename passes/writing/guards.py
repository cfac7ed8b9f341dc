"""Guards: a value, or a failure of the whole model. They are written and recognised here.

ONNX has no assert. `must`, `must_count`, `must_all`, `guarded`, `same_sizes` and `same_shape` write
nodes that fail where a condition does not hold (`kept_state` one of the last two). `guard_of`
and `state_of` recognise what nodes guard, so that rules see through what other rules wrote.
`must_all` is not recognised.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from onnx import NodeProto, TensorProto, numpy_helper

from passes.ir.names import Names
from passes.ir.operators import op_of
from passes.ir.purposes import GUARD_LENGTHS, GUARD_SHAPES
from passes.ir.site import Site
from passes.ir.versions import AXES_ARE_INPUTS, CLIP_TAKES_INTEGERS
from passes.loops.form import Carried
from passes.types.value_types import Dims, dims_of, elem_type_of
from passes.writing import spelling
from passes.writing.author import Author
from passes.writing.spelling import Array

Shapes = Callable[[str], Dims | None]


def must(author: Author, value: str, condition: str) -> str:
    """`value` (rank 1 or more), or a failure of the whole model where `condition` is false.

    ONNX has no assert: a Reshape to one element more than there are must fail. Its reader
    must not be another reshape, which onnxruntime would fuse with this one: for sizes there is
    `must_count`, for other values `guarded`.
    """
    shape = spelling.shape_of(author, value)
    impossible = author.op("Add", shape, author.ints(1))
    return author.op("Reshape", value, author.op("Where", condition, shape, impossible))


def must_count(author: Author, value: str, condition: str) -> str:
    """Sizes or counts (int64), or a failure of the whole model where `condition` is false."""
    return guarded(author, value, condition, TensorProto.INT64)


def must_all(author: Author, value: str, conditions: str) -> str:
    """`value` (int64), or a failure of the whole model where one of the conditions is false.

    There is one for each element; unless all hold, too few elements are left for the
    shape. The reader must not be another reshape, see `must`.
    """
    shape = spelling.shape_of(author, value)
    return author.op("Reshape", author.op("Compress", value, conditions), shape)


def guarded(
    author: Author, value: str, condition: str, elem_type: int, outputs: Sequence[str] = ()
) -> str:
    """`value` (of any rank), or a failure of the whole model where `condition` is false.

    It is read as the only row of a list, by an index that is out of range where the condition
    fails: where onnxruntime knows the shape, it removes a Reshape between other reshapes. Its
    Gather copies only the first string of a row, so strings are reshaped all the same.
    """
    row_of_one = spelling.unsqueeze(author, value, 0)
    if elem_type in (TensorProto.UNDEFINED, TensorProto.STRING):
        return spelling.squeeze(author, must(author, row_of_one, condition), 0, outputs)
    index = author.op("Where", condition, author.int(0), author.int(1))
    return author.op("Gather", row_of_one, index, axis=0, outputs=outputs)


def guarded_ends(author: Author, ends: str, lengths: str, time: str, *, masked: bool) -> str:
    """`ends`, which are the `lengths`, or a failure where one of these is not in 0..time; if
    `masked`, without a size that is known only at run time."""
    with author.serving(GUARD_LENGTHS):
        fit = _in_range(author, lengths, time)
        if not masked:
            return must_all(author, ends, fit)
        wrong = author.op("Cast", author.op("Not", fit), to=TensorProto.INT64)
        none = author.op("Equal", spelling.total(author, wrong), author.int(0))
        return guarded(author, ends, none, TensorProto.INT64)


def _in_range(author: Author, lengths: str, time: str) -> str:
    """A bool vector: true for lengths in 0..time."""
    if author.opset >= CLIP_TAKES_INTEGERS:
        clipped = author.op("Clip", lengths, author.int(0), time)
        return author.op("Equal", lengths, clipped)
    wrong = author.op("Less", lengths, author.int(0))
    return author.op("Not", author.op("Or", wrong, author.op("Greater", lengths, time)))


def same_sizes(author: Author, new: str, old: str) -> str:
    """`new`, or a failure where its sizes are not those of `old`; of one rank, and no strings.

    It is read as the only row of a list, at the number of sizes that differ.
    """
    shapes = [spelling.shape_of(author, value) for value in (new, old)]
    differ = author.op("Not", author.op("Equal", *shapes))
    count = spelling.total(author, author.op("Cast", differ, to=TensorProto.INT64))
    return author.op("Gather", spelling.unsqueeze(author, new, 0), count, axis=0)


def same_shape(author: Author, new: str, old: str, elem_type: int = 0) -> str:
    """`new`, or a failure where its shape is not that of `old`, as a Scan's state fails."""
    shapes = [spelling.shape_of(author, value) for value in (new, old)]
    ranks = [spelling.squeeze(author, spelling.shape_of(author, shape), 0) for shape in shapes]
    # Shapes of other lengths broadcast where one has length 1, and fail elsewhere.
    differ = author.op("Not", author.op("Equal", *shapes))
    count = spelling.total(author, author.op("Cast", differ, to=TensorProto.INT64))
    agree = [author.op("Equal", *ranks), author.op("Equal", count, author.int(0))]
    return guarded(author, new, spelling.both(author, agree), elem_type)


def kept_state(author: Author, site: Site, carried: Carried, new: str, old: str) -> str:
    """`new`, the state after an iteration, or a failure where its shape is not that of `old`."""
    known = [site.body_type_of("body", name) for name in (carried.body_input, carried.body_output)]
    ranks = {len(dims) for type_proto in known if (dims := dims_of(type_proto)) is not None}
    found = all(dims_of(type_proto) is not None for type_proto in known)
    elem_type = elem_type_of(known[0])
    with author.serving(GUARD_SHAPES):
        if (
            found
            and len(ranks) == 1
            and elem_type not in (TensorProto.UNDEFINED, TensorProto.STRING)
        ):
            return same_sizes(author, new, old)
        return same_shape(author, new, old, elem_type)


# -- recognised


@dataclass(frozen=True)
class Guard:
    """`value`, which is only computed where `condition` holds."""

    value: str
    condition: str


def guard_of(node: NodeProto, producer: Producer, constant: Constant, dims: Shapes) -> Guard | None:
    """The guard that `must` or `guarded` (and so `must_count`) wrote as a node; None for others."""
    name = node.output[0]
    found = operands_of(must_count, name, producer, constant)
    if found is None and (found := operands_of(must, name, producer, constant)) is not None:
        source = producer(found["value"])
        if not dims(found["value"]) and (source is None or op_of(source) != "Unsqueeze"):
            return None  # it may have no axis
    return None if found is None else Guard(**found)


def state_of(
    new: str, old: str, producer: Producer, constant: Constant, dims: Shapes
) -> str | None:
    """The value that `same_shape` or `same_sizes` let through as `new` where it has the shape of
    `old`; None where neither wrote it."""
    after, before = dims(new), dims(old)
    # what the guard gives has the rank of what it guards, and is declared
    same_rank = after is not None and before is not None and len(after) == len(before)
    writers = (*((same_sizes,) if same_rank else ()), _same_shape_of_numbers, same_shape)
    matches = (operands_of(one, new, producer, constant, old=old) for one in writers)
    return next((match["new"] for match in matches if match is not None), None)


def _same_shape_of_numbers(author: Author, new: str, old: str) -> str:
    return same_shape(author, new, old, TensorProto.FLOAT)


Producer = Callable[[str], NodeProto | None]
Constant = Callable[[str], Array | None]
Write = Callable[..., str]
#: The nodes and constants of a pattern by name; other names are operands.
_Parts = Mapping[str, NodeProto | Array]


def operands_of(
    write: Write, name: str, producer: Producer, constant: Constant, **known: str
) -> dict[str, str] | None:
    """The operands, by their names in `write`, for which it would write a value, and the `known`
    ones; None for another value."""

    def holds(parts: _Parts, part: str, name: str, found: dict[str, str]) -> bool:
        wanted = parts.get(part)
        if wanted is None:
            return found.setdefault(part, name) == name
        if isinstance(wanted, np.ndarray):
            value = constant(name)
            return value is not None and np.array_equal(value, wanted)
        node = producer(name)
        if node is None or (op_of(node), _attributes(node)) != (op_of(wanted), _attributes(wanted)):
            return False
        pairs = zip(wanted.input, node.input, strict=False)
        same = len(node.input) == len(wanted.input)
        return same and all(holds(parts, *pair, found) for pair in pairs)

    for result, parts in _patterns(write):
        found = dict(known)
        if holds(parts, result, name, found):
            return found
    return None


@cache
def _patterns(write: Write) -> list[tuple[str, _Parts]]:
    """What is written and its parts, as the opsets spell them: axes are inputs or attributes.

    Each node has one output.
    """
    parameters = inspect.signature(write).parameters.values()
    _, *operands = (one.name for one in parameters if one.default is one.empty)
    found = list[tuple[str, _Parts]]()
    for opset in (AXES_ARE_INPUTS, AXES_ARE_INPUTS - 1):
        author = Author(opset, Names(operands), "")
        result = write(author, *operands)
        parts: dict[str, NodeProto | Array] = {node.output[0]: node for node in author.nodes}
        parts |= {one.name: numpy_helper.to_array(one) for one in author.constants}
        found.append((result, parts))
    return found


def _attributes(node: NodeProto) -> list[str]:
    return sorted(map(str, node.attribute))
