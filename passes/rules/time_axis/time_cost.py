"""What moving work out of a loop saves and costs, in bytes that go through memory.

A simple model of one iteration, fitted to onnxruntime on one thread (recurrent cells, widths 64 to
256, 1 to 64 rows; `benchmarks/`). A byte that is written for the whole sequence, and read again
when it is no longer in the cache, takes about 0.2 ns. In these units:

- A node that leaves the loop saves its start, 4 KiB (0.9 us), and a Scan those of its nodes, as
  often as it runs. onnxruntime computes an Add of a
  bias with the product in front of it, so that such a product saves nothing by itself.
- A product saves the reading of its weights in every iteration: an 8th of their bytes where the
  weights of the body do not stay in the cache together, or are no constants, which are packed
  once; else a 24th, and less the more rows it
  has, for from 16 rows on the arithmetic takes longer than the reading.
- What a node gives is written for the whole sequence, which costs its bytes: three quarters of
  them in any case, and the last one where the loop scans or collects it. Where the whole sequence
  stays in the cache, the three quarters are one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from onnx import NodeProto, TensorProto, helper

from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.loops.form import LoopForm
from passes.rules.time_axis.time_body import TimeBody
from passes.types.value_types import dims_of, elem_type_of

#: What starting a node takes, as bytes of memory traffic.
START = 1 << 12
#: What taking one slice of a tensor takes.
_SLICE = 1 << 9
#: The weights that stay in the cache from one iteration to the next.
CACHE = 1 << 20
#: The parts of the bytes of weights that are saved where they stay in the cache, and where not.
_HOT, _COLD = 24, 8
#: From so many rows on a product takes longer than the reading of its weights from the cache.
_MANY_ROWS = 16
#: The most bytes that a value may take for all iterations together.
MOST_BYTES = 1 << 28
#: The length of the sequence where it is not known.
UNKNOWN_TRIPS = 128
_TEXT = 16

#: Ops that only move data, or next to it; of the last ones not even that.
# fmt: off
MOVES = frozenset(
    {
        "Cast", "CastLike", "Compress", "Concat", "Constant", "ConstantOfShape", "DepthToSpace",
        "Expand", "EyeLike", "Gather", "GatherElements", "GatherND", "OneHot", "Pad", "Range",
        "ReverseSequence", "ScatterElements", "ScatterND", "Slice", "SpaceToDepth", "Split",
        "Tile", "Transpose", "Trilu", "Shape", "Size", "Flatten", "Identity", "Reshape", "Squeeze",
        "Unsqueeze",
    }
)
_VIEWS = frozenset({"Flatten", "Reshape", "Squeeze", "Unsqueeze"})
#: These take next to no time, in the loop and outside.
_FREE = frozenset({"Constant", "Identity", "Shape", "Size"})
#: Ops of a few instructions an element, whose bits do not depend on how many there are.
_LIGHT = frozenset(
    {
        "Abs", "Add", "And", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor",
        "Ceil", "Clip", "Div", "Dropout", "Equal", "Floor", "Greater", "GreaterOrEqual", "IsInf",
        "IsNaN", "LeakyRelu", "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Neg",
        "Not", "Or", "PRelu", "Reciprocal", "Relu", "Round", "Shrink", "Sign", "Sub", "Sum",
        "ThresholdedRelu", "Where", "Xor",
    }
)
# fmt: on
#: Products, and the place of the operand that one run over all iterations reads once.
_SHARED_OPERAND = {"MatMul": 1, "Gemm": 1, "MatMulInteger": 1, "Conv": 1, "ConvInteger": 1}
PRODUCTS = frozenset(_SHARED_OPERAND)


def is_worth_it(node: NodeProto) -> bool:
    """Whether a node computes something: those that only move data go along with others."""
    return op_of(node) not in MOVES


def same_bits(node: NodeProto) -> bool:
    """Whether a node gives the same bits over all iterations at once as in each."""
    exact = op_of(node) in MOVES or op_of(node) in _LIGHT
    return exact and op_of(node) != "Mean" and not scoping.holds_graphs(node)


def row_bytes(body: TimeBody, name: str) -> int:
    """The bytes of a value in one iteration; `body` says what unknown sizes are taken for."""
    known = body.rows.types.get(name)
    dims = dims_of(known)
    sizes = [one if isinstance(one, int) else body.unknown for one in dims or (None,)]
    return prod(sizes) * item_bytes(elem_type_of(known))


def all_bytes(body: TimeBody, name: str) -> int:
    """The bytes of a value in all iterations."""
    return row_bytes(body, name) * (UNKNOWN_TRIPS if body.trips is None else body.trips)


def most_bytes(body: TimeBody) -> int:
    """The budget of a value."""
    return body.site.options.max_bytes


def fits(body: TimeBody, node: NodeProto) -> bool:
    """Whether the outputs of a node for all iterations are within the budget."""
    most = most_bytes(body)
    return all(all_bytes(body, name) <= most for name in node.output if name)


def handed_bytes(body: TimeBody, name: str) -> int:
    """What it costs that the loop scans or collects a value: a slice of it, and its bytes."""
    return _SLICE + row_bytes(body, name) // 4


@dataclass(frozen=True)
class Gains:
    """What each node of a body saves outside; `carrying` are the values that have time there."""

    body: TimeBody
    carrying: AbstractSet[str]
    readers: Mapping[str, Sequence[int]]

    def of(self, at: int) -> int:
        """What is saved in an iteration where the node at this position runs for all at once."""
        node = self.body.nodes[at]
        if op_of(node) in _FREE:
            return 0
        start = 0 if self._is_fused(node) else START * self._starts(node)
        if op_of(node) in _VIEWS:
            return start
        written = sum(self._written(name) for name in node.output if name in self.carrying)
        return start + self._read_once(node) - written

    def _starts(self, node: NodeProto) -> int:
        """How many nodes a node starts: itself, and what its bodies hold, as often as they run."""
        inner = [one for _, graph in scoping.subgraphs(node) for one in graph.node]
        return 1 + sum(map(self._starts, inner)) * (self._trips(node) if inner else 1)

    def _trips(self, node: NodeProto) -> int:
        """How often a Scan runs, at a guess; 1 for what is none."""
        if op_of(node) != "Scan":
            return 1
        scanned = LoopForm.from_node(node, self.body.site.opset).scanned[0]
        dims = dims_of(self.body.rows.types.get(scanned.tensor)) or ()
        size = dims[scanned.axis] if -len(dims) <= scanned.axis < len(dims) else 1
        return size if isinstance(size, int) else self.body.unknown

    def _written(self, name: str) -> int:
        """What it costs that a value is written for all iterations."""
        quarters = 1 if all_bytes(self.body, name) <= CACHE else 3
        return row_bytes(self.body, name) * quarters // 4

    def _is_fused(self, node: NodeProto) -> bool:
        """Whether a product is computed with the Add of a bias behind it."""
        readers = self.readers.get(node.output[0], ())
        if op_of(node) != "MatMul" or len(readers) != 1:
            return False
        reader = self.body.nodes[readers[0]]
        others = [name for name in reader.input if name != node.output[0]]
        return op_of(reader) == "Add" and self.body.varying.isdisjoint(others)

    def _read_once(self, node: NodeProto) -> int:
        """What is saved of an operand that every iteration reads anew.

        A matrix on the left of those of the iterations is spread over them where there may be
        none.
        """
        place = _SHARED_OPERAND.get(op_of(node))
        if place is None:
            return 0
        first, second = node.input[0], node.input[place]
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
        """How many rows an operand has that the weights are multiplied with."""
        if op_of(node).startswith("Conv"):
            return _MANY_ROWS
        dims = dims_of(self.body.rows.types.get(operand)) or ()
        return prod(one if isinstance(one, int) else self.body.unknown for one in dims[:-1])

    @cached_property
    def _weights(self) -> int:
        """The bytes of what the products of an iteration read and that is always the same."""
        names = {
            node.input[_SHARED_OPERAND[op_of(node)]]
            for node in self.body.nodes
            if op_of(node) in _SHARED_OPERAND
        }
        return sum(row_bytes(self.body, name) for name in names if name not in self.body.varying)


def item_bytes(elem_type: int) -> int:
    """The bytes of one element; what a string takes is a guess."""
    if elem_type == TensorProto.STRING:
        return _TEXT
    if not elem_type:
        return 4
    return int(np.dtype(helper.tensor_dtype_to_np_dtype(elem_type)).itemsize)
