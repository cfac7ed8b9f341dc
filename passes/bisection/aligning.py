"""Gives the second model the signature of the first: names, order and declared sizes."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import ModelProto, TypeProto, ValueInfoProto

from passes.ir import scope as scoping
from passes.ir.names import Names
from passes.ir.protos import copied, replace_all
from passes.types import signature
from passes.types.value_types import dims_of, elem_type_of, may_be_equal


class NoCommonSignature(Exception):
    """The models take or give other values; one sentence with both sides."""


def aligned(before: ModelProto, after: ModelProto) -> ModelProto:
    """`after` with the inputs and outputs of `before`: those of one name are the same, or else
    those in one place.

    Raises:
        NoCommonSignature: there are more of them in one model, or their dtypes or sizes differ.
    """
    if signature.difference(before, after) is None:
        return after
    made = copied(after)
    pairs = [
        *_pairs("input", signature.feedable(before), signature.feedable(made)),
        *_pairs("output", list(before.graph.output), list(made.graph.output)),
    ]
    _rename(made, {new.name: old.name for old, new in pairs})
    types = {old.name: old for old, _ in pairs}
    fed = [value.name for value in signature.feedable(before)]
    rest = [value for value in made.graph.input if value.name not in fed]
    replace_all(made.graph.input, [*(types[name] for name in fed), *rest])
    replace_all(made.graph.output, list(before.graph.output))
    if sentence := signature.difference(before, made):
        raise NoCommonSignature(sentence)
    return made


def _pairs(
    what: str, old: Sequence[ValueInfoProto], new: Sequence[ValueInfoProto]
) -> list[tuple[ValueInfoProto, ValueInfoProto]]:
    if len(old) != len(new):
        sides = [", ".join(map(signature.describe, side)) for side in (old, new)]
        raise NoCommonSignature(f"the {what}s are ({sides[0]}) and ({sides[1]})")
    by_name = {value.name: value for value in new}
    same = all(value.name in by_name for value in old)
    others = [by_name[value.name] for value in old] if same else new
    for left, right in zip(old, others, strict=True):
        if not _fit(left.type, right.type):
            sides = [signature.describe(left), signature.describe(right)]
            raise NoCommonSignature(f"the {what} {sides[0]} is {sides[1]} in the other model")
    return list(zip(old, others, strict=True))


def _fit(left: TypeProto, right: TypeProto) -> bool:
    """Return whether a value may be of both types."""
    if left.WhichOneof("value") != "tensor_type":
        return signature.describe_type(left) == signature.describe_type(right)
    if right.WhichOneof("value") != "tensor_type" or elem_type_of(left) != elem_type_of(right):
        return False
    return may_be_equal(dims_of(left), dims_of(right))


def _rename(model: ModelProto, mapping: dict[str, str]) -> None:
    mapping = {old: new for old, new in mapping.items() if old != new}
    names = Names(scoping.all_names([model.graph]))
    taken = {new: names.fresh(new) for new in mapping.values() if new not in mapping}
    both = {**taken, **mapping}
    if both:
        scoping.rename_all(model.graph, lambda name: both.get(name, name))
