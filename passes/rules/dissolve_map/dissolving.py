"""Writes all iterations of a Scan at once, where what it carries can be computed without it."""

from __future__ import annotations

from collections.abc import Mapping

from passes.analysis.safety.randomness import first_random
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.loops.form import Carried
from passes.rule import Edit, Refused
from passes.rules.dissolve_map.dissolving_plan import Plan
from passes.rules.dissolve_map.prefix_values import PrefixValues
from passes.rules.dissolve_map.recurrences import FLOATS, Kind, Recurrence, check
from passes.rules.time_axis.connected_compute import too_large
from passes.rules.time_axis.dropping import random_node
from passes.rules.time_axis.moving import Outside, cleaned, place_rows
from passes.rules.time_axis.time_body import TimeBody
from passes.rules.time_axis.time_cost import fits, same_bits
from passes.rules.time_axis.time_length import length_of
from passes.rules.time_axis.without_iterations import may_move, may_run_on_nothing, may_run_once
from passes.writing import spelling
from passes.writing.author import Author


class Dissolving:
    """Writes what takes the place of a Scan."""

    def __init__(self, body: TimeBody) -> None:
        self.body = body
        self.form = body.form
        site = body.site
        self.author = Author(site.target, site.names, site.node.name or "scan")
        self.plan = Plan(body)
        self.histories: dict[str, PrefixValues] = {}

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
                self.histories[plan.steps[step].carried.body_input].after(node.output[0])
            else:
                self._write_node(outside, step)
        self._write_outputs(outside)
        return cleaned(
            self.body,
            self.author,
            outside,
            note=self._note(),
            exact=not self._reassociated() and all(map(same_bits, plan.written)),
        )

    def _outside(self) -> Outside:
        """Where to write, with what the Scan reads, in the order of its iterations."""
        author = self.author
        outside = Outside(self.body, author, length_of(self.body, author, self.form.scanned))
        needed = [self.body.nodes[at] for at in self.plan.needed]
        read = {name for node in needed for name in scoping.free_names(node)}
        read.update(name for one in self.plan.states.values() for name in one.needs)
        for one in self.form.scanned:
            if one.body_input in read:
                outside.read(one, turned=one.reversed)
        outside.take_constants(read)
        return outside

    def _write_state(self, outside: Outside, one: Recurrence) -> None:
        check(self.body, one, self.plan.users(one))
        history = PrefixValues(outside, one, self.plan.uses(one))
        self.histories[one.carried.body_input] = history
        history.before()

    def _write_node(self, outside: Outside, position: int) -> None:
        body, node = self.body, self.body.nodes[position]
        path = body.site.path
        if first_random(body.site.model, [node]) is not None:
            raise random_node(node, path)
        if not may_move(body, node):
            raise Refused(
                "no-rule",
                f"{op_of(node)} {list(node.output)} is no operator that a rule could know",
                [path, *node.output],
            )
        sees = [name for name in scoping.free_names(node) if outside.at.carries(name)]
        try:
            outside.at.nodes([node])
        except Refused as reason:
            code = "random" if reason.code == "random" else "no-rule"
            raise Refused(code, reason.sentence, reason.culprits) from None
        runs = may_run_on_nothing(body, node, sees) if sees else may_run_once(body, node)
        if not runs:
            raise Refused(
                "may-be-empty",
                f"{op_of(node)} {list(node.output)} may fail where the loop runs no iteration",
                [path, *node.output],
            )
        if sees and not fits(body, node):
            raise too_large(body, [position])

    def _write_outputs(self, outside: Outside) -> None:
        asked = [one for one in self.form.collected if one.tensor]
        rows = [outside.at.spread(one.body_output) for one in asked]
        ranks = [outside.at.rank(one.body_output) + 1 if one.axis else 1 for one in asked]
        names = outside.publish()
        for one, value, rank in zip(asked, rows, ranks, strict=True):
            value = names.get(value, value)
            place_rows(self.author, value, one.axis, rank, turned=one.reversed, output=one.tensor)
        for carried in self.form.carried:
            if carried.final:
                self._write_final(outside, names, carried)

    def _write_final(self, outside: Outside, names: Mapping[str, str], carried: Carried) -> None:
        """The last value; where lengths must agree, one that needs none of them is guarded."""
        history = self.histories[carried.body_input]
        value = names.get(history.final, history.final)
        agree = outside.length.agree
        if history.one.kind is Kind.UNCHANGED and agree:
            elem_type = history.one.elem_type
            spelling.guarded(self.author, value, agree, elem_type, [carried.final])
        else:
            self.author.op("Identity", value, outputs=[carried.final])

    def _reassociated(self) -> list[Recurrence]:
        kinds = (Kind.UNCHANGED, Kind.LAST)
        return [
            self.plan.states[name]
            for name in self.histories
            if self.plan.states[name].elem_type in FLOATS
            and self.plan.states[name].kind not in kinds
        ]

    def _note(self) -> str:
        states = [one for name, one in self.plan.states.items() if name in self.histories]
        told = [f"{one.carried.body_input} {_TOLD[one.kind]}" for one in states]
        rounding = [one.carried.body_input for one in self._reassociated()]
        if rounding:
            told.append(f"floats are reassociated in {', '.join(rounding)}")
        return "; ".join(["all iterations at once", *told])


_TOLD = {
    Kind.UNCHANGED: "stays as it is",
    Kind.COUNTER: "counts",
    Kind.SUM: "is a running sum",
    Kind.PRODUCT: "is a running product",
    Kind.MAXIMUM: "is a running maximum",
    Kind.MINIMUM: "is a running minimum",
    Kind.LAST: "is computed anew each time",
}
