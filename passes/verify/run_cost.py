"""Estimates the least cost of a run: nested Loops multiply their trip counts, and a carried value
that grows by a factor makes each iteration that much slower."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, numpy_helper

from passes.ir import scope
from passes.ir.constants import constant_tensor
from passes.ir.operators import op_of
from passes.types.value_types import dims_of
from passes.verify.executor import Feeds

#: What a drawn case may take, which is seconds in the reference executor.
_MOST = 50_000
#: What no executor gets through before the time of a case is over.
_HOPELESS = 100_000_000
#: The logarithm of a float that is no longer computed exactly.
_LARGEST = 700.0

KnownNumbers = Mapping[str, float]


@dataclass(frozen=True)
class _Loop:
    """A Loop that only its trip count ends: the names of trip count and condition, its body."""

    trips: str
    condition: str
    body: _Block
    growth: float

    def steps(self, known: KnownNumbers, *, growing: bool) -> float:
        """Return the number of steps of a run; 0 if the trip count is unknown."""
        if self.condition and not known.get(self.condition, 0):
            return 0.0
        trips = max(0.0, known.get(self.trips, 0.0))
        if growing and self.growth > 1:
            last = math.exp(min(_LARGEST, trips * math.log(self.growth)))
            trips = (last - 1) / (self.growth - 1)
        return trips * self.body.steps(known, growing=growing)


@dataclass(frozen=True)
class _Block:
    """The nodes of a graph, its Loops and its numbers; `defined` are names that mean no outer
    value in it, `visible` the constants that it may read."""

    nodes: int
    loops: tuple[_Loop, ...]
    numbers: KnownNumbers
    defined: frozenset[str]
    visible: Mapping[str, TensorProto]

    @staticmethod
    def of(graph: GraphProto, outer: Mapping[str, TensorProto]) -> _Block:
        defined = frozenset(scope.defined(graph))
        tensors = constants_of(graph)
        own_inputs = set(scope.input_names(graph))
        numbers = {
            name: float(numpy_helper.to_array(tensor).item())
            for name, tensor in tensors.items()
            if name not in own_inputs and math.prod(tensor.dims) == 1 and _is_plain(tensor)
        }
        visible = {name: tensor for name, tensor in outer.items() if name not in defined} | tensors
        loops = tuple(
            _Loop(node.input[0], "".join(node.input[1:2]), inner, growth(body, inner.visible))
            for node in graph.node
            if op_of(node) == "Loop"
            for _, body in scope.subgraphs(node)
            for inner in [_Block.of(body, visible)]
            if goes_on(body, inner.visible)
        )
        return _Block(len(graph.node), loops, numbers, defined, visible)

    def steps(self, outer: KnownNumbers, *, growing: bool) -> float:
        """Return the least number of steps of a run; `growing`: as if each carried value had one
        element at first."""
        if not self.loops:
            return self.nodes
        known = {name: value for name, value in outer.items() if name not in self.defined}
        known |= self.numbers
        return self.nodes + sum(loop.steps(known, growing=growing) for loop in self.loops)


@dataclass(frozen=True)
class RunCost:
    """The estimated cost of running a model."""

    _main: _Block
    _fixed: float

    @staticmethod
    def of(model: ModelProto) -> RunCost:
        main = replace(_Block.of(model.graph, {}), defined=frozenset())  # inputs are fed
        return RunCost(main, main.steps({}, growing=True))

    @property
    def hopeless(self) -> str:
        """Why no run ends in time; empty where one may."""
        if self._main.steps({}, growing=False) <= _HOPELESS:
            return ""
        return f"its Loops in one another execute more than {_HOPELESS} nodes"

    def is_affordable(self, feeds: Feeds) -> bool:
        """Return whether a run takes no longer than the runs of a verification may."""
        numbers = {
            name: float(value.item())
            for name, value in feeds.items()
            if isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind in "ib"
        }
        return self._main.steps(numbers, growing=True) <= max(_MOST, 2 * self._fixed)


def _is_plain(tensor: TensorProto) -> bool:
    external = tensor.data_location == TensorProto.EXTERNAL
    return not external and tensor.data_type in (TensorProto.INT64, TensorProto.BOOL)


def constants_of(graph: GraphProto) -> dict[str, TensorProto]:
    """The constants that a graph itself holds, by name."""
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        constant = constant_tensor(node)
        if constant is not None:
            tensors[node.output[0]] = constant
    return tensors


def goes_on(body: GraphProto, tensors: Mapping[str, TensorProto]) -> bool:
    """Return whether a body returns the condition that it receives, or a constant that is true."""
    going, returned = body.input[1].name, body.output[0].name
    copied = [node for node in body.node if op_of(node) == "Identity" and returned in node.output]
    source = copied[0].input[0] if copied else returned
    tensor = tensors.get(source)
    holds = tensor is not None and _is_plain(tensor) and numpy_helper.to_array(tensor).all()
    return source == going or bool(holds)


#: The input that holds factors, one for each axis, by operator.
_FACTORS = {"Resize": -1, "Tile": 1, "Upsample": 1}


def growth(body: GraphProto, tensors: Mapping[str, TensorProto]) -> float:
    """The factor, where constants determine it; 1 where nothing grows, as far as is known.

    `tensors` are the constants that the body sees.
    """
    elements = {value.name: 1.0 for value in body.input[2:]}  # times those of a carried value
    for node in body.node:
        read = [name for name in node.input if name in elements]
        if read:
            often = Counter(read if op_of(node) == "Concat" else dict.fromkeys(read, 1))
            most = max(elements[name] * times for name, times in often.items())
            elements.update(dict.fromkeys(node.output, most * _factor(node, tensors)))
    carried = zip(body.input[2:], body.output[1:], strict=False)
    factors = (elements.get(new.name, 1.0) for old, new in carried if not _keeps_size(old, new))
    return max(factors, default=1.0)


def _keeps_size(old: ValueInfoProto, new: ValueInfoProto) -> bool:
    """Return whether a carried value is declared to have the same sizes after an iteration."""
    dims = dims_of(old.type)
    return dims is not None and None not in dims and dims == dims_of(new.type)


def _factor(node: NodeProto, tensors: Mapping[str, TensorProto]) -> float:
    """By how much a node enlarges its first input; 1 where that is not constant."""
    op = op_of(node)
    if op not in _FACTORS or len(node.input) > 3:  # a Resize to given sizes
        return 1.0
    scales = [list(one.floats) for one in node.attribute if one.name == "scales"]
    tensor = tensors.get(node.input[_FACTORS[op]]) if len(node.input) > 1 else None
    if tensor is not None and tensor.data_location != TensorProto.EXTERNAL:
        scales.append(numpy_helper.to_array(tensor).tolist())
    return max(1.0, math.prod(scales[0])) if scales else 1.0
