"""Collected outputs: stacking them, and their shape when a loop never ran."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TypeProto

from passes.verify.executor import Array, CannotRun, Value
from passes.verify.reference.control_flow.body_types import (
    Found,
    at_odds,
    computed,
    inferred_types,
    output_types,
)
from passes.verify.reference.control_flow.holder import Holder
from passes.verify.reference.control_flow.static_sizes import NONE, Sizes, Symbols, sizes_of
from passes.verify.reference.evaluator import Evaluator
from passes.verify.reference.failures import described
from passes.verify.reference.machine import Frame
from passes.verify.reference.value_types import (
    blank,
    known_dtype,
    known_shape,
    tensor_type,
    type_of,
)


class Collector:
    """Gathers the collected outputs of one run of one loop; all elements must agree."""

    def __init__(self, holder: Holder, count: int) -> None:
        self.holder = holder
        self.elements: list[list[Array]] = [[] for _ in range(count)]

    def add(self, values: Sequence[Value]) -> None:
        """Takes what one iteration collected; `ModelFailed` when its type or shape is new."""
        for index, (value, taken) in enumerate(zip(values, self.elements, strict=True)):
            if taken:
                taken.append(self.holder.kept("collected output", index, taken[0], value))
            else:
                taken.append(self.holder.tensor(value, f"collected output {index}"))

    def stacked(self, index: int, axis: int = 0, *, backwards: bool = False) -> Array:
        """The elements of one output along a new axis: rank r gives rank r + 1."""
        taken = self.elements[index]
        _check_axis(self.holder, index, axis, taken[0].ndim + 1)
        stack: Array = np.stack(taken[::-1] if backwards else taken, axis=axis)
        return stack


def _check_axis(holder: Holder, index: int, axis: int, rank: int) -> None:
    if not -rank <= axis < rank:
        raise holder.fails(f"axis {axis} does not fit collected output {index}, {rank}-d")


class Elements:
    """The shapes of a body's collected elements, needed when it never ran."""

    def __init__(self, holder: Holder, body: Evaluator, first: int) -> None:
        self.holder = holder
        self.body = body
        self.first = first
        self._known: dict[Any, Found] = {}

    def blanks(
        self, inputs: dict[str, TypeProto], frame: Frame, place: Sequence[tuple[int, ...]]
    ) -> list[Array]:
        """Return zeros for each collected output.

        Per output, `place` has the axis followed by the lengths to insert there. Dims of an
        element are what the body's types say given those of what it is fed and captures, else
        what the types of the whole model say, else 0. Where the types of the model leave
        them open, the run is marked as one with guessed shapes; where what the body declares is not
        so, as one that was misfed. Raises `CannotRun` when the type is unknown.
        """
        body, known = self.body, self._known
        captured = {name: frame.values[name] for name in body.captured if name in frame.values}
        kinds = output_types(body, inputs, captured, known)[self.first :]
        symbols = self._symbols(frame)
        found = inferred_types(body, inputs, captured, known)
        if found.odd or any(
            at_odds(kind, sizes_of(value.type, symbols))
            for kind, value in zip(found.types, body.proto_.output, strict=True)
        ):
            self.holder.machine.misfed = True
        static = self._static(inputs, captured, symbols)
        shapes = [_shape(kind, found) for kind, found in zip(kinds, static, strict=True)]
        if shapes != static or any(map(at_odds, kinds, static)):
            self.holder.machine.guessed_shapes = True
        return [
            self._blank(index, known_dtype(kind), shape, where)
            for index, (kind, shape, where) in enumerate(zip(kinds, shapes, place, strict=True))
        ]

    def _symbols(self, frame: Frame) -> Symbols:
        """Return the sizes of symbols at the location of the loop."""
        around, read = self.holder.around, [*filter(None, self.holder.node.input)]
        if self.body.scope is None or around.scope is None:
            return {}
        static = self.holder.machine.static
        return static.symbols(around.scope, [*read, *self.body.captured], frame.values)

    def _static(
        self, inputs: dict[str, TypeProto], captured: dict[str, Value], symbols: Symbols
    ) -> list[Sizes]:
        """The dims that do not depend on what the model computes.

        Those that types declare, and those that follow from constants alone.
        """
        body, around = self.body, self.holder.around
        unfixed = computed(around, captured)
        if body.scope is None or around.scope is None:
            known = output_types(body, inputs, captured, self._known, by_type=unfixed)
            return [known_shape(kind) for kind in known[self.first :]]
        static = self.holder.machine.static
        types = {
            name: _sized(kind, static.of(body.scope, name, symbols))
            for name, kind in inputs.items()
        }
        for name in sorted(unfixed):
            sizes = static.of(around.scope, name, symbols)
            types[name] = _sized(type_of(captured[name], shaped=False), sizes)
        fixed = {name: value for name, value in captured.items() if name not in unfixed}
        known = output_types(body, types, fixed, self._known)[self.first :]
        names = body.output_names_[self.first :]
        return [
            _completed(static.of(body.scope, name, symbols), known_shape(kind))
            for name, kind in zip(names, known, strict=True)
        ]

    def _blank(
        self,
        index: int,
        dtype: np.dtype[np.generic] | None,
        shape: list[int],
        place: tuple[int, ...],
    ) -> Array:
        axis, *lengths = place
        if dtype is None:
            raise CannotRun(
                f"{described(self.holder.node)} runs no iteration, and the type is unknown of "
                f"its collected output {index}"
            )
        _check_axis(self.holder, index, axis, len(shape) + 1)
        position = axis % (len(shape) + 1)
        return blank((*shape[:position], *lengths, *shape[position:]), dtype)


def _shape(kind: TypeProto, sizes: Sizes) -> list[int]:
    """The dims of a type, where it leaves them open those known otherwise, else 0.

    Also 0 where both know them and do not agree.
    """
    dims = _completed(known_shape(kind), sizes) or []
    others = sizes if sizes is not None and len(sizes) == len(dims) else dims
    return [
        max(dim or 0, 0) if size in (None, dim) else 0
        for dim, size in zip(dims, others, strict=True)
    ]


def _completed(dims: Sizes, others: Sizes) -> Sizes:
    """The dims, where they are open the others."""
    if dims is None or others is None or len(dims) != len(others):
        return others if dims is None else dims
    return [other if dim is None else dim for dim, other in zip(dims, others, strict=True)]


def _sized(kind: TypeProto, sizes: Sizes) -> TypeProto:
    """A type with these sizes in place of its own."""
    dtype = known_dtype(kind)
    if dtype is None:
        return kind
    return tensor_type(dtype, sizes and [None if size == NONE else size for size in sizes])
