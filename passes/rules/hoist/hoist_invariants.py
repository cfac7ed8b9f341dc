"""The rule `hoist-invariants`: loop-invariant work is done once."""

from __future__ import annotations

from dataclasses import dataclass, replace

from passes.analysis.bodies.context import context_of
from passes.analysis.bodies.nested_graphs import NestedGraph, typed
from passes.analysis.trip_count.trip_count import TripCount
from passes.bodies.carried_values import Captured, captured_state
from passes.ir.operators import CONTROL_FLOW, op_of
from passes.loops.form import LoopForm
from passes.rule import Edit, NothingToDo, Refused, Site, nodes_of, register
from passes.rules.hoist.common_work import hoist_common_work
from passes.rules.hoist.hoist_choice import Choice
from passes.rules.hoist.hoist_constants import complete
from passes.rules.hoist.hoist_guard import Exposed, StandIns, write_guard
from passes.rules.hoist.hoisting import HoistedNames, Hoisting
from passes.rules.hoist.invariants import Invariants
from passes.writing.author import Author


@register("hoist-invariants", considers=nodes_of(*CONTROL_FLOW), optional=True)
def hoist_invariants(site: Site) -> Edit:
    """Compute values that are the same in every iteration once, before the loop.

    Before:

        y = Scan <num_scan_inputs = 1, body = step (float[H] h, float[H] x_t) => (float[H] t) {
            w = MatMul (a, b)
            p = MatMul (h, w)
            t = Add (p, x_t)
        }> (h0, x)

    After:

        w = MatMul (a, b)
        y = Scan <num_scan_inputs = 1, body = step (float[H] h, float[H] x_t) => (float[H] t) {
            p = MatMul (h, w)
            t = Add (p, x_t)
        }> (h0, x)

    Work is invariant if it depends on no carried or scanned value, condition or iteration number,
    and draws no random numbers; nodes with bodies move whole. Nested loops are handled one after
    the other, innermost first. A carried value that the body returns unchanged is read
    from outside. What may fail moves as it is only where an iteration is proven to run; else it
    moves into an If on the trip count and the initial condition, whose other branch returns zeros
    that nothing reads. They have the same shape where the shape of a collected output depends on
    it, and before opset 11, where an If has one shape. Shapes that may not fit count as a possible
    failure; symbolic dims prove nothing. `--assume non-empty` assumes scanned inputs that are not
    empty, `--assume valid-inputs` that sizes of one symbol are equal.

    Work in the branches of an If in a loop of more than one iteration moves before the loop
    if it cannot fail: it runs once, where it ran in each iteration that took the branch. Outside
    of loops nothing leaves one branch alone, since the other path would pay for it. What both
    branches of an If compute moves before it, wherever the If is located; nodes with bodies
    stay.

    Constant, Identity, Shape and Size, and nodes whose output is much larger than their inputs
    (ConstantOfShape, Expand, EyeLike, Range, Tile), move only if they feed a node that moves.
    Values kept for the loop take at most `max_bytes` (256 MiB; unknown dims count as 1): the
    largest stay.

    Refuses:
    - `random`: invariant work draws random numbers
    - `unknown-operator`: an operator that reads only invariants is unknown
    - `may-fail`: invariant work may fail where the original does not run it
    - `unknown-type`: a value has no known tensor type or shape, so nothing can replace it
    - `strings`: a Loop that collects strings keeps them, for onnxruntime empties outer ones
    - `over-budget`: the values would take more bytes than are allowed
    """
    if op_of(site.node) == "If":
        return hoist_common_work(site)
    state = captured_state(site)
    form = LoopForm.from_node(state.node, site.opset)
    count = TripCount(site, LoopForm.from_node(site.node, site.opset))
    if count.never_runs:
        raise NothingToDo
    captured = [carried.initial for carried in state.captured]
    level = NestedGraph.of(site, form.body, "body", state.origin, captured)
    found = Invariants.of(level, form, count)
    most = max(0, site.options.max_bytes)
    stand_ins = StandIns(level, form, found.candidates)
    choice = Choice(found.candidates, found.outside, most, stand_ins.is_known)
    if not choice.moving and not state.captured:
        raise _refusal(site, found, choice) or NothingToDo
    return _Writing(site, state, count, choice, level, stand_ins).edit()


