"""Writes out the iterations of a loop that may end before its bound, each in an If."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, TypeProto

from passes.analysis.trip_count.trip_count import TripCount
from passes.loops.form import LoopForm
from passes.rule import Site
from passes.rules.unroll.bounded import Bounded
from passes.rules.unroll.branch_types import (
    refuse_changing_states,
    refuse_two_shapes,
    refuse_uncopied,
    rows_type,
    state_type,
)
from passes.rules.unroll.trip_bounds import Bound
from passes.types.value_types import tensor_type
from passes.writing import spelling
from passes.writing.author import Author
from passes.writing.branches import Branch, Results, either


class Branched(Bounded):
    """Puts each iteration into an If, whose other branch returns the values before it.

    The Ifs follow one another: thirty nested ones would make a file that protobuf cannot
    read.
    """

    def _step(self, index: int, going: str, states: list[str]) -> tuple[list[str], str]:
        """Write an iteration as the branch of an If."""
        if not going:
            news, rows, go_on = self._flat(index, states)
            self._keep(rows)
            return news, go_on
        names = [carried.body_output for carried in self.form.carried]
        names += [collected.body_output for collected in self.form.collected]
        fresh = self.author.names.fresh
        outputs = [fresh(f"{name}/it{index}/kept") for name in names]
        outputs += [self.author.fresh("going")] if self.ends else []
        branches = {
            "then_branch": self._running(index, states),
            "else_branch": self._passing(index, states),
        }
        either(
            self.author,
            going,
            branches,
            outputs,
            self._types_given(),
            cleaning=self._cleaning,
            iteration=f"it{index}",
        )
        count = len(states)
        self._keep(outputs[count : len(names)])
        return outputs[:count], outputs[-1] if self.ends else ""

    def _still(self, going: str, go_on: str) -> list[str]:
        return [go_on or going]  # where the iteration did not run, its condition is false

    def _running(self, index: int, states: list[str]) -> Branch:
        def write(inner: Author) -> Results:
            written = self._written(inner, f"it{index}", self._number(index), states)
            count = 1 + len(states)
            outputs = list(written.outputs[1:count])
            outputs += [spelling.unsqueeze(inner, output, 0) for output in written.outputs[count:]]
            if self.ends:
                outputs.append(self._condition(inner, written.outputs[0]))
            return Results(outputs, written.value_info, written.annotations)

        return Branch(f"it{index}", write, name=f"it{index}")

    def _passing(self, index: int, states: list[str]) -> Branch:
        """The branch for when the loop has ended: rows that are ignored, of the right shape."""

        def write(inner: Author) -> Results:
            outputs = list(states)
            for collected, rows in zip(self.form.collected, self.collected, strict=True):
                outputs.append(rows[-1] if rows else self._nothing(inner, collected))
            if self.ends:
                outputs.append(self.author.value(np.array(False), "false"))
            return Results(outputs)

        return Branch(f"skip{index}", write, name=f"skip{index}")

    def _types_given(self) -> list[TypeProto | None]:
        """The types of a branch's outputs: states, rows and whether the loop continues."""
        types = [state_type(self.site, carried) for carried in self.form.carried]
        types += [rows_type(self.site, self.form, collected) for collected in self.form.collected]
        return [*types, *([tensor_type(TensorProto.BOOL, ())] if self.ends else [])]


def refuse_what_no_branch_returns(site: Site, form: LoopForm, bound: Bound) -> None:
    """Refuse sequences and optionals that this opset cannot copy, or that need a guard, and
    collected outputs of two shapes.

    Raises:
        Refused: `not-a-tensor`, `old-if`.
    """
    assumed = site.assumes("valid-inputs")
    guards = bound.promised and not site.options.check_output and not assumed
    if not TripCount(site, form).evidently_runs:
        refuse_two_shapes(site, form)
    refuse_changing_states(site, form)
    for carried in form.carried:
        refuse_uncopied(site, carried)
        known = site.body_type_of("body", carried.body_input)
        if guards and carried.final and known is not None and not known.HasField("tensor_type"):
            raise site.refused(
                "not-a-tensor",
                f"{carried.body_input!r} is not a tensor, so it cannot be guarded; --check-output "
                "needs no guard",
                carried.body_input,
            )
