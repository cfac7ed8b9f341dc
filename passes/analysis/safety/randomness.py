"""Finds nodes that draw random numbers, and so may not be run twice, dropped or merged."""

from __future__ import annotations

from collections.abc import Iterable

from onnx import NodeProto

from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.operators import FunctionKey, called_key, function_key, op_of
from passes.operators.table import traits_of

_KNOWN_DOMAINS = frozenset({"", "ai.onnx", "ai.onnx.ml"})


def is_pure(node: NodeProto) -> bool:
    """Return whether a node is proven to give the same result each time, at every depth.

    Nothing is known about functions and operators of other domains, so these are not.
    """
    if draws(node) or node.domain not in _KNOWN_DOMAINS:
        return False
    return all(map(is_pure, scoping.inner_nodes(node)))


def first_random(model: Model, nodes: Iterable[NodeProto]) -> NodeProto | None:
    """The first node that is known to draw random numbers, at any depth and in any called function.

    Operators of other domains that the model does not define are assumed not to.
    """
    functions = {function_key(function): function for function in model.proto.functions}
    seen: set[FunctionKey] = set()
    pending = list(nodes)[::-1]
    while pending:
        node = pending.pop()
        if draws(node):
            return node
        called = called_key(node)
        if called in functions and called not in seen:
            seen.add(called)
            pending.extend(functions[called].node)
        for _, graph in scoping.subgraphs(node):
            pending.extend(graph.node)
    return None


def draws(node: NodeProto) -> bool:
    """Return whether an operator draws random numbers; a Dropout does where it may be in training
    mode."""
    if op_of(node) == "Dropout":
        return len(node.input) > 2 and bool(node.input[2])
    return traits_of(node).draws
