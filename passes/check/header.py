"""Checks the first declarations of a model: its versions, and the types of its inputs."""

from __future__ import annotations

from collections.abc import Iterable

import onnx
from onnx import FunctionProto, ModelProto, OperatorSetIdProto

from passes.errors import BadModel
from passes.ir import scope as scoping
from passes.ir.operators import is_onnx_domain, op_of, plain_domain
from passes.ir.scope import Owner
from passes.ir.versions import OLDEST_OPSET
from passes.types.value_types import describe


def check_header(model: ModelProto) -> None:
    """IR version, and the opset imports of the model and of each function."""
    newest = int(onnx.IR_VERSION)
    if not model.ir_version:
        raise BadModel("the model has no IR version")
    if model.ir_version > newest:
        raise BadModel(
            f"the model has IR version {model.ir_version}, but the installed onnx "
            f"{onnx.__version__} knows versions up to {newest}"
        )
    _check_imports(model.opset_import, model.graph, scoping.MAIN)
    for function in model.functions:
        _check_imports(function.opset_import, function, scoping.function_label(function))


def _check_imports(imports: Iterable[OperatorSetIdProto], owner: Owner, path: str) -> None:
    versions: dict[str, int] = {}
    for entry in imports:
        domain = plain_domain(entry.domain)
        known = versions.setdefault(domain, entry.version)
        if known != entry.version:
            what = f"domain {domain!r}" if domain else "the default domain"
            raise BadModel(
                f"versions {known} and {entry.version} of {what} are both imported",
                path=path if isinstance(owner, FunctionProto) else "",
            )
    if "" in versions:
        _check_opset(versions[""], path if isinstance(owner, FunctionProto) else "")
    else:
        _check_unused(owner, path)


def _check_opset(version: int, path: str) -> None:
    newest = onnx.defs.onnx_opset_version()
    if version > newest:
        raise BadModel(
            f"opset {version} is imported, but the installed onnx {onnx.__version__} knows "
            f"opsets up to {newest}",
            path=path,
        )
    if version < OLDEST_OPSET:
        raise BadModel(
            f"opset {version} is imported, but {OLDEST_OPSET} is the oldest that is supported",
            path=path,
        )


def _check_unused(owner: Owner, path: str) -> None:
    """Without an import of the default domain nothing may use it."""
    for index, node in enumerate(owner.node):
        if is_onnx_domain(node.domain):
            raise BadModel(
                f"there is no opset import for the default domain, which {op_of(node)} belongs to",
                path=f"{path}/{scoping.label(node, index)}",
            )


def check_signature(model: ModelProto) -> None:
    """Every input has a type; an output without one gets it from inference."""
    constants = scoping.initializer_names(model.graph)
    for value in model.graph.input:
        if value.name in constants or describe(value.type):
            continue
        if value.type.WhichOneof("value") in (None, "tensor_type"):
            raise BadModel(f"input {value.name!r} has no type", path=scoping.MAIN)
