"""The rule `dissolve-map`: a loop that carries nothing it needs is replaced by operators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from passes.analysis.safety.randomness import first_random
from passes.bodies.may_leave import may_move, may_run_at_once, may_run_once, random_node
from passes.bodies.moving import Outside, cleaned
from passes.bodies.recurrences import FINAL_ONLY, Recurrence, Update, check
from passes.bodies.time_body import TimeBody
from passes.bodies.time_cost import fits, too_large
from passes.bodies.time_length import length_of
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.loops.form import Carried
from passes.rule import SCANS, Edit, Refused, Site, register
from passes.rules.dissolve_map.dispatch_on_size import dispatch_on_size
from passes.rules.dissolve_map.dissolving_plan import DissolvingPlan
from passes.rules.dissolve_map.prefix_values import PrefixValues
from passes.rules.dissolve_map.strip_mine import strip_mine
from passes.types.value_types import FLOATS
from passes.writing import guards
from passes.writing.author import Author


@register("dissolve-map", considers=SCANS, optional=True)
def dissolve_map(site: Site) -> Edit:
    """Replace a Scan by operators over all iterations at once if none needs the previous one.

    Before:

        n, ys = Scan <num_scan_inputs = 1, body = step (int64 n_in, float[I] x_t) => (...) {
            n_out = Add (n_in, one)
            p = MatMul (x_t, W)
            y = Tanh (p)
        }> (n0, x)

    After:

        n = ...
        p = MatMul (x, W)
        ys = Tanh (p)

    What the Scan carries must be something that operators can compute: a value that never changes;
    an integer that grows by a constant step; a value computed without the previous one, of which
    the last is the result; a running sum (CumSum), or a maximum or minimum of which only the last
    value is read (ReduceMax, ReduceMin). Integers wrap around as in the loop, and floats are added
    up in its order. Maxima and minima of floats may differ in the sign of a zero: that needs
    `--allow-reassociation`, which the report mentions. If the Scan may run no iteration,
    the result is the initial value, and an op that could fail then is refused.

    `optimize` for onnxruntime also keeps the Scan, in an If, where that is faster with many rows,
    and their number is known only at run time. A Scan that is kept for that reason, and whose
    length is known, then runs over blocks of several elements, as many as stay in the cache
    and divide the length, if it carries nothing and multiplies no matrices; with still more rows
    it stays as it is.

    Scanned lengths that are not provably equal get a guard; `--assume valid-inputs` leaves it
    out. A Loop is raised to a Scan first.

    Refuses:
    - `opset-too-old`: the opset is below 13, which the vectorization rules do not support
    - `carries`: a carried value is computed from its previous value in another way
    - `reassociation`: a maximum or minimum is of floats
    - `no-kernel`: onnxruntime has no exact operator for such a sequence of this type
    - `running`: every value of a running maximum or minimum is read
    - `shape-unknown`: it is not proven that a carried value keeps its shape
    - `no-rule`: an op of the body has no vectorization rule, or needs one shape for all rows
    - `random`: an op of the body draws random numbers in every iteration
    - `may-be-empty`: the loop may run no iteration, and an op of the body could fail then
    - `may-fail`: an op of the body whose result is unused could fail
    - `not-worth-it`: the values of all iterations do not stay in the cache, which costs more
    - `over-budget`: a value takes more than `--max-bytes` for all iterations
    """
    try:
        body = TimeBody.of(site)
        return _quickest(body) if site.options.dispatch_on_size else Dissolving(body).edit()
    except Refused as reason:
        if reason.code not in _FROM_RULES_OF_OPS:
            raise
        raise Refused("no-rule", reason.sentence, reason.culprits) from None


def _quickest(body: TimeBody) -> Edit:
    """All iterations at once where that is faster, else as many as stay in the cache."""
    try:
        return dispatch_on_size(body, Dissolving(body).edit())
    except Refused as reason:
        blocks = strip_mine(body) if reason.code in ("not-worth-it", "over-budget") else None
        if blocks is None:
            raise
        return blocks


_FROM_RULES_OF_OPS = ("unknown-rank", "unknown-type", "no-batching-rule")


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
