"""Writes out the iterations of a loop that may end before its bound, each in an If."""

from __future__ import annotations

import numpy as np

from passes.analysis.trip_count.trip_count import TripCount
from passes.loops.form import LoopForm
from passes.rule import Site
from passes.rules.unroll.bounded import Bounded
from passes.rules.unroll.branch_types import refuse_states, refuse_two_shapes
from passes.rules.unroll.either_way import either_way, skipped
from passes.rules.unroll.trip_bounds import Bound
from passes.rules.unroll.unrolling import Outputs
from passes.writing.author import Author


class Branched(Bounded):
    """Puts each iteration into an If, whose other branch returns the values before it.

    The Ifs follow one another: thirty nested ones would make a file that protobuf cannot
    read.
    """

    def _step(self, index: int, going: str, states: list[str]) -> Outputs:
        """Write an iteration as the branch of an If."""
        author, tag = self.author, f"it{index}"
        go_on = author.fresh("going") if self.ends else ""
        fresh = author.names.fresh
        outputs = Outputs.of(self.form, lambda name: fresh(f"{name}/{tag}/kept"), go_on)

        def skip(inner: Author) -> Outputs:
            ended = author.value(np.array(False), "false") if self.ends else ""
            return skipped(self, inner, states, ended)

        ways = {tag: lambda inner: self._run(inner, index, states), f"skip{index}": skip}
        return either_way(self, author, going, ways, outputs)

    def _still(self, going: str, go_on: str) -> list[str]:
        return [go_on or going]  # where the iteration did not run, its condition is false


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
    refuse_states(site, form)
    for carried in form.carried:
        known = site.body_type_of("body", carried.body_input)
        if guards and carried.final and known is not None and not known.HasField("tensor_type"):
            raise site.refused(
                "not-a-tensor",
                f"{carried.body_input!r} is not a tensor, so it cannot be guarded; --check-output "
                "needs no guard",
                carried.body_input,
            )
