"""Estimates what moving work out of a loop saves and costs, in bytes of memory traffic.

A simple model of one iteration, fitted to onnxruntime on one thread (recurrent cells, widths 64 to
256, 1 to 64 rows; `benchmarks/`). A byte that is written for the whole sequence, and read again
when it is no longer in the cache, takes about 0.2 ns. In these units:

- A node that leaves the loop saves its start, 4 KiB (0.9 us), and a Scan those of its nodes, times
  its trip count. onnxruntime computes an Add of a bias with the product before it, so such a
  product saves nothing by itself.
- A product saves the reading of its weights in every iteration: an 8th of their bytes where the
  weights of the body do not stay in the cache together, or are not constants, which are packed
  once; else a 24th, and less the more rows it has, since from 16 rows on the arithmetic takes
  longer than the reading.
- The outputs of a node are written for the whole sequence, which costs their bytes: three quarters
  of them in any case, and the last quarter where the loop scans or collects it. Where the whole
  sequence stays in the cache, the three quarters are one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from onnx import NodeProto, TensorProto, helper

from passes.bodies.time_body import TimeBody
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.ir.site import Refused
from passes.loops.form import LoopForm
from passes.operators.table import traits_of
from passes.operators.traits import Work
from passes.types.value_types import dims_of, elem_type_of

#: The cost of starting a node, as bytes of memory traffic.
START = 1 << 12
#: That of copying a state to an output that collects it, too.
COPY = START // 2
#: The cost of taking one slice of a tensor.
_SLICE = 1 << 9
#: The bytes of weights that stay in the cache between iterations.
CACHE = 1 << 20
#: The parts of the bytes of weights that are saved where they stay in the cache, and where not.
_HOT, _COLD = 24, 8
#: From this many rows on a product takes longer than reading its weights from the cache.
_MANY_ROWS = 16
#: The assumed length of the sequence where it is unknown.
UNKNOWN_TRIPS = 128
_TEXT = 16


def is_worth_it(node: NodeProto) -> bool:
    """Return whether a node computes something; those that only move data go along with others."""
    return not traits_of(node).only_moves


def same_bits(node: NodeProto) -> bool:
    """Return whether a node over all iterations at once computes the same bits as in each
    iteration."""
    traits = traits_of(node)
    exact = traits.only_moves or traits.work is Work.LIGHT
    return exact and op_of(node) != "Mean" and not scoping.holds_graphs(node)


def row_bytes(body: TimeBody, name: str) -> int:
    """The bytes of a value in one iteration, with the body's assumption for unknown sizes."""
    known = body.rows.types.get(name)
    dims = dims_of(known)
    sizes = [dim if isinstance(dim, int) else body.unknown for dim in dims or (None,)]
    return prod(sizes) * item_bytes(elem_type_of(known))


def all_bytes(body: TimeBody, name: str) -> int:
    """The bytes of a value in all iterations."""
    return row_bytes(body, name) * (UNKNOWN_TRIPS if body.trips is None else body.trips)


def most_bytes(body: TimeBody) -> int:
    """The byte budget of a value."""
    return body.site.options.max_bytes


def fits(body: TimeBody, node: NodeProto) -> bool:
    """Return whether the outputs of a node for all iterations are within the budget."""
    most = most_bytes(body)
    return all(all_bytes(body, name) <= most for name in node.output if name)


def check_worthy(
    body: TimeBody, moving: Iterable[int], allowed: AbstractSet[int], nothing: str
) -> None:
    """Check that nodes that may move are worth it, and that the budget allows one of these.

    Raises:
        Refused: `nothing-to-move`, with the sentence `nothing`, or `over-budget`.
    """
    worthy = {position for position in moving if is_worth_it(body.nodes[position])}
    if not worthy:
        raise body.site.refused("nothing-to-move", nothing)
    if worthy.isdisjoint(allowed):
        raise too_large(body, worthy)


def too_large(body: TimeBody, nodes: Iterable[int]) -> Refused:
    """The refusal of nodes that would take more than the budget for all iterations."""
    names = [name for position in nodes for name in body.nodes[position].output if name]
    largest = max(names, key=lambda name: all_bytes(body, name))
    return body.site.refused(
        "over-budget",
        f"{largest!r}, or a value that moves with it, would take {all_bytes(body, largest)} bytes "
        f"or more for all iterations; at most {most_bytes(body)} are allowed",
        largest,
        max_bytes=all_bytes(body, largest),
    )


