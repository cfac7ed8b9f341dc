"""Writes out the iterations of a loop that may end before its bound, each in an If."""

from __future__ import annotations

import numpy as np
from onnx import GraphProto, TensorProto, TypeProto

from passes.analysis.safety.selectable import starts_always
from passes.loops.form import LoopForm
from passes.rule import Refused, Site
from passes.rules.unroll.bounded import Bounded
from passes.rules.unroll.trip_bounds import Bound
from passes.types.value_types import tensor_type
from passes.writing import spelling
from passes.writing.branch_graph import branch_graph, branching
from passes.writing.branch_types import (
    refuse_changing_states,
    refuse_two_shapes,
    refuse_uncopied,
    rows_type,
    state_type,
)


class Branched(Bounded):
    """An iteration stands in an If, whose other branch hands on what was there before.

    The Ifs stand one behind the other: nested, thirty of them would be a file that protobuf does
    not read.
    """

    def _step(self, index: int, going: str, states: list[str]) -> tuple[list[str], str]:
        """Write an iteration as the branch of an If."""
        if not going:
            news, rows, go_on = self._flat(index, states)
            self._keep(rows)
            return news, go_on
        names = [one.body_output for one in self.form.carried]
        names += [one.body_output for one in self.form.collected]
        fresh = self.author.names.fresh
        outputs = [fresh(f"{name}/it{index}/kept") for name in names]
        outputs += [self.author.fresh("going")] if self.ends else []
        then, other = self._iteration_graph(index, states), self._passing_graph(index, states)
        self.author.adopt([branching(going, outputs, then, other, f"it{index}")])
        count = len(states)
        self._keep(outputs[count : len(names)])
        return outputs[:count], outputs[-1] if self.ends else ""

    def _still(self, going: str, go_on: str) -> list[str]:
        return [go_on or going]  # where the iteration did not take place, its condition is false

    def _iteration_graph(self, index: int, states: list[str]) -> GraphProto:
        inner = self.author.inside(f"{self.author.prefix}/it{index}")
        written = self._written(inner, f"it{index}", self._number(index), states)
        count = 1 + len(states)
        given = list(written.outputs[1:count])
        given += [spelling.unsqueeze(inner, one, 0) for one in written.outputs[count:]]
        if self.ends:
            given.append(self._condition(inner, written.outputs[0]))
        return branch_graph(
            inner,
            f"it{index}",
            given,
            self._types_given(),
            outer=self._known,
            type_of=self._type_of,
            value_info=written.value_info,
            annotations=written.annotations,
            doubts=self.doubts,
        )

    def _passing_graph(self, index: int, states: list[str]) -> GraphProto:
        """The branch for where the loop has ended: rows that nobody counts, of the right shape."""
        inner = self.author.inside(f"{self.author.prefix}/skip{index}")
        given = list(states)
        for one, rows in zip(self.form.collected, self.collected, strict=True):
            given.append(rows[-1] if rows else self._nothing(inner, one))
        if self.ends:
            given.append(self.author.constant(np.array(False), "false"))
        types = self._types_given()
        return branch_graph(
            inner, f"skip{index}", given, types, outer=self._known, type_of=self._type_of
        )

    def _types_given(self) -> list[TypeProto | None]:
        """The types of what a branch gives: states, rows and whether the loop goes on."""
        types = [state_type(self.site, one) for one in self.form.carried]
        types += [rows_type(self.site, self.form, one) for one in self.form.collected]
        return [*types, *([tensor_type(TensorProto.BOOL, ())] if self.ends else [])]


def refuse_what_no_branch_returns(site: Site, form: LoopForm, bound: Bound) -> None:
    """Refuse sequences and optionals that this opset cannot copy, or that need a guard, and what
    is collected in two shapes.

    Raises:
        Refused: `not-a-tensor`, `old-if`.
    """
    assumed = site.assumes("valid-inputs")
    guards = bound.promised and not site.options.check_output and not assumed
    if not starts_always(site, form):
        refuse_two_shapes(site, form)
    refuse_changing_states(site, form)
    for one in form.carried:
        refuse_uncopied(site, one)
        known = site.body_type_of("body", one.body_input)
        if guards and one.final and known is not None and not known.HasField("tensor_type"):
            raise Refused(
                "not-a-tensor",
                f"{one.body_input!r} is no tensor and takes no guard; --check-output needs none",
                [site.path, one.body_input],
            )
