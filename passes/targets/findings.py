"""Finds everything that keeps a model from running on a target: in the model as a whole, and in
each node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from onnx import TensorProto, TypeProto, ValueInfoProto

from passes.errors import count
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.operators import CONTROL_FLOW, HOLDERS, called_key, op_of, plain_domain
from passes.ir.places import subgraphs
from passes.operators.element_types import held_types
from passes.operators.table import TRAITS
from passes.reports.report import Finding
from passes.targets import control_flow, operators
from passes.targets.profile import Profile, elements
from passes.types.value_types import dims_of, elem_type_of, element, shapes_below

#: Wrapped values that a target may not take: the fields of their types, and the names.
_KINDS = (("sequence_type", "sequences", "sequence"), ("optional_type", "optionals", "optional"))

_HALVES = {TensorProto.FLOAT16, TensorProto.BFLOAT16}


@dataclass(frozen=True)
class TargetFindings:
    """The findings of a model at a target, in the order of the graph."""

    target: str
    findings: Sequence[Finding]

    @property
    def fits(self) -> bool:
        """True if there are none."""
        return not self.findings

    def __str__(self) -> str:
        return verdict(len(self.findings), self.target)


def verdict(number: int, target: str) -> str:
    """Return whether a model fits a target, where so many things are in the way."""
    return f"{count(number, 'problem')} on {target}" if number else f"fits {target}"


def check(model: Model, profile: Profile) -> TargetFindings:
    """Return the findings of a valid model at a target."""
    findings = [*_of_model(model, profile), *_of_values(model, profile)]
    called = {(plain_domain(one.domain), one.name) for one in model.proto.functions}
    for place in scoping.walk_model(model.proto):
        domain, name, _ = called_key(place.node)
        if (domain, name) not in called:  # of what is called, each node is looked at
            findings += _of_node(model, place, profile)
    return TargetFindings(profile.name, findings)


def precision(model: Model, profile: Profile) -> str:
    """The sentence about a model of floats alone at a target that chooses no precision; else
    empty."""
    held = held_types(model)
    if not profile.strongly_typed or TensorProto.FLOAT not in held or held & _HALVES:
        return ""
    how = "(cast --to float16 makes them half precision)"
    return f"{profile.name} computes in the types of the model, and all floats are float32 {how}"


def _of_model(model: Model, profile: Profile) -> Iterator[Finding]:
    opset = model.newest_opset
    if opset not in profile.opset:
        yield Finding(
            "opset",
            "main",
            "",
            f"the model is at opset {opset}, {profile.name} takes {profile.opset}",
            profile.opset.confidence,
        )
    version = int(model.proto.ir_version)
    if version not in profile.ir_version:
        yield Finding(
            "ir-version",
            "main",
            "",
            f"the model is of IR version {version}, {profile.name} takes {profile.ir_version}",
            profile.ir_version.confidence,
        )
    if not profile.functions:
        for function in model.proto.functions:
            name = f"{function.domain}::{function.name}"
            sentence = "model-local functions are not taken"
            yield Finding("function", f"function {name}", name, sentence)


def _of_values(model: Model, profile: Profile) -> Iterator[Finding]:
    graph = model.proto.graph
    fed = {tensor.name for tensor in graph.initializer}
    for value in (*(one for one in graph.input if one.name not in fed), *graph.output):
        yield from _of_value(value, profile)


def _of_value(value: ValueInfoProto, profile: Profile) -> Iterator[Finding]:
    for kind, field, name in _KINDS:
        if value.type.HasField(kind) and not getattr(profile, field):
            yield Finding(name, value.name, "", f"{value.name!r} is of a {name} type")
    if not profile.dynamic_dims:
        for dim in _open_dims(value.type):
            sentence = f"the dim {dim} of {value.name!r} is no number"
            yield Finding("dynamic-dim", value.name, "", sentence)
    number = elem_type_of(value.type)
    if number in elements(profile.refused_types):
        sentence = f"{value.name!r} is of the element type {element(number)}, which is not taken"
        yield Finding("type", value.name, "", sentence)
    rank = dims_of(value.type)
    if not profile.dynamic_rank and value.type.HasField("tensor_type") and rank is None:
        yield Finding("dynamic-rank", value.name, "", f"the rank of {value.name!r} is unknown")
    if profile.most_dims is not None and rank is not None and len(rank) > profile.most_dims:
        sentence = f"{value.name!r} has {len(rank)} dims, at most {profile.most_dims} are taken"
        yield Finding("rank", value.name, "", sentence)


def _open_dims(kind: TypeProto) -> Iterable[str]:
    for shape in shapes_below(kind):
        for position, dim in enumerate(shape.dim):
            if not dim.HasField("dim_value"):
                yield repr(dim.dim_param) if dim.dim_param else f"at position {position}"


def unsupported(op: str, version: int, profile: Profile) -> str:
    """Why a target takes no node of a version of an operator; empty if it takes some of them."""
    if field := _untaken(op, profile):
        return f"{field} are not taken"
    listing = profile.listing(op) if op not in HOLDERS else None
    other = operators.other_version(version, listing, profile) if listing is not None else ""
    return operators.unlisted(op, profile) or other


def _untaken(op: str, profile: Profile) -> str:
    """The kind of values, a field of the profile, that an operator needs and the target lacks."""
    field = f"{TRAITS[op].wraps}s" if op in TRAITS and TRAITS[op].wraps else ""
    return field if field and not getattr(profile, field) else ""


def _of_node(model: Model, place: scoping.Place, profile: Profile) -> Iterator[Finding]:
    name = op_of(place.node)
    if field := _untaken(name, profile):
        yield Finding(field.removesuffix("s"), place.path, name, f"{field} are not taken")
        return
    if subgraphs(place.node) and name in CONTROL_FLOW:
        found = [*control_flow.findings(model, place, profile)]
        yield from found
        if found or name not in profile.refused:
            return
    yield from operators.findings(model, place, profile)
