"""What happens to a collected output behind the loop, where a Scan can do the same itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from onnx import NodeProto

from passes.analysis.bodies.readers import OUTPUT, readers_around
from passes.ir.operators import op_of
from passes.ir.versions import SLICE_HAS_INPUTS
from passes.rule import Site

_BEYOND = -(1 << 31)  # an end that lies in front of every axis


@dataclass(frozen=True)
class OutputLayout:
    """A collected output: its name, axis and order. `covered` are the nodes that made it so."""

    name: str
    axis: int = 0
    reversed: bool = False
    covered: tuple[int, ...] = ()


def placed(site: Site, name: str, axis: int = 0, backwards: bool = False) -> OutputLayout:
    """Follow a collected output through reversals and moves of its axis, as far as they go.

    Each must be the only reader of what is in front of it.
    """
    found = OutputLayout(name, axis, backwards)
    while True:
        readers: Sequence[int] = readers_around(site).get(found.name, ()) if found.name else ()
        if len(readers) != 1 or readers[0] == OUTPUT:
            return found
        node = site.scope.owner.node[readers[0]]
        moved = _moved(site, found, node)
        if moved is None:
            return found
        found = replace(moved, name=node.output[0], covered=(*found.covered, readers[0]))


def _moved(site: Site, found: OutputLayout, node: NodeProto) -> OutputLayout | None:
    if node.input[:1] != [found.name]:
        return None
    if op_of(node) == "Transpose":
        perm: Sequence[int] = next((one.ints for one in node.attribute if one.name == "perm"), ())
        others = [axis for axis in perm if axis != found.axis]
        if len(others) == len(perm) or others != sorted(others):
            return None
        return replace(found, axis=list(perm).index(found.axis))
    is_slice = op_of(node) == "Slice" and site.opset >= SLICE_HAS_INPUTS
    if is_slice and len(node.input) == 5 and _reverses(site, node, found.axis):
        return replace(found, reversed=not found.reversed)
    return None


def _reverses(site: Site, node: NodeProto, axis: int) -> bool:
    """Whether a Slice gives all elements of one axis, last first."""
    values = [site.constant(name) for name in node.input[1:]]
    numbers = [value.ravel().tolist() for value in values if value is not None and value.size == 1]
    if len(numbers) != 4:
        return False
    (start,), (end,), (at,), (step,) = numbers
    return bool(start == -1 and end <= _BEYOND and at == axis and step == -1)
