"""Random operators, also in the functions that a node calls."""

from __future__ import annotations

from collections.abc import Iterable

from onnx import NodeProto

from passes.analysis.safety.speculation import RANDOM
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.operators import FunctionKey, called_key, function_key, op_of


def first_random(model: Model, nodes: Iterable[NodeProto]) -> NodeProto | None:
    """The first node, at any depth and in any function called, that draws anew each time."""
    functions = {function_key(one): one for one in model.proto.functions}
    seen: set[FunctionKey] = set()
    pending = list(nodes)[::-1]
    while pending:
        node = pending.pop()
        if op_of(node) in RANDOM or _trains(node):
            return node
        called = called_key(node)
        if called in functions and called not in seen:
            seen.add(called)
            pending.extend(functions[called].node)
        for _, graph in scoping.subgraphs(node):
            pending.extend(graph.node)
    return None


def _trains(node: NodeProto) -> bool:
    """Whether a Dropout may be told that it trains."""
    return op_of(node) == "Dropout" and len(node.input) > 2 and bool(node.input[2])
