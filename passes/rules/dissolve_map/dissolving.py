"""Writes all iterations of a Scan at once, computing its carried values without the loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from passes.analysis.safety.randomness import first_random
from passes.bodies.dropping import random_node
from passes.bodies.moving import Outside, cleaned
from passes.bodies.recurrences import FINAL_ONLY, Recurrence, Update, check
from passes.bodies.time_body import TimeBody
from passes.bodies.time_cost import fits, too_large
from passes.bodies.time_length import length_of
from passes.bodies.without_iterations import may_move, may_run_at_once, may_run_once
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.loops.form import Carried
from passes.rule import Edit, Refused
from passes.rules.dissolve_map.dissolving_plan import DissolvingPlan
from passes.rules.dissolve_map.prefix_values import PrefixValues
from passes.types.value_types import FLOATS
from passes.writing import guards
from passes.writing.author import Author


class Dissolving:
    """Writes the nodes that replace a Scan."""

    def __init__(self, body: TimeBody) -> None:
        self.body = body
        self.form = body.form
        self.author = Author.at(body.site, "scan")
        self.plan = DissolvingPlan(body)
        self.prefix_values: dict[str, PrefixValues] = {}

    def edit(self) -> Edit:
        """Write it.

        Raises:
            Refused: see the rule.
        """
        self.plan.check()
        outside = self._outside()
        plan = self.plan
        for step in plan.order:
            if isinstance(step, str):
                self._write_state(outside, plan.states[step])
            elif step in plan.steps:
                node = self.body.nodes[step]
                self.prefix_values[plan.steps[step].carried.body_input].after(node.output[0])
            else:
                self._write_node(outside, step)
        self._write_outputs(outside)
        edit = cleaned(self.body, self.author, outside, plan.written, self._note())
        regroups = bool(self._reassociated())
        return replace(edit, exact=edit.exact and not regroups, regroups=regroups)

    def _outside(self) -> Outside:
        """The place to write to, with the inputs of the Scan in the order of its iterations."""
        author = self.author
        outside = Outside(self.body, author, length_of(self.body.site, author, self.form.scanned))
        needed = [self.body.nodes[position] for position in self.plan.needed]
        read = {name for node in needed for name in scoping.free_names(node)}
        read.update(name for recurrence in self.plan.states.values() for name in recurrence.needs)
        for scanned in self.form.scanned:
            if scanned.body_input in read:
                outside.read(scanned, turned=scanned.reversed)
        outside.take_constants(read)
        return outside

    def _write_state(self, outside: Outside, recurrence: Recurrence) -> None:
        check(self.body, recurrence, self.plan.users(recurrence))
        prefix = PrefixValues(outside, recurrence, self.plan.uses(recurrence))
        self.prefix_values[recurrence.carried.body_input] = prefix
        prefix.before()

    def _write_node(self, outside: Outside, position: int) -> None:
        body, node = self.body, self.body.nodes[position]
        if first_random(body.site.model, [node]) is not None:
            raise random_node(body.site, node)
        if not may_move(body, node):
            what = f"{op_of(node)} {list(node.output)} is no operator that a rule could know"
            raise body.site.refused("no-rule", what, *node.output)
        sees = [name for name in scoping.free_names(node) if outside.vectorizer.carries(name)]
        try:
            outside.vectorizer.nodes([node])
        except Refused as reason:
            code = "random" if reason.code == "random" else "no-rule"
            raise Refused(code, reason.sentence, reason.culprits) from None
        runs = may_run_at_once(body, node, sees) if sees else may_run_once(body, node)
        if not runs:
            what = f"{op_of(node)} {list(node.output)} may fail where the loop runs no iteration"
            raise body.site.refused("may-be-empty", what, *node.output)
        if sees and not fits(body, node):
            raise too_large(body, [position])

    def _write_outputs(self, outside: Outside) -> None:
        names = outside.place(self.form.collected)
        for carried in self.form.carried:
            if carried.final:
                self._write_final(outside, names, carried)

    def _write_final(self, outside: Outside, names: Mapping[str, str], carried: Carried) -> None:
        """Write the last value; where lengths must agree, guard one that depends on none of
        them."""
        prefix = self.prefix_values[carried.body_input]
        value = names.get(prefix.final, prefix.final)
        agree = outside.length.agree
        if prefix.recurrence.kind is Update.UNCHANGED and agree:
            elem_type = prefix.recurrence.elem_type
            guards.guarded(self.author, value, agree, elem_type, [carried.final])
        else:
            self.author.op("Identity", value, outputs=[carried.final])

    def _reassociated(self) -> list[Recurrence]:
        return [
            self.plan.states[name]
            for name in self.prefix_values
            if self.plan.states[name].elem_type in FLOATS
            and self.plan.states[name].kind in FINAL_ONLY
        ]

    def _note(self) -> str:
        states = [state for name, state in self.plan.states.items() if name in self.prefix_values]
        parts = [f"{state.carried.body_input} {_DESCRIPTIONS[state.kind]}" for state in states]
        rounding = [recurrence.carried.body_input for recurrence in self._reassociated()]
        if rounding:
            parts.append(f"floats are reassociated in {', '.join(rounding)}")
        return "; ".join(["all iterations at once", *parts])


_DESCRIPTIONS = {
    Update.UNCHANGED: "stays as it is",
    Update.COUNTER: "counts",
    Update.SUM: "is a running sum",
    Update.MAXIMUM: "is a running maximum",
    Update.MINIMUM: "is a running minimum",
    Update.LAST: "is computed again in each iteration",
}
