"""Writes the lengths of rows, proves that a mask is one of lengths, and writes what a loop returns
beyond them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from onnx import NodeProto, TensorProto

from passes.analysis.integers.integers import Integers
from passes.bodies.moving import time_first
from passes.bodies.time_body import TimeBody
from passes.bodies.time_length import Length
from passes.ir.attributes import attribute, has_references, numbers
from passes.ir.operators import op_of
from passes.loops.form import Carried, Scanned
from passes.operators.comparisons import COMPARISONS, ORDERINGS
from passes.rule import Site
from passes.rules.recognize_cell.ragged import Ends
from passes.rules.recognize_cell.sizes import CellSizes
from passes.rules.recognize_cell.weights import CellWeights
from passes.types.value_types import Dims, dims_of, elem_type_of
from passes.writing import spelling
from passes.writing.author import Author


def sizes_of(body: TimeBody, ends: Ends | None) -> CellSizes:
    """The sizes of what a loop reads, with those of lengths or a mask."""
    if ends is None:
        return CellSizes(body)
    mask = ends.mask
    place = (mask.tensor, 0 if mask.axis % 3 else 1) if mask else (ends.lengths, 0)
    return CellSizes(body, (place,))


@dataclass(frozen=True)
class EndsWriter:
    """Writes the lengths of rows by one author, and what depends on them by the same one or one in
    a branch."""

    body: TimeBody
    sizes: CellSizes
    ends: Ends
    author: Author

    @cached_property
    def lengths(self) -> str:
        """The lengths as sequence_lens takes them, int32 [batch], from 0 to the number of steps."""
        author = self.author
        if self.ends.mask is not None:
            goes_on = author.op("Cast", self._mask, to=TensorProto.INT32)
            return spelling.squeeze(
                author, spelling.along(author, "ReduceSum", goes_on, [0], keepdims=0), 1
            )
        zero = author.op("Cast", author.ints(0), to=TensorProto.INT32)
        known = author.op("Cast", self.ends.lengths, to=TensorProto.INT32)
        steps = spelling.size_of_axis(author, *self.sizes.time)
        steps = author.op("Cast", steps, to=TensorProto.INT32)
        return author.op("Max", author.op("Min", known, steps), zero)

    @cached_property
    def _mask(self) -> str:
        """True until a row ends, bool [time, batch, 1], by the mask."""
        assert self.ends.mask is not None
        mask = time_first(self.body, self.author, self.ends.mask, Length(""))
        return self.author.op("Not", mask) if self.ends.inverse else mask

    @cached_property
    def goes_on(self) -> str:
        """True until a row ends, bool [time, batch, 1], by its length; a reverse loop begins with
        the last element."""
        author = self.author
        length = spelling.size_of_axis(author, *self.sizes.time)
        number = author.op("Cast", spelling.arange(author, length), to=TensorProto.INT32)
        column = spelling.unsqueeze_axes(author, number, [1, 2])
        return author.op("Less", column, spelling.unsqueeze(author, self.lengths, 1))

    def conditions(self) -> list[str]:
        """The conditions under which rows end as by lengths: names of scalar bools."""
        found = [self._is_finite(name) for name in dict.fromkeys(self.ends.finite)]
        return [*found, self._is_prefix()] if self.ends.mask and not self.proof else found

    @cached_property
    def proof(self) -> dict[str, NodeProto]:
        """The nodes that prove that the mask is true, then false, in each row; else empty."""
        mask = self.ends.mask
        return lengths_in(self.body.site, mask) if mask and not self.ends.inverse else {}

    def _is_finite(self, name: str) -> str:
        """A bool that is true if no element is infinite or NaN."""
        zero = self.author.value(np.zeros((), np.float32), "zero")
        total = spelling.total(self.author, self.author.op("Mul", name, zero))
        return self.author.op("Equal", total, zero)

    def _is_prefix(self) -> str:
        """A bool that is true if the mask is true, then false, in each row."""
        author = self.author
        differs = author.op("Not", author.op("Equal", self._mask, self.goes_on))
        number = spelling.total(author, author.op("Cast", differs, to=TensorProto.INT32))
        zero = author.op("Cast", author.int(0), to=TensorProto.INT32)
        return author.op("Equal", number, zero)

    def final(self, author: Author, value: str, initial: str, output: str = "") -> str:
        """A final state; the initial one of a row of length 0, of which operators make 0."""
        zero = author.op("Cast", author.int(0), to=TensorProto.INT32)
        some = spelling.unsqueeze(author, author.op("Greater", self.lengths, zero), 1)
        return author.op("Where", some, value, initial, outputs=[output] if output else ())

    def collected(self, author: Author, rows: str, last: str) -> str:
        """The collected value, [time, batch, hidden]: beyond the end, the filling or the last
        output, which is the initial one at the start of a reverse loop."""
        ends = self.ends
        if ends.filling:
            filling = CellWeights(self.body, author).visible(ends.filling)
        elif self.sizes.scanned.reversed:
            filling = ends.initial
        else:
            filling = self.final(author, last, ends.initial)
        return author.op("Where", self.goes_on, rows, filling)

    def count(self, author: Author, counter: Carried, output: str) -> None:
        """Write the final number of iterations."""
        kind = elem_type_of(self.body.site.type_of(counter.initial))
        steps = spelling.size_of_axis(author, *self.sizes.time)
        spelling.squeeze(author, author.op("Cast", steps, to=kind), 0, [output])


#: Types in which no number of a step wraps around.
_WIDE = (TensorProto.INT32, TensorProto.INT64, TensorProto.FLOAT, TensorProto.DOUBLE)
_DEEPEST = 16


def lengths_in(site: Site, mask: Scanned) -> dict[str, NodeProto]:
    """The nodes that prove that a mask is true, then false, along its first axis, by their first
    outputs; empty where it is not proven."""
    proof = _Proof(site)
    return proof.nodes if mask.axis % 3 == 0 and proof.is_prefix(mask.tensor) else {}


class _Proof:
    def __init__(self, site: Site) -> None:
        self.site, self.integers = site, Integers(site)
        self.nodes: dict[str, NodeProto] = {}

    def is_prefix(self, name: str) -> bool:
        """Return whether a bool is true, then false, along its first axis."""
        node = self._node(name)
        if node is None:
            return False
        if self._adds_later_axes(node):
            return self.is_prefix(node.input[0])
        if op_of(node) not in ORDERINGS:
            return False
        number, length = node.input if "<" in COMPARISONS[op_of(node)] else reversed(node.input)
        dims, others = self._dims(number), self._dims(length)
        if dims is None or others is None:
            return False
        return (len(others) < len(dims) or others[:1] == (1,)) and self.rises(number)

    def rises(self, name: str, depth: int = 0) -> bool:
        """Return whether numbers never fall along the first axis."""
        fixed = self.site.constant(name)
        if fixed is not None:
            return fixed.ndim > 0 and bool((np.diff(fixed, axis=0) >= 0).all())
        node = self._node(name)
        if node is None or depth > _DEEPEST:
            return False
        widens = op_of(node) == "Cast" and attribute(node, "to", 0) in _WIDE
        if widens or self._adds_later_axes(node):
            return self.rises(node.input[0], depth + 1)
        if op_of(node) == "Range":
            step = self.site.constant(node.input[2])
            return step is not None and bool((step > 0).all())
        return op_of(node) == "Squeeze" and self._are_places_of_ones(node.input[0])

    def _are_places_of_ones(self, name: str) -> bool:
        """Return whether a value is the places of the elements of a vector, [1, size]."""
        node = self._node(name)
        if node is None or op_of(node) != "NonZero" or len(self._dims(node.input[0]) or ()) != 1:
            return False
        ones = self._node(node.input[0])
        return ones is not None and op_of(ones) == "ConstantOfShape"

    def _adds_later_axes(self, node: NodeProto) -> bool:
        """Return whether a node only adds axes of size 1, none of them first."""
        if op_of(node) == "Identity":
            return True
        axes = numbers(node, 1, "axes", self.site.constant) if op_of(node) == "Unsqueeze" else None
        rank = len(self._dims(node.output[0]) or ())
        return bool(axes and rank) and all(axis % rank for axis in axes or ())

    def _dims(self, name: str) -> Dims | None:
        return dims_of(self.site.type_of(name))

    def _node(self, name: str) -> NodeProto | None:
        """The node that computes a value, noted as part of the proof."""
        node = self.integers.producer(name)
        if node is None or has_references(node) or not self.integers.same_meaning(node, name):
            return None
        self.nodes[node.output[0]] = node
        return node
