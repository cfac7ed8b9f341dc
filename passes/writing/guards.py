"""Guards: a value, or a failure of the whole model. They are written and recognised here.

ONNX has no assert. `must`, `must_count`, `must_all`, `guarded`, `same_sizes` and `same_shape` write
nodes that fail where a condition does not hold (`kept_state` one of the last two). `guard_of`
and `state_of` recognise what nodes guard, so that rules see through what other rules wrote:
change them together. `must_all` is not recognised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt
from onnx import NodeProto, TensorProto

from passes.ir.attributes import attribute, has, numbers
from passes.ir.conditions import conjuncts
from passes.ir.operators import op_of
from passes.ir.versions import CLIP_TAKES_INTEGERS
from passes.loops.form import Carried
from passes.rule import Site
from passes.types.value_types import Dims, dims_of, elem_type_of
from passes.writing import spelling
from passes.writing.author import Author
from passes.writing.purposes import GUARD_LENGTHS, GUARD_SHAPES

Producer = Callable[[str], NodeProto | None]
Constant = Callable[[str], npt.NDArray[Any] | None]
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
    if op_of(node) == "Reshape" and len(node.input) == 2:
        return _impossible_shape(node, producer, constant, dims)
    if op_of(node) == "Gather":
        return _impossible_index(node, producer, constant)
    return None


def _impossible_shape(
    node: NodeProto, producer: Producer, constant: Constant, dims: Shapes
) -> Guard | None:
    """The guard that `must` wrote: a value reshaped to its own shape, or to one that is larger by 1
    on every axis. It has an axis."""
    source = producer(node.input[0])
    if not dims(node.input[0]) and (source is None or op_of(source) != "Unsqueeze"):
        return None
    choice = producer(node.input[1])
    if choice is None or op_of(choice) != "Where":
        return None
    condition, shape, impossible = choice.input
    own, other = producer(shape), producer(impossible)
    if own is None or op_of(own) != "Shape" or own.attribute or own.input[0] != node.input[0]:
        return None
    if other is None or op_of(other) != "Add" or other.input[0] != shape:
        return None
    return Guard(node.input[0], condition) if _is(constant(other.input[1]), 1) else None


def _impossible_index(node: NodeProto, producer: Producer, constant: Constant) -> Guard | None:
    """The guard that `guarded` wrote: a value read as the only row of a list, at 0 or beyond it."""
    row, choice = _only_row(node, producer, constant), producer(node.input[1])
    if row is None or choice is None or op_of(choice) != "Where":
        return None
    condition, there, beyond = choice.input
    return Guard(row, condition) if _is(constant(there), 0) and _is(constant(beyond), 1) else None


def _only_row(node: NodeProto, producer: Producer, constant: Constant) -> str | None:
    """The value of which a Gather reads a list of one; None for another node."""
    rows = producer(node.input[0]) if op_of(node) == "Gather" else None
    if rows is None or op_of(rows) != "Unsqueeze" or attribute(node, "axis", 0):
        return None
    return rows.input[0] if numbers(rows, 1, "axes", constant) == [0] else None


def _is(value: npt.NDArray[Any] | None, number: int) -> bool:
    return value is not None and value.size == 1 and bool(value.item() == number)


def state_of(
    new: str, old: str, producer: Producer, constant: Constant, dims: Shapes
) -> str | None:
    """The value that `same_shape` or `same_sizes` let through as `new` where it has the shape of
    `old`; None where neither wrote it."""
    node = producer(new)
    if node is None:
        return None
    row = _counted(node, producer, constant, old)
    if row is not None:
        # what the guard gives has the rank of what it guards, and is declared
        after, before = dims(new), dims(old)
        known = after is not None and before is not None
        return row if known and len(after or ()) == len(before or ()) else None
    guard = guard_of(node, producer, constant, dims)
    if guard is None and op_of(node) == "Squeeze":  # a list of one, reshaped
        inner = producer(node.input[0])
        guard = guard_of(inner, producer, constant, dims) if inner is not None else None
        rows = producer(guard.value) if guard is not None else None
        if guard is None or rows is None or op_of(rows) != "Unsqueeze":
            return None
        guard = replace(guard, value=rows.input[0])
    if guard is None:
        return None
    compares = _Compares([guard.value, old], producer, constant)
    return guard.value if compares.shapes(guard.condition) else None


def _counted(node: NodeProto, producer: Producer, constant: Constant, old: str) -> str | None:
    """The value that `same_sizes` guards; None for another node."""
    row = _only_row(node, producer, constant)
    if row is None:
        return None
    return row if _Compares([row, old], producer, constant).counts(node.input[1]) else None


@dataclass(frozen=True)
class _Compares:
    """Recognises conditions that compare the shapes of two values."""

    values: list[str]
    producer: Producer
    constant: Constant

    def shapes(self, condition: str) -> bool:
        """Return whether it states that they have the same rank and the same sizes."""
        parts = [node for node, _ in conjuncts(condition, self.producer) if node is not None]
        nodes = [node for node in parts if op_of(node) == "Equal"]
        return any(map(self._ranks, nodes)) and any(map(self._sizes, nodes))

    def _ranks(self, node: NodeProto) -> bool:
        ranks = ("Squeeze", "Shape", "Shape")
        return [self._behind(name, ranks) for name in node.input] == self.values

    def _sizes(self, node: NodeProto) -> bool:
        """The number of sizes that differ is 0."""
        zero = self.constant(node.input[1])
        return zero is not None and not zero.any() and self.counts(node.input[0])

    def counts(self, name: str) -> bool:
        """Return whether a number counts the sizes in which they differ."""
        differ = self.producer(self._behind(name, ("ReduceSum", "Cast", "Not")))
        if differ is None or op_of(differ) != "Equal":
            return False
        return [self._behind(name, ("Shape",)) for name in differ.input] == self.values

    def _behind(self, name: str, ops: tuple[str, ...]) -> str:
        """The origin of a chain of ops, the last first; empty where the chain is another one."""
        for op in ops:
            node = self.producer(name)
            if node is None or op_of(node) != op:
                return ""
            cut = len(node.input) > 1 or any(has(node, one) for one in ("start", "end", "axes"))
            if op in ("Shape", "ReduceSum") and cut:
                return ""  # of some axes only
            name = node.input[0]
        return name
