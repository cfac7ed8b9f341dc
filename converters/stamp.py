"""What a model says about itself once every node is converted: opset imports and IR version."""

from __future__ import annotations

from collections.abc import Iterable

from onnx import FunctionProto, ModelProto, OperatorSetIdProto, helper

from passes.ir import scope as scoping
from passes.ir.operators import is_onnx_domain
from passes.ir.versions import FREE_INITIALIZERS


def ir_version_for(opset: int) -> int:
    """The smallest IR version that a model of this opset fits in (`onnx.helper.VERSION_TABLE`).

    Raises:
        ValueError: the installed onnx does not know the opset.
    """
    imports = [helper.make_opsetid("", opset)]
    try:
        version: int = helper.find_min_ir_version_for(imports)
    except ValueError as error:
        raise ValueError(f"the installed onnx does not know opset {opset}") from error
    return version


def stamp(model: ModelProto, target: int) -> None:
    """Say, in place, that `model` and its functions are written in opset `target`.

    Imports of the standard domain, in both spellings, and the IR version are raised, never
    lowered; other domains keep their version. On leaving IR 3, inputs that name an initializer
    are dropped, in bodies too: there they were constants. From IR 4 on such an input of the main
    graph is a default that callers may override, and stays.

    Raises:
        ValueError: the installed onnx does not know the opset.
    """
    ir_version = max(model.ir_version, ir_version_for(target))
    _raise(model.opset_import, target)
    for function in model.functions:
        _raise(function.opset_import, target)
    if model.ir_version < FREE_INITIALIZERS <= ir_version:
        for _, owner in scoping.owners(model):
            for graph in scoping.graphs_below(owner):
                if not isinstance(graph, FunctionProto):
                    scoping.drop_constant_inputs(graph)
    model.ir_version = ir_version


def _raise(imports: Iterable[OperatorSetIdProto], target: int) -> None:
    for entry in imports:
        if is_onnx_domain(entry.domain):
            entry.version = max(entry.version, target)
