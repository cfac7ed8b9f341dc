"""Slices that read one element of an axis, however they say where they end."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import NodeProto

from passes.rules.affine import Affine, Ints
from passes.rules.integers import Integers
from passes.rules.intervals import Intervals

#: A step behind every end: an axis would have to be longer.
_FAR = 10**9


@dataclass(frozen=True)
class Single:
    """The axis on which a Slice reads one element, where it starts; `far`: by a step that leads
    out of the tensor."""

    axis: int
    far: bool


def single_slice(integers: Integers, node: NodeProto) -> Single | None:
    """The one element that a Slice of a body reads, None where it may read more, or none.

    It reads one where it ends next to its start; or with a step that leads out of any tensor, as
    tf2onnx writes `x[i]`, and an end behind the start.
    """
    starts, ends, axes, steps = (_input(integers, node, position) for position in (1, 2, 3, 4))
    axis = 0 if len(node.input) < 4 else number_of(axes)
    step = 1 if len(node.input) < 5 or not node.input[4] else number_of(steps)
    start = None if starts is None else starts.single
    if axis is None or start is None or step is None:
        return None
    if step == 1:
        end = None if ends is None else ends.single
        return Single(axis, far=False) if end is not None and (end - start).number == 1 else None
    far = step >= _FAR and _ends_behind(integers, node, start, step)
    return Single(axis, far=True) if far else None


def _ends_behind(integers: Integers, node: NodeProto, start: Affine, step: int) -> bool:
    """Whether the end is behind the start, wherever that is in a tensor shorter than the step."""
    end = Intervals(integers, start, (0.0, float(step - 1))).of(node.input[2])
    return end is not None and end[0] >= step


def _input(integers: Integers, node: NodeProto, position: int) -> Ints | None:
    return integers.inside(node.input[position]) if position < len(node.input) else None


def number_of(ints: Ints | None) -> int | None:
    """The number that fixed ints hold, where there is one only."""
    return ints.single.number if ints is not None and ints.single is not None else None
