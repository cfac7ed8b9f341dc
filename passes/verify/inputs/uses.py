"""Finds what a model uses the integers of its inputs for: data, indices, or trip counts.

Numbers of any size may be drawn where they are data. Elsewhere they might make a tensor of 2**31
elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from passes.ir import scope
from passes.ir.attributes import attribute
from passes.ir.operator_traits import UNKNOWN, Fails, Values, traits_of
from passes.ir.operators import op_of
from passes.verify.run_cost import constants_of, goes_on

#: `ended`: the trip count of a Loop that its condition may end.
Use = Literal["data", "index", "trips", "ended", "other"]
Uses = Mapping[str, frozenset[Use]]
#: Whole numbers of any size are undefined in these, or end the process.
_DELICATE = frozenset({"Div", "Mod", "Pow", "BitShift"})
#: Where a position from the end is taken.
_AXES = frozenset({"CumSum", "Squeeze", "Unsqueeze", "Slice"})
_INDEXED = frozenset(
    {"Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND", "OneHot"}
)
_FLOATS = frozenset({TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE})
_NUMBERS = frozenset({TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8, TensorProto.BOOL})


def uses_of(model: ModelProto) -> Uses:
    """The uses of each input's elements, as far as they are followed: through the main graph."""
    uses: dict[str, set[Use]] = {value.name: set() for value in model.graph.input}
    #: The inputs whose elements are in a value, and whether as floats.
    held: dict[str, frozenset[tuple[str, bool]]] = {
        name: frozenset({(name, False)}) for name in uses
    }
    for node in model.graph.node:
        inputs = {name: held.get(name, frozenset()) for name in node.input if name}
        for position, name in enumerate(node.input):
            for origin, floats in inputs.get(name, ()):
                use = _use(node, position, model.graph)
                if op_of(node) == "Cast" and floats and attribute(node, "to", 0) not in _FLOATS:
                    use = "other"
                uses[origin].add(use)
        for name in set(scope.free_names(node)) - set(node.input):
            for origin, _ in held.get(name, ()):
                uses[origin].add("other")
        if traits_of(node).values is not Values.SIZES:
            made = frozenset(origin for origins in inputs.values() for origin in origins)
            if op_of(node) == "Cast" and attribute(node, "to", 0) not in _NUMBERS:
                made = frozenset((origin, True) for origin, _ in made)
            held.update(dict.fromkeys(filter(None, node.output), made))
    return {name: frozenset(found) for name, found in uses.items()}


def _use(node: NodeProto, position: int, graph: GraphProto) -> Use:
    op, traits = op_of(node), traits_of(node)
    if op == "Loop" and position == 0:
        body = next(graph for _, graph in scope.subgraphs(node))
        constants = constants_of(graph) | constants_of(body)
        return "trips" if goes_on(body, constants) else "ended"
    if op in _INDEXED:
        index = 0 if op == "OneHot" else 1
        return "index" if position == index else "other" if op == "OneHot" else "data"
    if position in traits.fixed:
        return "index" if op in _AXES or op.startswith("Reduce") else "other"
    if op == "If" and position == 0:
        return "data"
    safe = traits != UNKNOWN and traits.fails not in (Fails.OPEN, Fails.INDICES)
    return "data" if safe and op not in _DELICATE else "other"


def are_data(uses: frozenset[Use] | None) -> bool:
    """Return whether elements may be any numbers."""
    return uses is not None and uses <= {"data"}


def are_indices(uses: frozenset[Use] | None) -> bool:
    """Return whether elements may be negative indices, which count from the end."""
    return uses is not None and "index" in uses and uses <= {"data", "index"}


def are_trips(uses: frozenset[Use] | None) -> bool:
    """Return whether an element is a trip count and no size."""
    return bool(uses) and not (uses or frozenset()) & {"index", "other"} and not are_data(uses)
