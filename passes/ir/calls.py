"""Finds the model-local functions that are called."""

from __future__ import annotations

from collections.abc import Iterable

from onnx import FunctionProto, ModelProto

from passes.ir.operators import FunctionKey, called_key, function_key
from passes.ir.places import Owner, graphs_below


def calls(owner: Owner) -> set[FunctionKey]:
    """Return the functions that a graph or function may call, at any depth of its bodies."""
    return {called_key(node) for graph in graphs_below(owner) for node in graph.node[:]}


def called_functions(model: ModelProto, callers: Iterable[Owner]) -> list[FunctionProto]:
    """The functions that these graphs call, or that are called there, in the model's order."""
    functions = {function_key(one): one for one in model.functions}
    if not functions:
        return []
    pending = [key for owner in callers for key in calls(owner)]
    found: set[FunctionKey] = set()
    while pending:
        key = pending.pop()
        if key in functions and key not in found:
            found.add(key)
            pending += calls(functions[key])
    return [one for key, one in functions.items() if key in found]
