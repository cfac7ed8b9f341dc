"""Calls of functions: model-local ones, and operators that their schema defines by a function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx import AttributeProto, FunctionProto, NodeProto, defs

from passes.ir.operators import called_key, op_of
from passes.verify.executor import CannotRun, ModelFailed, Value
from passes.verify.reference.evaluator import Evaluator
from passes.verify.reference.failures import described
from passes.verify.reference.library import call_attributes, specialise
from passes.verify.reference.machine import Frame, Kernel
from passes.verify.reference.value_types import type_of


def function_call(
    node: NodeProto,
    function: FunctionProto,
    caller: Evaluator,
    defaults: dict[str, AttributeProto] | None = None,
) -> Kernel:
    """Return the kernel of a call.

    The function's evaluator is made when the call first runs, so that functions may be listed in
    any order, and once per distinct set of attributes.
    """
    given = call_attributes(node, function, defaults)
    known: list[Evaluator] = []

    def kernel(operands: list[Value], frame: Frame) -> Sequence[Any]:
        if not known:
            known.append(_evaluator(caller, function, given))
        names = list(known[0].input_names_)
        if len(operands) > len(names):
            raise ModelFailed(
                f"{described(node)} passes {len(operands)} inputs, the function takes {len(names)}"
            )
        fed = [*operands, *[None] * (len(names) - len(operands))]
        # Functions capture nothing: no outer frame.
        return known[0].call({"": None}, None, names, fed)

    return kernel


def _evaluator(
    caller: Evaluator, function: FunctionProto, given: dict[str, AttributeProto]
) -> Evaluator:
    machine = caller.machine
    spelled = sorted((name, value.SerializeToString()) for name, value in given.items())
    key = (id(function), tuple(spelled))
    if key not in machine.function_evaluators:
        special = specialise(function, given)
        imports = {entry.domain: entry.version for entry in special.opset_import}
        machine.function_evaluators[key] = (type(caller)(special, machine, imports), function)
    evaluator: Evaluator = machine.function_evaluators[key][0]
    return evaluator


def schema_call(node: NodeProto, version: int, caller: Evaluator) -> Kernel:
    """The kernel of a standard operator that its schema defines by a function of other ones.

    Raises `CannotRun` when the schema has no function for this opset.
    """
    domain, op, _ = called_key(node)
    # onnx's type stubs leave out what a schema knows of its function.
    schema: Any = defs.get_schema(op, version, domain)
    if schema.has_function:
        function = _schema_function(schema, version)
        return function_call(node, function, caller, _schema_defaults(schema))
    if not schema.has_context_dependent_function:
        raise CannotRun(f"no kernel for {op_of(node)} at opset {version}")
    by_types: dict[tuple[bytes, ...], Kernel] = {}
    defaults = _schema_defaults(schema)

    def kernel(operands: list[Value], frame: Frame) -> Sequence[Any]:
        types = tuple(type_of(operand).SerializeToString() for operand in operands)
        if types not in by_types:
            body = schema.get_context_dependent_function(node.SerializeToString(), list(types))
            function = FunctionProto.FromString(body)
            for place in range(len(function.output)):  # it may not define what is left out
                if place >= len(node.output) or not node.output[place]:
                    function.output[place] = ""
            # nodes alike share a body, so the machine makes one evaluator for all of them
            function = caller.machine.schema_functions.setdefault(
                function.SerializeToString(), function
            )
            by_types[types] = function_call(node, function, caller, defaults)
        return by_types[types](operands, frame)

    return kernel


def _schema_function(schema: Any, version: int) -> FunctionProto:
    fitting = [known for known in schema.function_opset_versions if known <= version]
    if not fitting:
        body: FunctionProto = schema.function_body
        return body
    function = FunctionProto()
    function.ParseFromString(schema.get_function_with_opset_version(max(fitting)))
    return function


def _schema_defaults(schema: Any) -> dict[str, AttributeProto]:
    return {
        name: attribute.default_value
        for name, attribute in schema.attributes.items()
        if attribute.default_value.type != AttributeProto.UNDEFINED
    }
