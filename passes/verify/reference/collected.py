"""Collected outputs: stacking them, and their shape when a loop never ran."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TypeProto

from passes.verify.executor import Array, CannotRun, Value
from passes.verify.reference.body_types import computed, output_types
from passes.verify.reference.failures import described
from passes.verify.reference.holder import Holder
from passes.verify.reference.machine import Frame
from passes.verify.reference.value_types import blank, known_dtype, known_shape

if TYPE_CHECKING:
    from passes.verify.reference.evaluator import Evaluator


class Collector:
    """Gathers the collected outputs of one run of one loop; all elements must agree."""

    def __init__(self, holder: Holder, count: int) -> None:
        self.holder = holder
        self.elements: list[list[Array]] = [[] for _ in range(count)]

    def add(self, values: Sequence[Value]) -> None:
        """Takes what one iteration collected; `ModelFailed` when its type or shape is new."""
        for index, (value, taken) in enumerate(zip(values, self.elements, strict=True)):
            element = self.holder.tensor(value, f"collected output {index}")
            if taken:
                self.holder.same_kind(f"collected output {index}", taken[0], element, shape=True)
            taken.append(element)

    def stacked(self, index: int, axis: int = 0, *, backwards: bool = False) -> Array:
        """The elements of one output along a new axis: rank r gives rank r + 1."""
        taken = self.elements[index]
        rank = taken[0].ndim + 1
        if not -rank <= axis < rank:
            raise self.holder.fails(f"axis {axis} does not fit collected output {index}, {rank}-d")
        stack: Array = np.stack(taken[::-1] if backwards else taken, axis=axis)
        return stack


class Elements:
    """What the collected elements of a body would be, asked when it never ran."""

    def __init__(self, holder: Holder, body: Evaluator, first: int) -> None:
        self.holder = holder
        self.body = body
        self.first = first
        self._known: dict[Any, list[TypeProto]] = {}

    def blanks(
        self, inputs: dict[str, TypeProto], frame: Frame, place: Sequence[tuple[int, ...]]
    ) -> list[Array]:
        """Zeros for each collected output.

        Per output, `place` has the axis followed by the lengths to insert there. Unknown dims
        of an element are 0, and the run is marked as one with guessed shapes; likewise where
        only numbers that the run computed tell a dim. Raises `CannotRun` when nothing tells the
        type.
        """
        body, known = self.body, self._known
        captured = {name: frame.values[name] for name in body.captured if name in frame.values}
        kinds = output_types(body, inputs, captured, known)[self.first :]
        unfixed = computed(self.holder.around, captured)
        told = output_types(body, inputs, captured, known, by_type=unfixed)[self.first :]
        if any(dims is None or None in dims for dims in map(known_shape, told)):
            self.holder.machine.guessed_shapes = True
        return [
            self._blank(index, kind, where[0], where[1:])
            for index, (kind, where) in enumerate(zip(kinds, place, strict=True))
        ]

    def _blank(self, index: int, kind: TypeProto, axis: int, lengths: tuple[int, ...]) -> Array:
        dtype = known_dtype(kind)
        if dtype is None:
            raise CannotRun(
                f"{described(self.holder.node)} runs no iteration, and nothing tells the type of "
                f"its collected output {index}"
            )
        dims = known_shape(kind)
        shape = [dim or 0 for dim in dims or []]
        rank = len(shape) + 1
        if not -rank <= axis < rank:
            raise self.holder.fails(f"axis {axis} does not fit collected output {index}, {rank}-d")
        at = axis % rank
        return blank((*shape[:at], *lengths, *shape[at:]), dtype)