@dataclass(frozen=True)
class _Writing:
    site: Site
    state: Captured
    count: TripCount
    choice: Choice
    level: NestedGraph
    stand_ins: StandIns

    def edit(self) -> Edit:
        """Return the moved nodes, the loop without them, and Identities for outputs that it no
        longer carries."""
        site, choice = self.site, self.choice
        names = HoistedNames(site, self.state.node)
        moving = {number: choice.candidates[number] for number in choice.chosen}
        for number, candidate in moving.items():
            names.give(number, candidate, choice.read_outside(number))
        exposed = [
            Exposed(names.inside[number, name], outside, known, self.stand_ins.sizes(number, name))
            for (number, name), outside in names.outside.items()
            if moving[number].guarded and (known := moving[number].level.type_of(name))
        ]
        if moving:
            self._declare_collected()
        hoisting = Hoisting(site, moving, names)
        hoisting.run(self.level)
        author = Author.at(site)
        author.adopt(hoisting.plain.nodes, hoisting.initializers)
        value_info = hoisting.plain.value_info
        if hoisting.guarded.nodes:
            value_info += write_guard(author, self.count, hoisting.guarded, exposed)
        author.adopt([self.state.node, *self.state.finals])
        return replace(
            author.edit(self._note(len(hoisting.plain.nodes), len(hoisting.guarded.nodes))),
            value_info=tuple(value_info) if typed(site) else (),
            context=context_of(site) if self.count.rests_on_proof else (),
            annotations=tuple(hoisting.plain.annotations),
        )

    def _declare_collected(self) -> None:
        """Declare the types of what is collected, which inference may no longer find."""
        form = self.stand_ins.form
        collected = {output.body_output for output in form.collected}
        for value in self.level.graph.output:
            if value.name in collected:
                complete(value, self.level.type_of(value.name))

    def _note(self, plain: int, guarded: int) -> str:
        parts = []
        if plain + guarded:
            count = plain + guarded
            parts.append(f"{count} node{'s' * (count != 1)} moved")
        if guarded:
            parts.append(f"{guarded} in an If on the trip count")
        if count := len(self.state.captured):
            parts.append(f"{count} carried value{'s' * (count != 1)} captured")
        if count := len(self.choice.kept):
            parts.append(f"{count} kept back ({', '.join(sorted({*self.choice.kept.values()}))})")
        return ", ".join(parts)


_SENTENCES = {
    "over-budget": "the outputs of {0} would take more than max_bytes",
    "unknown-type": "an output of {0} has no known tensor type or shape: nothing can replace it",
    "may-fail": "{0} may fail where the original does not run it",
    "strings": "{0} computes strings, and the Loop collects some: onnxruntime would empty them",
    "random": "{0} draws random numbers",
    "unknown-operator": "nothing is known about the operator or function {0}",
}


def _refusal(site: Site, found: Invariants, choice: Choice) -> Refused | None:
    """The first reason why nothing moves, in the order of what can be done about it.

    None where every node that is worth moving depends on something that varies.
    """
    kept = [
        (code, node)
        for number, code in choice.kept.items()
        if (node := found.candidates[number].node) is not None
    ]
    kept += [(obstacle.code, obstacle.node) for obstacle in found.obstacles]
    for code, sentence in _SENTENCES.items():
        nodes = [node for why, node in kept if why == code]
        if nodes:
            outputs = [name for node in nodes for name in node.output if name]
            return site.refused(code, sentence.format(op_of(nodes[0])), *outputs)
    return None
