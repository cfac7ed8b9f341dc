"""Folds operators on a collected output after the loop into the Scan that collects it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from onnx import NodeProto

from passes.ir.attributes import attributes
from passes.ir.graph_index import OUTPUT
from passes.ir.operators import op_of
from passes.ir.versions import SLICE_HAS_INPUTS
from passes.rule import Site

_BEYOND = -(1 << 31)  # an end before the start of every axis


@dataclass(frozen=True)
class OutputLayout:
    """A collected output: its name, axis and order. `covered` are the nodes that arranged it so."""

    name: str
    axis: int = 0
    reversed: bool = False
    covered: tuple[int, ...] = ()


def placed(site: Site, name: str, axis: int = 0, backwards: bool = False) -> OutputLayout:
    """Follow a collected output through reversals and transpositions.

    Each must be the only reader of its input.
    """
    layout = OutputLayout(name, axis, backwards)
    while True:
        readers: Sequence[int] = site.graph.readers.get(layout.name, ()) if layout.name else ()
        if len(readers) != 1 or readers[0] == OUTPUT:
            return layout
        node = site.scope.owner.node[readers[0]]
        moved = _moved(site, layout, node)
        if moved is None:
            return layout
        layout = replace(moved, name=node.output[0], covered=(*layout.covered, readers[0]))


def _moved(site: Site, layout: OutputLayout, node: NodeProto) -> OutputLayout | None:
    if node.input[:1] != [layout.name]:
        return None
    if op_of(node) == "Transpose":
        perm = attributes(node, "perm") or []
        others = [axis for axis in perm if axis != layout.axis]
        if len(others) == len(perm) or others != sorted(others):
            return None
        return replace(layout, axis=perm.index(layout.axis))
    is_slice = op_of(node) == "Slice" and site.opset >= SLICE_HAS_INPUTS
    if is_slice and len(node.input) == 5 and _reverses(site, node, layout.axis):
        return replace(layout, reversed=not layout.reversed)
    return None


def _reverses(site: Site, node: NodeProto, axis: int) -> bool:
    """Return whether a Slice reverses one axis."""
    values = [site.constant(name) for name in node.input[1:]]
    numbers = [value.ravel().tolist() for value in values if value is not None and value.size == 1]
    if len(numbers) != 4:
        return False
    (start,), (end,), (along,), (step,) = numbers
    return bool(start == -1 and end <= _BEYOND and along == axis and step == -1)
