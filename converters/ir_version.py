"""Finds what a model holds that an older IR version cannot, and chooses the version of an outcome.

The versions are those of the comments in onnx.proto, "Versioning".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
)

from passes.converters.stamp import declare_ir_version, ir_version_for
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.operators import is_onnx_domain, op_of
from passes.ir.places import path_of
from passes.ir.protos import copied
from passes.ir.scope import Owner, Scope
from passes.ir.versions import (
    FREE_INITIALIZERS,
    FUNCTIONS,
    FUNCTIONS_HAVE_DEFAULTS,
    FUNCTIONS_HAVE_OVERLOADS,
)

_WithMetadata = Owner | NodeProto | TensorProto | ValueInfoProto


@dataclass(frozen=True)
class Feature:
    """A feature that models have since an IR `version`; `metadata`: it does not affect what they
    compute."""

    what: str
    version: int
    metadata: bool = False


DEFAULT_INPUT = Feature("is an input with a default, which callers may override", FREE_INITIALIZERS)
QUANTIZATION = Feature("has a quantization_annotation", 5)
SPARSE = Feature("holds a sparse tensor", 6)
TRAINING = Feature("has training_info", 7)
FUNCTION = Feature("is a function", FUNCTIONS)
OPTIONAL_TYPE = Feature("has an optional type", 8)
SPARSE_TYPE = Feature("has a sparse tensor type", 8)
TYPE_ATTRIBUTE = Feature("has an attribute that is a type", 8)
FUNCTION_DEFAULT = Feature("has attributes with defaults", FUNCTIONS_HAVE_DEFAULTS)
OVERLOAD = Feature("has an overload", FUNCTIONS_HAVE_OVERLOADS)
FUNCTION_TYPES = Feature("has value_info in a function", 10, metadata=True)
METADATA = Feature("has metadata_props", 10, metadata=True)
DEVICES = Feature("has a device configuration", 11, metadata=True)


def _element_types() -> dict[int, Feature]:
    versions = {
        4: ("BFLOAT16",),
        9: ("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ"),
        10: ("UINT4", "INT4"),
        11: ("FLOAT4E2M1",),
        12: ("FLOAT8E8M0",),
        13: ("UINT2", "INT2"),
        14: ("FLOAT6E2M3", "FLOAT6E3M2"),
    }
    return {
        TensorProto.DataType.Value(name): Feature(f"has elements of type {name.lower()}", version)
        for version, names in versions.items()
        for name in names
    }


ELEMENT_TYPES = _element_types()
#: Attributes of the standard operators that name an element type.
_TYPE_NAMES = frozenset(
    ("to", "dtype", "output_dtype", "output_datatype", "stash_type", "softmax_precision")
)


@dataclass(frozen=True)
class VersionNeed:
    """A place in a model, the operator or what else it is (`graph`), and what it holds."""

    path: str
    kind: str
    feature: Feature


#: A path, the operator or what else is there, a code and a sentence.
Refusal = tuple[str, str, str, str]


@dataclass(frozen=True)
class Fitted:
    """A model and the IR version that it is to have; it has it unless something that this version
    cannot hold is `refused`. `notes`: what was dropped, and what held the version up."""

    model: ModelProto
    version: int
    refused: Sequence[Refusal] = ()
    notes: Sequence[str] = ()


def fit(
    original: ModelProto, outcome: ModelProto, asked: int | None, *, exact: bool, drop: bool
) -> Fitted:
    """Return the outcome of a conversion at its IR version.

    That is the one `asked` for where it is `exact`. Else, on the way to an older opset, it is the
    smallest that the opset needs and the content allows, but none that is newer than the
    original's; on the way to a newer one, the original's or what the opset needs; and none that
    is newer than `asked`. `drop`: metadata that it cannot hold is removed.
    """
    own = int(original.ir_version)
    before, after = (Model(one).newest_opset for one in (original, outcome))
    if asked is None and after >= before:
        return Fitted(outcome, outcome.ir_version)
    found = list(needs(outcome))
    kept = [one for one in found if not (drop and one.feature.metadata)]
    notes: list[str] = []
    if asked is not None and exact:
        version = asked
    elif after >= before:
        version = min(outcome.ir_version, asked or outcome.ir_version)
    else:
        content = max((one.feature.version for one in kept), default=0)
        needed = ir_version_for(after)
        version = min(own, max(needed, content))
        if version > needed:
            last = [one for one in kept if one.feature.version >= version]
            notes.append(
                f"IR version {version}, where opset {after} needs {needed}: {_named(last)}"
            )
        version = min(version, asked or version)
    lost = [one for one in found if version < min(own, one.feature.version)]
    refused = [one for one in lost if one in kept]
    if refused or version == outcome.ir_version:
        return Fitted(outcome, version, [_refusal(one, version) for one in refused], notes)
    if outcome is original:
        outcome = copied(original)
    for feature in dict.fromkeys(one.feature for one in lost):
        places = [one for one in lost if one.feature == feature]
        notes.append(f"dropped, as IR version {version} cannot hold it: {_named(places)}")
    if lost:
        _drop_metadata(outcome, version)
    declare_ir_version(outcome, version)
    return Fitted(outcome, version, (), notes)


def _named(needed: Sequence[VersionNeed]) -> str:
    more = f" (and {len(needed) - 1} more)" if len(needed) > 1 else ""
    return f"{needed[0].path} {needed[0].feature.what}{more}"


def _refusal(need: VersionNeed, version: int) -> Refusal:
    feature, way = need.feature, ""
    if feature.metadata:
        way = "; --drop-metadata drops it"
    elif feature in (FUNCTION, FUNCTION_DEFAULT, OVERLOAD):
        way = "; --inline all does without"
    sentence = (
        f"it {feature.what}, which came with IR version {feature.version}, not {version}{way}"
    )
    return need.path, need.kind, "ir-metadata" if feature.metadata else "ir-version", sentence


def needs(model: ModelProto) -> Iterator[VersionNeed]:
    """All that a model holds that some IR version since 3 cannot hold."""
    if model.training_info:
        yield VersionNeed(scoping.MAIN, "model", TRAINING)
    if model.configuration:
        yield VersionNeed(scoping.MAIN, "model", DEVICES)
    if model.ir_version >= FREE_INITIALIZERS:
        constants = scoping.initializer_names(model.graph)
        for value in model.graph.input:
            if value.name in constants:
                yield VersionNeed(f"{scoping.MAIN}/{value.name}", "input", DEFAULT_INPUT)
    for scope in scoping.scopes(model):
        yield from _in_scope(scope)


def _in_scope(scope: Scope) -> Iterator[VersionNeed]:
    owner, kind = scope.owner, "graph"
    values: list[tuple[str, ValueInfoProto]] = []
    tensors: Sequence[TensorProto] = ()
    if isinstance(owner, FunctionProto):
        kind = "function"
        yield from (VersionNeed(scope.path, kind, one) for one in _of_function(owner))
    else:
        values += [("input", value) for value in owner.input]
        values += [("output", value) for value in owner.output]
        tensors = owner.initializer
        if owner.quantization_annotation:
            yield VersionNeed(scope.path, kind, QUANTIZATION)
        if owner.sparse_initializer:
            yield VersionNeed(scope.path, kind, SPARSE)
    if owner.metadata_props:
        yield VersionNeed(scope.path, kind, METADATA)
    values += [("value", value) for value in owner.value_info]
    for what, value in values:
        for one in _of_value(value):
            yield VersionNeed(f"{scope.path}/{value.name}", what, one)
    for tensor in tensors:
        for one in _of_tensor(tensor):
            yield VersionNeed(f"{scope.path}/{tensor.name}", "initializer", one)
    for index, node in enumerate(owner.node[:]):
        if not (node.attribute or node.metadata_props or node.device_configurations):
            continue
        for one in _of_node(node):
            yield VersionNeed(path_of(scope, node, index), op_of(node), one)
        if scoping.holds_graphs(node):
            for inner in scope.inner(index):
                yield from _in_scope(inner)


def _of_function(function: FunctionProto) -> Iterator[Feature]:
    yield FUNCTION
    if function.attribute_proto:
        yield FUNCTION_DEFAULT
    if function.overload:
        yield OVERLOAD
    if function.value_info:
        yield FUNCTION_TYPES


def _of_node(node: NodeProto) -> Iterator[Feature]:
    if node.metadata_props:
        yield METADATA
    if node.device_configurations:
        yield DEVICES
    for attribute in node.attribute[:]:
        kind = attribute.type
        if kind == AttributeProto.INT:
            named = attribute.name in _TYPE_NAMES and is_onnx_domain(node.domain)
            if named and attribute.i in ELEMENT_TYPES:
                yield ELEMENT_TYPES[attribute.i]
        elif kind == AttributeProto.TENSOR:
            yield from _of_tensor(attribute.t)
        elif kind == AttributeProto.TENSORS:
            for tensor in attribute.tensors:
                yield from _of_tensor(tensor)
        elif kind in (AttributeProto.SPARSE_TENSOR, AttributeProto.SPARSE_TENSORS):
            yield SPARSE
        elif kind in (AttributeProto.TYPE_PROTO, AttributeProto.TYPE_PROTOS):
            yield TYPE_ATTRIBUTE


def _of_tensor(tensor: TensorProto) -> Iterator[Feature]:
    if tensor.data_type in ELEMENT_TYPES:
        yield ELEMENT_TYPES[tensor.data_type]
    if tensor.metadata_props:
        yield METADATA


def _of_value(value: ValueInfoProto) -> Iterator[Feature]:
    if value.metadata_props:
        yield METADATA
    yield from _of_type(value.type)


def _of_type(type_: TypeProto) -> Iterator[Feature]:
    kind = type_.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        if kind == "sparse_tensor_type":
            yield SPARSE_TYPE
        elem_type = getattr(type_, kind).elem_type
        if elem_type in ELEMENT_TYPES:
            yield ELEMENT_TYPES[elem_type]
    elif kind in ("sequence_type", "optional_type"):
        if kind == "optional_type":
            yield OPTIONAL_TYPE
        yield from _of_type(getattr(type_, kind).elem_type)
    elif kind == "map_type":
        yield from _of_type(type_.map_type.value_type)


def _drop_metadata(model: ModelProto, version: int) -> None:
    """Remove, in place, metadata that an IR version cannot hold."""
    if version < DEVICES.version:
        del model.configuration[:]
    for _, top in scoping.owners(model):
        if isinstance(top, FunctionProto) and version < FUNCTION_TYPES.version:
            del top.value_info[:]
        for owner in scoping.graphs_below(top):
            if version < DEVICES.version:
                for node in owner.node:
                    del node.device_configurations[:]
            if version < METADATA.version:
                for one in _with_metadata(owner):
                    del one.metadata_props[:]


def _with_metadata(owner: Owner) -> Iterator[_WithMetadata]:
    """Yield everything with metadata_props in a graph, without its bodies."""
    yield owner
    yield from owner.value_info
    if isinstance(owner, GraphProto):
        yield from owner.input
        yield from owner.output
        yield from owner.initializer
    for node in owner.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == AttributeProto.TENSOR:
                yield attribute.t
            yield from attribute.tensors