def handed_bytes(body: TimeBody, name: str) -> int:
    """The cost of scanning or collecting a value: a slice of it, and its bytes."""
    return _SLICE + row_bytes(body, name) // 4


@dataclass(frozen=True)
class Gains:
    """The gain of moving each node of a body outside; `carrying` are the values with a time axis
    there."""

    body: TimeBody
    carrying: AbstractSet[str]
    readers: Mapping[str, Sequence[int]]

    def of(self, position: int) -> int:
        """The bytes saved in an iteration where the node at this position runs for all at once."""
        node = self.body.nodes[position]
        if traits_of(node).work is Work.FREE:
            return 0
        start = 0 if self._is_fused(node) else START * self._starts(node)
        if traits_of(node).work is Work.VIEW:
            return start
        written = sum(self._written(name) for name in node.output if name in self.carrying)
        return start + self._read_once(node) - written

    def _starts(self, node: NodeProto) -> int:
        """Return the number of node starts of a node: its own, and those of its bodies, times their
        runs."""
        inner = scoping.inner_nodes(node)
        return 1 + sum(map(self._starts, inner)) * (self._trips(node) if inner else 1)

    def _trips(self, node: NodeProto) -> int:
        """An estimate of how often a Scan runs; 1 for other nodes."""
        if op_of(node) != "Scan":
            return 1
        scanned = LoopForm.from_node(node, self.body.site.opset).scanned[0]
        dims = dims_of(self.body.rows.types.get(scanned.tensor)) or ()
        size = dims[scanned.axis] if -len(dims) <= scanned.axis < len(dims) else 1
        return size if isinstance(size, int) else self.body.unknown

    def _written(self, name: str) -> int:
        """The cost of writing a value for all iterations."""
        quarters = 1 if all_bytes(self.body, name) <= CACHE else 3
        return row_bytes(self.body, name) * quarters // 4

    def _is_fused(self, node: NodeProto) -> bool:
        """Return whether a product is fused with the Add of a bias after it."""
        readers = self.readers.get(node.output[0], ())
        if op_of(node) != "MatMul" or len(readers) != 1:
            return False
        reader = self.body.nodes[readers[0]]
        others = [name for name in reader.input if name != node.output[0]]
        return op_of(reader) == "Add" and self.body.varying.isdisjoint(others)

    def _read_once(self, node: NodeProto) -> int:
        """Return the gain of not reading an operand again in every iteration.

        A matrix to the left of the iterations' operand is broadcast over them where there may be
        none.
        """
        if traits_of(node).work is not Work.PRODUCT:
            return 0
        first, second = node.input[:2]
        if second not in self.carrying:
            packed = self.body.is_constant(second)
            return self._saved(row_bytes(self.body, second), self._rows(node, first), packed)
        if first in self.carrying or self.body.row_rank(second) == 1:
            return 0
        return -row_bytes(self.body, first) if self.body.may_be_empty else 0

    def _saved(self, weights: int, rows: int, packed: bool) -> int:
        if self._weights > CACHE or not packed:
            return weights // _COLD
        return weights * max(0, _MANY_ROWS - rows) // (_MANY_ROWS * _HOT)

    def _rows(self, node: NodeProto, operand: str) -> int:
        """The number of rows that the weights are multiplied by."""
        if op_of(node).startswith("Conv"):
            return _MANY_ROWS
        dims = dims_of(self.body.rows.types.get(operand)) or ()
        return prod(dim if isinstance(dim, int) else self.body.unknown for dim in dims[:-1])

    @cached_property
    def _weights(self) -> int:
        """The bytes of the invariant operands of products in an iteration."""
        names = {node.input[1] for node in self.body.nodes if traits_of(node).work is Work.PRODUCT}
        return sum(row_bytes(self.body, name) for name in names if name not in self.body.varying)


def item_bytes(elem_type: int) -> int:
    """The bytes of one element; a guess for strings."""
    if elem_type == TensorProto.STRING:
        return _TEXT
    if not elem_type:
        return 4
    return int(np.dtype(helper.tensor_dtype_to_np_dtype(elem_type)).itemsize)
