"""Writes iterations of a loop into the branches of an If."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from onnx import GraphProto, TypeProto

from passes.author import Author
from passes.purposes import HANDLE_NO_TRIPS
from passes.rules.branch_graph import branch_graph, branching
from passes.rules.branch_types import rows_type, state_type
from passes.rules.unrolling import Unrolling


@dataclass(frozen=True)
class Given:
    """What a loop, or a part of it, gives: states, and rows by collected output."""

    states: list[str]
    rows: list[str]


Write = Callable[[Author], Given]


class EitherWay(Unrolling):
    """Writes iterations that may not take place."""

    def _either(
        self, author: Author, condition: str, then: Write, other: Write, name: str
    ) -> Given:
        """Either of two ways to give states and rows."""
        types = [state_type(self.site, one) for one in self.form.carried]
        types += [rows_type(self.site, self.form, one) for one in self.form.collected]
        graphs = []
        for label, write in ((name, then), (f"not_{name}", other)):
            with author.serving(HANDLE_NO_TRIPS) if write is other else nullcontext():
                inner = author.inside(f"{author.prefix}/{label}")
            outside, self.value_info = self.value_info, []
            annotated, self.annotations = self.annotations, []
            given = write(inner)
            graphs.append(self._branch(inner, label, [*given.states, *given.rows], types))
            self.value_info, self.annotations = outside, annotated
        names = [self.author.fresh(f"{one.body_output}/{name}") for one in self.form.carried]
        rows = [self.author.fresh(f"{one.body_output}/{name}") for one in self.form.collected]
        yes, no = graphs
        with author.serving(HANDLE_NO_TRIPS):
            author.adopt([branching(condition, [*names, *rows], yes, no, name)])
        return Given(names, rows)

    def _branch(
        self, inner: Author, label: str, given: Sequence[str], types: Sequence[TypeProto | None]
    ) -> GraphProto:
        return branch_graph(
            inner,
            label,
            given,
            types,
            outer=self._known,
            type_of=self._type_of,
            value_info=self.value_info,
            annotations=self.annotations,
            doubts=self.doubts,
        )
