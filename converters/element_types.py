"""The rule `element-types`: a Cast for element types that an older version of an op lacks."""

from __future__ import annotations

from functools import cache

from onnx import NodeProto

from passes.ir.model import Model
from passes.ir.operators import is_onnx_domain, op_of
from passes.ir.versions import SCAN_8
from passes.operators.element_types import held_types, needs_of, signature
from passes.rule import Considers, Edit, NothingToDo, Site, register
from passes.types.value_types import elem_type_of


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Return whether the op of a node takes fewer element types at the target."""
    return (
        target < opset and is_onnx_domain(node.domain) and bool(_lost(op_of(node), opset, target))
    )


def closer(model: Model, target: int) -> Considers | None:
    """Considers only nodes with an element type that their op does not take at the target; None
    where the model holds no type that any of its ops loses: mostly no inference is needed to see
    that.
    """
    lost: set[int] = set()
    for owner, operators in model.operators:
        opset = model.opset(owner)
        lost.update(*(_lost(op, opset, target) for op in operators))
    if not lost or lost.isdisjoint(held_types(model)):
        return None
    types = model.types.elem_types

    def considers_closely(node: NodeProto, opset: int, target: int) -> bool:
        if target >= opset or not is_onnx_domain(node.domain):
            return False
        gone = _lost(op_of(node), opset, target)
        names = (*node.input, *node.output) if gone else ()
        return any(not gone.isdisjoint(types.get(name, ())) for name in names)

    return considers_closely


@register("element-types", considers=considers, closer=closer)
def rewrite(site: Site) -> Edit:
    """Let a node of an older opset take its element types, through Casts to wider ones and back.

    Before (opset 14):

        y = Add (x, x)

    After (opset 13), where x is int8:

        wide = Cast <to = 6> (x)
        sum = Add (wide, wide)
        y = Cast <to = 3> (sum)

    That happens where the op gives the same on the wider type, bit for bit; elsewhere the node is
    refused, as any rewrite is that needs what an op does not take (`type-not-taken`).
    """
    node = site.node
    inputs, outputs = (
        [elem_type_of(site.type_of(name)) if name else 0 for name in names]
        for names in (node.input, node.output)
    )
    needs = needs_of(op_of(node), site.target, inputs, outputs)
    if all(need.is_lacked for need in needs):
        raise NothingToDo
    return Edit((node,), note=f"element types of opset {site.target}")


@cache
def _lost(op: str, opset: int, target: int) -> frozenset[int]:
    """The element types that some input or output of an op has at `opset`, and not at `target`."""
    newer, older = signature(op, opset), signature(op, target)
    if target >= opset or newer is None or older is None:
        return frozenset()
    if op == "Scan" and target == SCAN_8:
        return frozenset()  # its inputs are in other places: its form is what the opset lacks
    pairs = (
        *zip(newer.inputs, older.inputs, strict=False),
        *zip(newer.outputs, older.outputs, strict=False),
    )
    return frozenset[int]().union(*(new.valid - old.valid for new, old in pairs))
