"""The rule `unroll`: a loop of a static or bounded trip count becomes straight-line code."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

import numpy as np

from passes.analysis.bodies import body_facts
from passes.analysis.bodies.body_types import may_change
from passes.analysis.bodies.context import context_of
from passes.analysis.bodies.liveness import dead_after_rewrite
from passes.analysis.bodies.nested_graphs import NestedGraph
from passes.analysis.integers.integers import Integers
from passes.analysis.safety.may_fail import failing_on_other_values
from passes.analysis.safety.shapes_fit import fits
from passes.analysis.trip_count.trip_count import TripCount
from passes.bodies.copy_budget import allow, refuse_random
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.ir.versions import HAS_CONSTANT_OF_SHAPE
from passes.loops.form import LoopForm
from passes.rule import LOOPS, Edit, Refused, Site, register
from passes.rules.unroll.bounded import Bound, Bounded, Masked, bound_of
from passes.rules.unroll.either_way import either_way, refuse_states, refuse_two_shapes, skipped
from passes.rules.unroll.known_failure import refuse_known_failure
from passes.rules.unroll.unrolling import Outputs, Unrolling
from passes.types.value_types import elem_type_of
from passes.writing.author import Author


@register("unroll", considers=LOOPS, optional=True)
def unroll(site: Site) -> Edit:
    """Write out every iteration of a loop whose trip count is static, or bounded.

    Before:

        y, z = Scan <num_scan_inputs = 1, body = step (...) { t = Add (s, x_t) }> (h, x)

    After (a length of 2):

        part0, part1 = Split <axis = 0, num_outputs = 2> (x)
        "x_t/it0" = Squeeze (part0, axes)
        "t/it0" = Add (h, "x_t/it0")
        "x_t/it1" = Squeeze (part1, axes)
        y = Add ("t/it0", "x_t/it1")
        z = Concat (...)

    All iterations share the weights of the body; the metadata of nodes names the iteration they
    were written for. Innermost loops are unrolled first. What follows from the iteration number,
    known shapes and known conditions is folded, in these nodes only. Scanned lengths and state
    shapes that may differ where a Scan would fail get a guard; `--assume valid-inputs` leaves it
    out.

    A Loop that may end before its trip count M, or before the `--max-trips N` that a user promises,
    is written out that often. Where its body may run on (`--bounded select`), each state is
    selected from before and after the iteration; else (`--bounded if`) each iteration is put into
    an If. Collected outputs are cut to the iterations that took place. If the loop would run more
    than N times, the new model fails as a whole, or, with `--check-output NAME`, reports it in one
    more output, a bool; `--assume valid-inputs` leaves the guard out. A while loop that counts from
    one constant to another has a trip count, and so has a loop whose M follows from known sizes;
    where data may end such a while loop before, it is written out as one that has that M.

    Refuses:
    - `trip-count-not-static`: the trip count is known only at run time
    - `too-many-nodes`: the iterations would take more nodes or bytes than are allowed
    - `random`: the body draws random numbers, and every copy would draw the same ones
    - `unknown-shape`: possibly no iteration runs, and the rank of a collected element is unknown
    - `not-speculatable`: `--bounded select`: the body may fail where the loop has ended
    - `not-a-tensor`: a sequence or optional is carried, for which there is no If or no guard
    - `old-if`: what is collected may be empty, or a state may change its shape, and before opset
      11 an If has one shape
    - `iteration-fails`: an iteration cannot run with the sizes and constants known there
    - `inner-check`: `--check-output`: the loop is in a body, whose values cannot be outputs
    - `opset-too-old`: the opset is below 9, and the loop may end before its bound, or never runs
      and would collect elements of a size that is known only at run time
    """
    form = LoopForm.from_node(site.node, site.opset)
    bound = bound_of(site, form)
    refuse_random(site, form.body.node if bound.size > 1 else ())
    allow(site, form, bound.size)
    note = "1 iteration" if bound.size == 1 else f"{bound.size} iterations"
    if bound.exact:
        edit = Unrolling(site, form, bound.size).edit(note)
    else:
        edit = _bounded(site, form, bound, f"at most {note}")
    edit = refuse_known_failure(site, edit)
    covered = edit.covered
    if bound.exact:
        covered = dead_after_rewrite(site, Integers(site), covered, edit.nodes)
    # the trip count may follow from the context
    return replace(edit, covered=covered, context=context_of(site))


def _bounded(site: Site, form: LoopForm, bound: Bound, note: str) -> Edit:
    """Write out a loop that may end earlier."""
    lacks = "has no Where and no ConstantOfShape for a loop that may end before its bound"
    site.need_opset(HAS_CONSTANT_OF_SHAPE, lacks)
    inner = site.scope.outer is not None or site.in_function
    if bound.promised and inner and site.options.check_output:
        raise site.refused("inner-check", "the loop is in a body or function")
    mode = site.options.bounded
    reason = _objection(site, form)
    if mode == "select" and reason is not None:
        raise reason
    if mode == "select" or (mode == "auto" and reason is None):
        return Masked(site, form, bound).edit(f"{note}, by select")
    refuse_what_no_branch_returns(site, form, bound)
    return Branched(site, form, bound).edit(f"{note}, by If")


def _objection(site: Site, form: LoopForm) -> Refused | None:
    """Why the body of a Loop may not run where the loop has ended, None where it may."""
    changing = _changing(site, form)
    for carried in form.carried:
        known = site.body_type_of("body", carried.body_input)
        if not elem_type_of(known) or carried.body_input in changing:
            why = f"{carried.body_input!r} may change its shape"
            return site.refused("not-speculatable", why, carried.body_input)
    level = NestedGraph.of(site, form.body, "body")
    culprits = failing_on_other_values(form.body, level.known)
    if not culprits and not TripCount(site, form).evidently_runs:
        culprits = [
            node
            for node in form.body.node
            if scoping.holds_graphs(node) or not fits(node, level.known)
        ]
    if not culprits:
        return None
    ops = ", ".join(sorted({op_of(node) for node in culprits}))
    names = (name for node in culprits for name in node.output if name)
    why = f"{ops} may fail where the loop has ended"
    return site.refused("not-speculatable", why, *names)


def _changing(site: Site, form: LoopForm) -> Set[str]:
    """The carried values that may change shape: symbols are a proof only for valid inputs."""
    trusted = site.assumes("valid-inputs")
    kept = body_facts.keeps_shape(site, form)
    changing = {name for name, stays in kept.items() if not stays}
    if trusted or all(body_facts.keeps_shape(site, form, symbols=False).values()):
        return changing
    return changing | may_change(site, form)


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
