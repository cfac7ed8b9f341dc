"""Finds the element types that a model holds, as far as they are visible without inference."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from onnx import GraphProto, TypeProto

from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.ir.scope import Owner
from passes.operators.element_types import declared_type, signature


def held_types(model: Model) -> frozenset[int]:
    """The element types of all tensors of a model, and perhaps some more.

    They come in with inputs, weights and nodes of other domains, all declared, and from ops that
    choose one.
    """
    held: set[int] = set()
    for (owner, graphs), (_, operators) in zip(model.graphs, model.operators, strict=True):
        opset = model.opset(owner)
        chosen = {op: _chosen(op, opset) for op in operators}
        held.update(*filter(None, chosen.values()))
        choosing = {op for op, types in chosen.items() if types is None}
        for graph in graphs:
            held.update(_declared(graph))
            nodes = graph.node[:] if choosing else ()
            held.update(declared_type(node) for node in nodes if op_of(node) in choosing)
    return frozenset(held)


def _declared(owner: Owner) -> Iterator[int]:
    values = [*owner.value_info]
    if isinstance(owner, GraphProto):
        values += [*owner.input, *owner.output]
        yield from (tensor.data_type for tensor in owner.initializer)
        yield from (sparse.values.data_type for sparse in owner.sparse_initializer)
    for value in values:
        yield from _elem_types(value.type)


def _elem_types(type_: TypeProto) -> Iterator[int]:
    kind = type_.WhichOneof("value")
    if kind == "tensor_type":
        yield type_.tensor_type.elem_type
    elif kind in ("sequence_type", "optional_type"):
        yield from _elem_types(getattr(type_, kind).elem_type)


@cache
def _chosen(op: str, opset: int) -> frozenset[int] | None:
    """Return the types that an op produces and that none of its inputs has; None if an attribute
    chooses them."""
    known = signature(op, opset)
    if known is None:
        return None
    fed = {formal.variable for formal in known.inputs}
    free = [formal.valid for formal in known.outputs if formal.variable not in fed]
    if any(len(valid) != 1 for valid in free):
        return None
    return frozenset[int]().union(*free)
