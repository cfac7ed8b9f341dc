"""Is an operator in this opset, and is it fed as many values as it takes?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import onnx
from onnx import NodeProto, defs

from passes.errors import BadModel, count
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.operators import bare_op, called_key, function_key, is_onnx_domain, op_of
from passes.ir.scope import Place, Scope


@dataclass(frozen=True)
class NodeInScope(Place):
    """A node with the opset it is written in and its bodies, of which it may have none."""

    opset: int
    bodies: Sequence[Scope]


#: Kinds of attributes that are looked into.
_LOOKED_INTO = {
    defs.OpSchema.AttrType.GRAPH,
    defs.OpSchema.AttrType.GRAPHS,
    defs.OpSchema.AttrType.STRING,
    defs.OpSchema.AttrType.STRINGS,
}


@dataclass(frozen=True)
class _Version:
    since: int
    deprecated: bool
    is_plain: bool


def check_operators(model: Model, places: Iterable[NodeInScope]) -> None:
    """Every operator of the default domain is in the opset, every other domain is imported.

    `places` must list every node that is not a plain operator.
    """
    own = {function_key(function)[:2] for function in model.proto.functions}
    for place in places:
        node = place.node
        if called_key(node)[:2] in own:
            continue
        if not bare_op(node):
            raise BadModel("the node has no op_type", path=place.path)
        if is_onnx_domain(node.domain):
            _check_version(place, place.opset)
        elif not model.opset_at(place.scope, node.domain):
            raise BadModel(
                f"there is no opset import for domain {node.domain!r}, which {bare_op(node)} "
                "belongs to",
                path=place.path,
            )


def check_arity(model: Model) -> None:
    """Every operator of the default domain has as many inputs and outputs as it must have."""
    for scope in scoping.scopes(model.proto):
        opset = model.opset(scope.owner)
        for place in scoping.walk(scope):
            node = place.node
            if defs.has(op_of(node), opset):
                _check_counts(place, _schema(op_of(node), opset))


@cache
def plain_operators(opset: int) -> frozenset[str]:
    """Operators of an opset that hold no graph, tensor or text: nothing to check in them."""
    known = (
        name
        for name, versions in _history().items()
        if (version := _version_at(versions, opset)) is not None
        and not version.deprecated
        and version.is_plain
    )
    return frozenset(known) - {"Constant"}


@cache
def _history() -> dict[str, list[_Version]]:
    """Every version of every operator of the default domain, oldest first."""
    table: dict[str, list[_Version]] = {}
    for schema in defs.get_all_schemas_with_history():
        if is_onnx_domain(schema.domain):
            kinds = {attribute.type for attribute in schema.attributes.values()}
            plain = kinds.isdisjoint(_LOOKED_INTO)
            version = _Version(schema.since_version, schema.deprecated, plain)
            table.setdefault(schema.name, []).append(version)
    for versions in table.values():
        versions.sort(key=lambda version: version.since)
    return table


def _version_at(versions: list[_Version], opset: int) -> _Version | None:
    return next((version for version in reversed(versions) if version.since <= opset), None)


def _check_version(place: Place, opset: int) -> None:
    op = op_of(place.node)
    versions = _history().get(op)
    if versions is None:
        raise BadModel(
            f"opset {opset} has no operator {op}, nor has any other that onnx "
            f"{onnx.__version__} knows",
            path=place.path,
        )
    version = _version_at(versions, opset)
    if version is None:
        raise BadModel(
            f"opset {opset} has no operator {op}, which came with opset {versions[0].since}",
            path=place.path,
        )
    # GroupNormalization-18 is deprecated too, but there was none before it: it may be there.
    if version.deprecated and version is not versions[0]:
        raise BadModel(
            f"opset {opset} has no operator {op}, which was removed in opset {version.since}",
            path=place.path,
        )


@cache
def _schema(op: str, opset: int) -> defs.OpSchema:
    return defs.get_schema(op, opset)


def _check_counts(place: Place, schema: defs.OpSchema) -> None:
    node = place.node
    for what, names, least, most, formal in (
        ("input", node.input, schema.min_input, schema.max_input, schema.inputs),
        ("output", node.output, schema.min_output, schema.max_output, schema.outputs),
    ):
        if not least <= len(names) <= most:
            raise BadModel(
                f"{op_of(node)} has {count(len(names), what)}, but takes {_range(least, most)}"
                if what == "input"
                else f"{op_of(node)} has {count(len(names), what)}, but gives "
                f"{_range(least, most)}",
                path=place.path,
            )
        for position, parameter in enumerate(formal[: len(names)]):
            _check_given(place, what, position, names[position], parameter)


def _check_given(
    place: Place, what: str, position: int, name: str, formal: defs.OpSchema.FormalParameter
) -> None:
    if not name and formal.option == defs.OpSchema.FormalParameterOption.Single:
        node: NodeProto = place.node
        raise BadModel(
            f"{what} {position} of {op_of(node)} ({formal.name}) is empty, but not optional",
            path=place.path,
        )


def _range(least: int, most: int) -> str:
    if least == most:
        return str(least)
    return f"at least {least}" if most > 1 << 20 else f"{least} to {most}"
