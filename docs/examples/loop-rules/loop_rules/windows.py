"""States that hold the latest elements of what a Scan scans."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
from onnx import NodeProto

from passes.bodies.time_body import TimeBody
from passes.ir.attributes import attribute
from passes.ir.operators import op_of
from passes.loops.form import Carried, Scanned
from passes.types.value_types import Dims, dims_of


@dataclass(frozen=True)
class Window:
    """A carried value to which each iteration appends an element of `scanned`, along `axis`.

    `whole` is the window with the newest element, of `size` elements. `full`: the value that is
    carried has as many, of which the oldest is dropped before the newest is added; else one less.
    `is_row`: a scanned element has the axis already. `gone` are the values that the body then does
    not compute.
    """

    carried: Carried
    scanned: Scanned
    whole: str
    axis: int
    size: int
    full: bool
    is_row: bool
    gone: frozenset[str]


def windows(body: TimeBody) -> list[Window]:
    """The windows among what a loop carries.

    Raises:
        Refused: one cannot be scanned instead.
    """
    return list(_Finding(body).found())


def is_read(body: TimeBody, name: str, gone: Collection[str]) -> bool:
    """Return whether a value of a body has readers but those that compute the values in `gone`."""
    positions = {body.index.positions[one] for one in gone}
    return not positions.issuperset(body.index.readers.get(name, ()))


class _Finding:
    def __init__(self, body: TimeBody) -> None:
        self.body = body
        self.index = body.index
        self.scanned = {scanned.body_input: scanned for scanned in body.form.scanned}

    def found(self) -> Iterator[Window]:
        for carried in self.body.form.carried:
            dims = self._dims(carried.body_input)
            end = self.index.source(carried.body_output)
            last = self.index.producers.get(end)
            if not dims or last is None:
                continue
            window = None
            if op_of(last) == "Concat":
                window = self._appended(carried, dims, last, full=True)
            elif op_of(last) == "Slice":
                join = self.index.producers.get(self.index.source(last.input[0]))
                if join is not None and op_of(join) == "Concat":
                    window = self._appended(carried, dims, join, full=False)
                    if window is not None and not self._is_rest(last, window.size, window.axis):
                        window = None
            if window is not None:
                yield window

    def _appended(
        self, carried: Carried, dims: Dims, join: NodeProto, *, full: bool
    ) -> Window | None:
        """The window that a Concat completes; None where it is none."""
        axis = (attribute(join, "axis", 0) or 0) % len(dims)
        kept = dims[axis]
        if len(join.input) != 2 or not isinstance(kept, int) or kept < 1:
            return None
        old, new = map(self.index.source, join.input)
        size = kept if full else kept + 1
        gone = {join.output[0]}
        if full:
            cut = self.index.producers.get(old)
            if cut is None or op_of(cut) != "Slice" or not self._is_rest(cut, kept, axis):
                return None
            gone.add(old)
            old = self.index.source(cut.input[0])
        row, is_row = self._row(new, axis)
        unread = self.index.readers.get(new, ()) == [self.index.positions[join.output[0]]]
        if old != carried.body_input or row not in self.scanned:
            return None
        self._refuse_readers(carried, join.output[0], gone)
        if unread and not is_row:
            gone.add(new)
        window = Window(
            carried, self.scanned[row], join.output[0], axis, size, full, is_row, frozenset(gone)
        )
        self._refuse_sizes(window, dims, new)
        return window

    def _row(self, new: str, axis: int) -> tuple[str, bool]:
        """The element that a window gets, and whether it has the axis of the window already."""
        node = self.index.producers.get(new)
        if node is None or op_of(node) != "Unsqueeze":
            return new, True
        axes = self._numbers(node, 1)
        if axes is None or len(axes) != 1 or axes[0] % len(self._dims(new) or (1,)) != axis:
            return "", False
        return self.index.source(node.input[0]), False

    def _is_rest(self, cut: NodeProto, size: int, axis: int) -> bool:
        """Return whether a Slice leaves all but the first of `size` elements along an axis."""
        starts, ends, axes = (self._numbers(cut, position) for position in (1, 2, 3))
        steps = self._numbers(cut, 4) if len(cut.input) > 4 and cut.input[4] else [1]
        rank = len(self._dims(cut.input[0]) or ())
        if not rank or axes is None or [one % rank for one in axes] != [axis]:
            return False
        first = starts is not None and starts in ([1], [1 - size])
        return first and ends is not None and ends[0] >= size and steps == [1]

    def _refuse_readers(self, carried: Carried, whole: str, gone: set[str]) -> None:
        """See that only what completes the window reads it without the newest element."""
        for name in {carried.body_input, *gone} - {whole}:
            if is_read(self.body, name, gone):
                what = f"{carried.body_input!r} is read before the newest element is in it"
                raise self.body.site.refused("reads-window", what, name)

    def _refuse_sizes(self, window: Window, dims: Dims, new: str) -> None:
        own = self._dims(new)
        same = own is not None and len(own) == len(dims)
        expected = [1 if axis == window.axis else dim for axis, dim in enumerate(dims)]
        if not same or None in expected or list(own or ()) != expected:
            raise self.body.site.refused(
                "other-sizes",
                f"the sizes of {new!r} are not known to be those of {window.carried.body_input!r}",
                new,
            )

    def _dims(self, name: str) -> Dims | None:
        return dims_of(self.body.rows.types.get(name))

    def _numbers(self, node: NodeProto, position: int) -> list[int] | None:
        """A constant operand."""
        if position >= len(node.input):
            return None
        value = self.body.rows.constants.get(self.index.source(node.input[position]))
        return None if value is None else [int(one) for one in np.ravel(value)]
