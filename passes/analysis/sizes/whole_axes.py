"""Slices that leave an axis as it is, from 0 to the largest int32, as some exporters write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import GraphProto, NodeProto, TensorProto, numpy_helper

from passes.ir.constant_nodes import constant_tensor
from passes.ir.operators import op_of

Array = npt.NDArray[Any]
_END = (1 << 31) - 1  # no axis is longer


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
    if {"starts", "ends", "axes"} <= set(known):
        starts, ends = known["starts"].ints, known["ends"].ints
        cut = cut_axes(starts, ends, [1] * len(starts))
        for name in ("starts", "ends", "axes"):
            known[name].ints[:] = [known[name].ints[position] for position in cut]


def cut_axes(starts: Sequence[int], ends: Sequence[int], steps: Sequence[int]) -> list[int]:
    """The positions of the axes that a Slice with these bounds may cut."""
    bounds = enumerate(zip(starts, ends, steps, strict=True))
    return [
        position for position, (start, end, step) in bounds if (start, step) != (0, 1) or end < _END
    ]


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
    cut = cut_axes(starts.tolist(), ends.tolist(), step.tolist())
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
