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
from passes.ir.operators import HOLDERS, op_of
from passes.operators.table import traits_of
from passes.operators.traits import Fails, Values
from passes.verify.run_cost import constants_of, goes_on

#: `divided`: data that is divided, or divides; `ended`: the trip count of a Loop that its condition
#: may end.
Use = Literal["data", "divided", "index", "trips", "ended", "other"]
Uses = Mapping[str, frozenset[Use]]
#: Whole numbers of any size are undefined in these, or end the process.
_DELICATE = frozenset({"Pow", "BitShift"})
#: Zero as the second operand, and the least number by -1, end the process.
_DIVIDING = frozenset({"Div", "Mod"})
_CONTROL_FLOW = HOLDERS - {"SequenceMap"}
_FLOATS = frozenset({TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE})
_NUMBERS = frozenset({TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8, TensorProto.BOOL})


#: The inputs whose elements are in a value, and whether as floats, by the name of the value.
_Held = dict[str, frozenset[tuple[str, bool]]]
_NONE: frozenset[tuple[str, bool]] = frozenset()


def uses_of(model: ModelProto) -> Uses:
    """The uses of each input's elements, followed through the main graph and its bodies."""
    uses: dict[str, set[Use]] = {value.name: set() for value in model.graph.input}
    _follow(model.graph, {name: frozenset({(name, False)}) for name in uses}, uses)
    return {name: frozenset(found) for name, found in uses.items()}


def _follow(graph: GraphProto, held: _Held, uses: Mapping[str, set[Use]]) -> None:
    """Add the uses in a graph, and to `held` what its values hold."""
    for node in graph.node:
        inputs = {name: held.get(name, _NONE) for name in node.input if name}
        for position, name in enumerate(node.input):
            for origin, floats in inputs.get(name, ()):
                use = _use(node, position, graph)
                if op_of(node) == "Cast" and floats and attribute(node, "to", 0) not in _FLOATS:
                    use = "other"
                uses[origin].add(use)
        if op_of(node) in _CONTROL_FLOW:
            _follow_bodies(node, held, uses)
            continue
        for name in set(scope.free_names(node)) - set(node.input):
            for origin, _ in held.get(name, ()):
                uses[origin].add("other")
        if traits_of(node).values is not Values.SIZES:
            made = frozenset(origin for origins in inputs.values() for origin in origins)
            if op_of(node) == "Cast" and attribute(node, "to", 0) not in _NUMBERS:
                made = frozenset((origin, True) for origin, _ in made)
            held.update(dict.fromkeys(filter(None, node.output), made))


def _follow_bodies(node: NodeProto, held: _Held, uses: Mapping[str, set[Use]]) -> None:
    """The same for an If, or a loop, whose body is followed until what it carries holds no more."""
    op = op_of(node)
    for _, body in scope.subgraphs(node):
        first = 1 if op == "Loop" else 0  # of the outputs, the condition comes first
        states = len(body.input) - (attribute(node, "num_scan_inputs", 1) if op == "Scan" else 0)
        fed = list(node.input)[-len(body.input) :] if body.input else []
        entering = {
            value.name: held.get(name, _NONE) for value, name in zip(body.input, fed, strict=False)
        }
        if op == "Loop":  # the number of an iteration is small however large the trip count is
            entering[body.input[0].name] = _NONE
        while True:
            inner = {**held, **entering}
            _follow(body, inner, uses)
            left = [inner.get(value.name, _NONE) for value in body.output]
            carried = zip(body.input[2 * first : states], left[first:], strict=False)
            more = {value.name: entering.get(value.name, _NONE) | new for value, new in carried}
            if op == "If" or all(entering.get(name, _NONE) == new for name, new in more.items()):
                break
            entering |= more
        for origin, _ in left[0] if op == "Loop" else ():
            uses[origin].add("other")  # it may decide how many iterations there are
        for name, made in zip(node.output, left[first:], strict=False):
            held[name] = held.get(name, _NONE) | made


def _use(node: NodeProto, position: int, graph: GraphProto) -> Use:
    op, traits = op_of(node), traits_of(node)
    if op == "Loop" and position == 0:
        body = next(graph for _, graph in scope.subgraphs(node))
        constants = constants_of(graph) | constants_of(body)
        return "trips" if goes_on(body, constants) else "ended"
    if traits.indices:
        return "index" if position in traits.indices else "other" if op == "OneHot" else "data"
    if position in traits.fixed:
        return "index" if traits.axes else "other"
    if op in _CONTROL_FLOW:  # what a body does with it is followed
        return "data"
    if op in _DIVIDING:
        return "divided"
    safe = traits.fails not in (Fails.OPEN, Fails.INDICES)
    return "data" if safe and op not in _DELICATE else "other"


def are_data(uses: frozenset[Use] | None) -> bool:
    """Return whether elements may be any numbers."""
    return uses is not None and uses <= {"data"}


def are_numbers(uses: frozenset[Use] | None) -> bool:
    """Return whether elements may be any numbers but zero and the ends of their type."""
    return uses is not None and uses <= {"data", "divided"}


def are_indices(uses: frozenset[Use] | None) -> bool:
    """Return whether elements may be negative indices, which count from the end."""
    return uses is not None and "index" in uses and uses <= {"data", "divided", "index"}


def are_trips(uses: frozenset[Use] | None) -> bool:
    """Return whether an element is a trip count and no size."""
    return bool(uses) and not (uses or frozenset()) & {"index", "other"} and not are_numbers(uses)
