"""All values of a recurrence at once: before each iteration, after it, and the last one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto, helper

from passes.bodies.moving import Outside
from passes.bodies.recurrences import FINAL_ONLY, KINDS, Recurrence, Update
from passes.types.value_types import FLOATS, Dim, is_static
from passes.writing import spelling

#: By update, the operator of two values; that of all rows is `Reduce` and its name.
_OPERATORS = {update: op for op, update in KINDS.items() if update in FINAL_ONLY}


@dataclass(frozen=True)
class ReadValues:
    """The values of a recurrence that are read: before iterations, after them, the last one."""

    before: bool
    after: bool
    final: bool


class PrefixValues:
    """Writes the values of a recurrence.

    Where nothing simpler does, as the `joined` value [time + 1, ...]: the initial value, followed
    by the one after each iteration. It is right for no iterations too.
    """

    def __init__(self, outside: Outside, recurrence: Recurrence, uses: ReadValues) -> None:
        self.outside = outside
        self.author = outside.inner
        self.vectorizer = outside.vectorizer
        self.recurrence = recurrence
        self.uses = uses
        self.final = ""
        self._joined = self._brought = ""
        if recurrence.kind is Update.UNCHANGED:
            self.final = recurrence.carried.initial
        elif recurrence.kind is Update.COUNTER:
            self._joined = self._counted()
        elif recurrence.kind is Update.LAST:
            self._write_last()
        elif recurrence.kind is Update.SUM:
            self._write_sum()
        else:
            self._write_reduced()
        if self._joined:
            self.final = self._row(self._joined)

    def before(self) -> None:
        """Write the value before each iteration, under its name in the body."""
        name = self.recurrence.carried.body_input
        if not self.uses.before:
            return
        if self.recurrence.kind is Update.UNCHANGED:
            self.author.op("Identity", self.final, outputs=[name])
        elif self._joined:
            self._slice(0, -1, name)
        else:
            self._sum_up(name, 1)

    def after(self, name: str) -> None:
        """Write the value after each iteration."""
        if self._joined:
            self._slice(1, spelling.LAST, name)
        elif self.uses.after:
            self._sum_up(name, 0)
            if self.uses.final and not self.final:
                self.final = self._row(name)

    def _write_last(self) -> None:
        if not self.uses.before and self.vectorizer.axis.nonempty and self._is_static():
            self._fitting_rank()
            if self.vectorizer.carries(self.recurrence.value):
                self.final = self._row(self.recurrence.value)
                return
        self._joined = self._join()

    def _write_sum(self) -> None:
        """Two of the uses share one CumSum, as does the last value of a list that may be empty.

        Floats are added up in the order of the loop, from the initial value on: onnxruntime's
        ReduceSum has another order, and does not wrap integers around.
        """
        uses, any_order = self.uses, self.recurrence.elem_type not in FLOATS
        lone = uses.before + uses.after + uses.final == 1 and not uses.final
        ends = uses.after and not uses.before and self.vectorizer.axis.nonempty
        if any_order and self._is_static() and (lone or ends):
            self._brought = self._rows(self._fitting_rank())
        else:
            self._joined = self.author.op("CumSum", self._join(), self.author.int(0))

    def _write_reduced(self) -> None:
        one = self.recurrence
        if not self.vectorizer.axis.nonempty or not self._is_static():
            self.final = self._reduced(self._join())
            return
        total = self._reduced(self._rows(self._fitting_rank()))
        self.final = self.author.op(_OPERATORS[one.kind], one.carried.initial, total)

    def _sum_up(self, name: str, exclusive: int) -> None:
        author, initial = self.author, self.recurrence.carried.initial
        zero = self.outside.body.site.constant(initial)
        alone = zero is not None and not zero.any() and self._same_dims()
        running = author.op(
            "CumSum",
            self._brought,
            author.int(0),
            outputs=[name] if alone else [],
            exclusive=exclusive,
        )
        if not alone:
            author.op("Add", initial, running, outputs=[name])
        self.vectorizer.carrying.add(name)

    def _slice(self, start: int, end: int, name: str) -> None:
        spelling.part(self.author, self._joined, 0, start, end, [name])
        self.vectorizer.carrying.add(name)

    def _row(self, rows: str) -> str:
        """The last row; onnxruntime's Gather copies only the first string of it."""
        author = self.author
        if self.recurrence.elem_type != TensorProto.STRING:
            return author.op("Gather", rows, author.int(-1), axis=0)
        return spelling.squeeze(author, spelling.part(author, rows, 0, -1, spelling.LAST), 0)

    def _counted(self) -> str:
        """The initial value plus 0, 1, ..., time steps; integers wrap around in any order."""
        author, one = self.author, self.recurrence
        rank = self._fitting_rank()
        steps = spelling.arange(author, author.op("Add", self.outside.length.size, author.ints(1)))
        if one.elem_type != TensorProto.INT64:
            steps = author.op("Cast", steps, to=one.elem_type)
        if rank:
            steps = spelling.unsqueeze_axes(author, steps, range(1, 1 + rank))
        way = author.op("Mul", steps, one.value)
        return author.op("Sub" if one.negative else "Add", one.carried.initial, way)

    def _rows(self, rank: int) -> str:
        """The values of `v`, [time, ...], with `rank` axes after time."""
        rows = self.vectorizer.raised(self.vectorizer.spread(self.recurrence.value), rank)
        return self.author.op("Neg", rows) if self.recurrence.negative else rows

    def _join(self) -> str:
        """The initial value, followed by `v` of each iteration.

        A declared size that is wrong makes this fail, as it does the loop.
        """
        author, initial = self.author, self.recurrence.carried.initial
        rows = self._rows(self._fitting_rank())
        if self.recurrence.kind is not Update.LAST and not (
            self._is_static() and self._same_dims()
        ):
            shape = author.op("Concat", author.ints(1), author.op("Shape", initial), axis=0)
            rows = author.op("Expand", rows, shape)
        return author.op("Concat", spelling.unsqueeze(author, initial, 0), rows, axis=0)

    def _reduced(self, rows: str) -> str:
        reduced = self._reduce(f"Reduce{_OPERATORS[self.recurrence.kind]}", rows)
        if self.recurrence.elem_type not in FLOATS:
            return reduced
        # onnxruntime's ReduceMax and ReduceMin skip NaN, its Max and Min do not
        author = self.author
        odd = author.op("Cast", author.op("IsNaN", rows), to=TensorProto.INT32)
        is_odd = author.op("Cast", self._reduce("ReduceMax", odd), to=TensorProto.BOOL)
        dtype = helper.tensor_dtype_to_np_dtype(self.recurrence.elem_type)
        return author.op("Where", is_odd, author.value(np.array(np.nan, dtype), "nan"), reduced)

    def _reduce(self, reducer: str, rows: str) -> str:
        return spelling.along(self.author, reducer, rows, [0], keepdims=0)

    def _is_static(self) -> bool:
        """Return whether all sizes are known, of the carried value and of what each iteration
        brings."""
        dims, value = self.vectorizer.dims, self.recurrence.value
        return is_static((*dims(self.recurrence.carried.body_input), *dims(value)))

    def _same_dims(self) -> bool:
        return self.vectorizer.dims(self.recurrence.carried.body_input) == self.vectorizer.dims(
            self.recurrence.value
        )

    def _typed(self) -> str:
        """The value whose type gives the shape of `v`.

        An outer value that the body only hands on may have other sizes than the body declares,
        which does not show where no iteration runs.
        """
        index, name = self.outside.body.index, self.recurrence.value
        origin = index.source(name)
        is_outer = not index.defines(origin)
        return origin if is_outer and not self.vectorizer.axis.nonempty else name

    def _fitting_rank(self) -> int:
        """The rank of the carried value, to whose shape `v` must fit.

        Raises:
            Refused: `shape-unknown` where that is not proven.
        """
        own = self.vectorizer.dims(self.recurrence.carried.body_input)
        brought = self.vectorizer.dims(self._typed())
        pairs = list(zip(reversed(brought), reversed(own), strict=False))
        if self.recurrence.kind is Update.LAST:
            fits = len(own) == len(brought) and all(_same(new, old) for new, old in pairs)
        else:  # it broadcasts
            fits = len(own) >= len(brought) and all(
                new == 1 or _same(new, old) for new, old in pairs
            )
        if not fits:
            name, value = self.recurrence.carried.body_input, self.recurrence.value
            raise self.outside.body.site.refused(
                "shape-unknown",
                f"{name!r} {list(own)} would become {value!r} {list(brought)}, and it is not "
                "proven that its shape stays the same",
                name,
                value,
            )
        return len(own)


def _same(new: Dim, old: Dim) -> bool:
    return new is not None and new == old
