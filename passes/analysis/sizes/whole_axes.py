"""Reads the range of a Slice: exporters let it name axes that it keeps, from 0 to the largest
int32."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, numpy_helper

from passes.ir.attributes import attributes
from passes.ir.constants import constant_tensor
from passes.ir.operators import op_of
from passes.operators.exactness import Array

#: No axis is longer.
END = (1 << 31) - 1
_BOUNDS = ("starts", "ends", "axes", "steps")


def forget_whole_axes(graph: GraphProto) -> None:
    """Let the Slices of a graph name only the axes that they cut.

    Inference assumes that the size of an unknown axis changes where a Slice names it at all.
    """
    fixed: dict[str, TensorProto | None] = {tensor.name: tensor for tensor in graph.initializer}
    fixed |= {node.output[0]: constant_tensor(node) for node in graph.node if node.output}
    for number, node in enumerate(graph.node):
        if op_of(node) != "Slice":
            continue
        if len(node.input) == 1:
            _forget_in_attributes(node)
        elif (cuts := _cuts(node, fixed)) is not None:
            _write(graph, node, cuts, f"{node.output[0]}/cut_{number}")


def _forget_in_attributes(node: NodeProto) -> None:
    """For Slices below opset 10."""
    known = {attribute.name: attribute for attribute in node.attribute}
    cuts = cuts_of(node, lambda node, at, name: attributes(node, name))
    for name in _BOUNDS[:3] if cuts is not None and "axes" in known else ():
        known[name].ints[:] = [known[name].ints[position] for position in _not_whole(cuts or ())]


@dataclass(frozen=True)
class AxisCut:
    """An axis that a Slice names, with its bounds; None where they are unknown."""

    axis: int
    start: int | None
    end: int | None
    step: int | None

    @property
    def is_whole(self) -> bool:
        """True if the axis stays as it is."""
        return (self.start, self.step) == (0, 1) and self.end is not None and self.end >= END

    @property
    def keeps_size(self) -> bool:
        """True if the axis stays as it is, or is reversed."""
        end = 0 if self.end is None else self.end
        return self.is_whole or ((self.start, self.step) == (-1, -1) and end < -END)

    @property
    def part(self) -> slice | None:
        """The part of the axis that remains; None if it is unknown, or has gaps."""
        known = self.start is not None and self.end is not None and self.step == 1
        return slice(self.start, self.end) if known else None


def cuts_of(
    node: NodeProto, numbers: Callable[[NodeProto, int, str], Sequence[int] | None]
) -> list[AxisCut] | None:
    """The axes that a Slice names; None where they are unknown, or do not fit the bounds.

    `numbers` returns those of an input, or of the attribute that it was in older opsets.
    """
    starts, ends, axes, steps = (numbers(node, at, name) for at, name in enumerate(_BOUNDS, 1))
    given = [at < len(node.input) and bool(node.input[at]) for at in range(5)]
    if axes is None and starts is not None and not given[3]:
        axes = range(len(starts))
    if axes is None:
        return None
    if steps is None and not given[4]:
        steps = [1] * len(axes)
    bounds = [[None] * len(axes) if found is None else found for found in (starts, ends, steps)]
    if any(len(found) != len(axes) for found in bounds):
        return None
    return [AxisCut(axis, *found) for axis, *found in zip(axes, *bounds, strict=True)]


def _not_whole(cuts: Sequence[AxisCut]) -> list[int]:
    return [position for position, cut in enumerate(cuts) if not cut.is_whole]


def _cuts(node: NodeProto, fixed: Mapping[str, TensorProto | None]) -> list[Array] | None:
    """Starts, ends, axes and steps of the axes that are cut; None where none can be left out."""
    tensors = [fixed.get(name) for name in node.input[1:] if name]
    if len(tensors) < 3:
        return None  # without axes, it names all
    known = [numpy_helper.to_array(tensor) for tensor in tensors if tensor is not None]
    if len(known) != len(node.input) - 1:
        return None
    starts, ends, axes, *steps = known
    step = steps[0] if steps else np.ones_like(starts)
    arrays = (axes, starts, ends, step)
    cut = _not_whole(
        [AxisCut(*row) for row in zip(*(array.tolist() for array in arrays), strict=True)]
    )
    return None if len(cut) == len(axes) else [array[cut] for array in (starts, ends, axes, step)]


def _write(graph: GraphProto, node: NodeProto, cuts: list[Array], name: str) -> None:
    data = node.input[0]
    del node.input[:]
    node.input.append(data)
    if not cuts[0].size:
        node.op_type = "Identity"
        return
    for position, numbers in enumerate(cuts):
        node.input.append(f"{name}_{position}")
        graph.initializer.append(numpy_helper.from_array(numbers, node.input[-1]))
