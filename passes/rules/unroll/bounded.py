"""Writes out the iterations of a loop that may end before its bound."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace

from onnx import GraphProto, NodeProto, TensorProto, TypeProto

from passes.analysis.trip_count.truth import Truth
from passes.loops.form import LoopForm
from passes.rule import Edit, Limit, Site
from passes.rules.unroll.trip_bounds import Bound
from passes.rules.unroll.unrolling import Unrolling
from passes.types.value_types import dims_of, elem_type_of
from passes.writing import spelling
from passes.writing.author import Author
from passes.writing.purposes import GUARD_PROMISE


def promised(site: Site, form: LoopForm, most: int) -> NodeProto:
    """The site's Loop, made to fail in the iteration behind the last that is allowed.

    Only verification runs it: it tells a broken promise from a wrong rewrite.
    """
    assert form.condition is not None
    author = Author(site.target, site.names, f"{site.node.name or 'loop'}/promised")
    number = author.op("Reshape", form.iteration, author.ints())
    kept = author.op("Less", number, author.int(most))
    given = form.condition.body_output
    guarded = spelling.guarded(author, given, kept, TensorProto.BOOL)
    body = GraphProto()
    body.CopyFrom(form.body)
    body.node.extend(author.nodes)
    body.initializer.extend(author.constants)
    body.output[0].name = guarded
    condition = replace(form.condition, body_output=guarded)
    # what was no input before IR 4 is one now: the constants are of the body alone
    return replace(form, body=body, condition=condition).to_node()


class Bounded(Unrolling, ABC):
    """Writes `bound.size` iterations; one takes place only where those before it did, and only
    while the loop goes on. `_step` says how."""

    guards = GUARD_PROMISE

    def __init__(self, site: Site, form: LoopForm, bound: Bound) -> None:
        super().__init__(site, form, bound.size)
        self.bound = bound
        self.loop = form
        self.count = self._counted(form)
        assert form.condition is not None
        initial = form.condition.initial
        fixed = site.constant(initial) if initial else None
        self.initial = "" if fixed is not None else initial  # a constant one is true here
        self.ends = not Truth(site, form).ends_never()

    def _counted(self, form: LoopForm) -> str:
        """M, where it is not known to allow what is written."""
        if self.site.constant(form.trip_count) is not None:
            return ""
        return _scalar(self.author, form.trip_count, self.site.type_of(form.trip_count))

    def edit(self, note: str) -> Edit:
        """Write the iterations, then what the last that took place handed on and all collected."""
        author = self.author
        author.adopt(self.body.nodes, self.body.constants)
        states = [one.initial for one in self.form.carried]
        started = _scalar(author, self.initial, self.site.type_of(self.initial))
        going = self._both([started], 0)
        flags = []
        for index in range(self.trips):
            flags.append(going)
            states, go_on = self._step(index, going, states)
            going = self._both(self._still(going, go_on), index + 1)
        if not self.bound.promised:
            self._finish(states, flags, "")
            return replace(self._cleaned(note), limit=Limit(self.trips))
        asked = bool(self.site.options.check_output)
        with nullcontext() if asked else author.serving(self.guards):
            kept = author.op("Not", going, outputs=[author.fresh("enough")])
        check = kept if asked else ""
        self._finish(states, flags, "" if check or self._valid_inputs else kept)
        edit = self._cleaned(note, [check] if check else ())
        broken = promised(self.site, self.loop, self.trips)
        return replace(edit, limit=Limit(self.trips, broken, check))

    def _finish(self, states: Sequence[str], flags: Sequence[str], kept: str) -> None:
        for carried, state in zip(self.form.carried, states, strict=True):
            self._hand_on(state, carried.final, kept)
        if not any(one.tensor for one in self.form.collected):
            return
        count = self._how_many(flags)
        for one, rows in zip(self.form.collected, self.collected, strict=True):
            if one.tensor:
                every = self.author.op("Concat", *rows, axis=0) if len(rows) > 1 else rows[0]
                elem_type = elem_type_of(self.site.type_of(one.tensor))
                self._hand_on(
                    spelling.prefix(self.author, every, count, elem_type), one.tensor, kept
                )

    def _how_many(self, flags: Sequence[str]) -> str:
        """The number of iterations that took place, int64 [1]."""
        author = self.author
        open_ = [spelling.unsqueeze(author, flag, 0) for flag in flags if flag]
        if not open_:
            return author.ints(len(flags))
        every = author.op("Concat", *open_, axis=0) if len(open_) > 1 else open_[0]
        total = spelling.total(author, author.op("Cast", every, to=TensorProto.INT64))
        count = spelling.unsqueeze(author, total, 0)
        certain = len(flags) - len(open_)
        return author.op("Add", count, author.ints(certain)) if certain else count

    @abstractmethod
    def _step(self, index: int, going: str, states: list[str]) -> tuple[list[str], str]:
        """Write iteration `index`, which takes place where `going` (always where that is empty).

        Answers with the states behind it and with the body's condition, a scalar; what it
        collects goes to `collected`, each a row [1, ...] that counts only where it took place.
        """

    def _flat(self, index: int, states: list[str]) -> tuple[list[str], list[str], str]:
        """Write an iteration as it is: its states, its rows and its condition."""
        written = self._written(self.author, f"it{index}", self._number(index), states)
        self.value_info += written.value_info
        self.annotations += written.annotations
        count = 1 + len(states)
        rows = [spelling.unsqueeze(self.author, one, 0) for one in written.outputs[count:]]
        return written.outputs[1:count], rows, self._condition(self.author, written.outputs[0])

    def _condition(self, author: Author, name: str) -> str:
        """The body's condition, a scalar; "" where it does not count."""
        assert self.form.condition is not None
        known = self.site.body_type_of("body", self.form.condition.body_output)
        return _scalar(author, name, known) if self.ends else ""

    def _still(self, going: str, go_on: str) -> list[str]:
        """What tells that the loop goes on behind an iteration, but for M."""
        return [going, go_on]

    def _keep(self, rows: Sequence[str]) -> None:
        for kept, row in zip(self.collected, rows, strict=True):
            kept.append(row)

    def _both(self, conditions: Sequence[str], index: int) -> str:
        """Whether iteration `index` takes place, by these conditions and by M; "" for always."""
        parts = [one for one in conditions if one]
        if self.count:
            parts.append(self.author.op("Less", self.author.int(index), self.count))
        return spelling.both(self.author, parts) if parts else ""


def _scalar(author: Author, name: str, known: TypeProto | None) -> str:
    """A number or condition, which may be a vector of one; "" where there is none."""
    if not name or dims_of(known) == ():
        return name
    return author.op("Reshape", name, author.ints())


class Masked(Bounded):
    """Every iteration runs; what it gives is taken where the loop had not ended."""

    def _step(self, index: int, going: str, states: list[str]) -> tuple[list[str], str]:
        """Write an iteration, and choose between its states and those before it."""
        news, rows, go_on = self._flat(index, states)
        self._keep(rows)
        if not going:
            return news, go_on
        chosen = [
            self._chosen(position, index, going, new, old)
            for position, (new, old) in enumerate(zip(news, states, strict=True))
        ]
        return chosen, go_on

    def _chosen(self, position: int, index: int, going: str, new: str, old: str) -> str:
        if new == old:
            return old
        one = self.form.carried[position]
        elem_type = elem_type_of(self.site.body_type_of("body", one.body_input))
        name = self.author.names.fresh(f"{one.body_output}/it{index}/kept")
        return spelling.select(self.author, going, new, old, elem_type, [name])
