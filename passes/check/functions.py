"""Model-local functions: unique, not recursive, called with as many values as they take."""

from __future__ import annotations

from collections.abc import Iterable

from onnx import FunctionProto, ModelProto, defs

from passes.check.cycles import circle, find_cycle
from passes.errors import BadModel, count
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.operators import FunctionKey, called_key, function_key, op_of
from passes.ir.scope import Place


def check_functions(model: ModelProto, places: Iterable[Place]) -> None:
    """Functions and their calls; `places` must list every call.

    A name that is no function of the model is left alone: it is a custom operator.
    """
    if not model.functions:
        return
    positions = _positions(model)
    calls: dict[int, set[int]] = {}
    for place in places:
        node = place.node
        called = positions.get(called_key(node))
        if called is not None:
            _check_call(place, model.functions[called])
            caller = place.scope.key[0]
            assert isinstance(caller, int)
            calls.setdefault(caller - 1, set()).add(called)  # -1 is the main graph
    _check_recursion(model, calls)
    for function in model.functions:
        _check_names(function)


def check_function_opsets(model: Model) -> None:
    """A function of another opset than the model uses only operators that are the same in both."""
    outer = model.opset()
    for scope in scoping.scopes(model.proto):
        inner = model.opset(scope.owner)
        if not isinstance(scope.owner, FunctionProto) or inner in (0, outer):
            continue
        for place in scoping.walk(scope):
            op = op_of(place.node)
            if _since(op, inner) != _since(op, outer):
                raise BadModel(
                    f"the function imports opset {inner} and the model opset {outer}, but {op} "
                    "differs between them",
                    path=place.path,
                )


def _since(op: str, opset: int) -> int:
    return defs.get_schema(op, opset).since_version if defs.has(op, opset) else 0


def _positions(model: ModelProto) -> dict[FunctionKey, int]:
    positions: dict[FunctionKey, int] = {}
    for position, function in enumerate(model.functions):
        name = function_key(function)
        if name in positions:
            raise BadModel("the function is there twice", path=scoping.function_label(function))
        if not name[0] and defs.has(name[1]):
            raise BadModel(
                f"the function has the name of ONNX's own operator {name[1]}, and runtimes differ "
                "in which of the two they call",
                path=scoping.function_label(function),
            )
        positions[name] = position
    return positions


def _check_call(place: Place, function: FunctionProto) -> None:
    label = scoping.function_label(function)
    for what, used, known, verb in (
        ("input", place.node.input, function.input, "takes"),
        ("output", place.node.output, function.output, "gives"),
    ):
        if len(used) > len(known):
            sides = f"{count(len(used), what)}, but function {label} {verb} {len(known) or 'none'}"
            raise BadModel(f"the call has {sides}", path=place.path)


def _check_recursion(model: ModelProto, calls: dict[int, set[int]]) -> None:
    for start in calls:
        cycle = find_cycle(start, lambda caller: sorted(calls.get(caller, ())))
        if cycle is not None:
            labels = [scoping.function_label(model.functions[position]) for position in cycle]
            raise BadModel(f"functions call each other in a circle: {circle(labels)}")


def _check_names(function: FunctionProto) -> None:
    path = scoping.function_label(function)
    for what, listed in (("input", function.input), ("output", function.output)):
        repeated = next((name for name in listed if list(listed).count(name) > 1), None)
        if repeated is not None:
            raise BadModel(f"{what} {repeated!r} is listed twice", path=path)
    known = scoping.defined(function)
    for name in function.output:
        if name not in known:
            raise BadModel(f"output {name!r} is defined nowhere", path=path)
