"""The rule `batch-outputs`: what feeds collected outputs alone runs once, behind the loop."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from onnx import NodeProto

from passes import scope as scoping
from passes.operators import op_of
from passes.rule import Edit, Refused, Site, register
from passes.rules.late import Late
from passes.rules.sunk import in_order, sunk
from passes.rules.time_body import TimeBody
from passes.rules.time_cost import Gains, fits, handed_bytes, is_worth_it, row_bytes
from passes.rules.time_cut import FRONT, Crossing, Part, behind
from passes.rules.work import too_large, with_sources, with_work


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Whether a node is a Loop, or a Scan of version 9 or later, with work that feeds collected
    outputs alone."""
    if op_of(node) not in ("Loop", "Scan"):
        return False
    if op_of(node) == "Scan" and opset < 9:
        return False
    return any(_feeds_collected_alone(node, body) for _, body in scoping.subgraphs(node))


def _feeds_collected_alone(node: NodeProto, body: scoping.Owner) -> bool:
    """Whether some work in the body depends on a carried value, and only outputs depend on it."""
    scanned = next((one.i for one in node.attribute if one.name == "num_scan_inputs"), 0)
    inputs, outputs = scoping.input_names(body), scoping.output_names(body)
    carried = len(node.input) - (scanned if op_of(node) == "Scan" else 1)
    varies = set(inputs[: len(node.input) - scanned])
    needed = set(outputs[:carried])
    for one in body.node:
        if not varies.isdisjoint(scoping.free_names(one)):
            varies.update(one.output)
    for one in reversed(body.node):
        if not needed.isdisjoint(one.output):
            needed.update(scoping.free_names(one))
        elif is_worth_it(one) and not varies.isdisjoint(one.output):
            return True
    return False


@register("batch-outputs", considers=considers, optional=True)
def batch_outputs(site: Site) -> Edit:
    """Run what feeds collected outputs alone behind the loop, once.

    Before:

        h, ys = Scan <num_scan_inputs = 1, body = step (float[B,H] h_in, float[B,I] x_t) => (...) {
            ...
            h_out = Tanh (s)
            y = MatMul (h_out, V)
        }> (h0, x)

    After:

        h, hs = Scan <num_scan_inputs = 1, body = step (float[B,H] h_in, float[B,I] x_t) => (...) {
            ...
            h_out = Tanh (s)
            all_h = Identity (h_out)
        }> (h0, x)
        ys = MatMul (hs, V)

    Where to cut the body is decided by what it costs: see `passes/rules/time_cost.py`. A value
    that the loop collects already is not collected twice, and a scanned tensor is read again.
    Outputs that are collected on another axis or last first are moved behind the loop. A Loop may
    end whenever it does: what moves sees the iterations that ran, and no other ones. Where no
    iteration may run, only what cannot fail then moves. `--max-bytes` bounds what a value may
    take for all iterations together.

    Refuses:
    - `opset-too-old`: the opset is below 13, which the rules for one more axis do not know
    - `nothing-to-move`: what feeds collected outputs alone has no rule for one more axis
    - `not-worth-it`: moving would cost more than it saves
    - `over-budget`: what would move takes more than `--max-bytes` for all iterations
    """
    body = TimeBody.of(site)
    choice = _Choice(body, Late.of(body), body.readers())
    return sunk(body, choice.moved(), choice.late.plain)


@dataclass(frozen=True)
class _Choice:
    """Which of the nodes that may go behind do."""

    body: TimeBody
    late: Late
    readers: dict[str, list[int]]

    def moved(self) -> list[int]:
        """The positions of the nodes that move, in order.

        Raises:
            Refused: there are none.
        """
        body, path = self.body, self.body.site.path
        worthy = {at for at in self.late.moving if is_worth_it(body.nodes[at])}
        if not worthy:
            raise Refused(
                "nothing-to-move",
                "no work that feeds collected outputs alone can run over all iterations at once",
                [path],
            )
        allowed = self._allowed()
        if worthy.isdisjoint(allowed):
            raise too_large(body, worthy)
        saving = Gains(body, self.late.carrying, self.readers)
        gains = {at: saving.of(at) + self._not_collected(at) for at in sorted(allowed)}
        together = [pair for pair in self.late.together if allowed.issuperset(pair)]
        chosen = with_work(body, behind(gains, self._crossings(allowed), together))
        if not chosen:
            raise Refused(
                "not-worth-it",
                "what the loop would collect instead costs more than the loop saves",
                [path],
            )
        return sorted(with_sources(body, chosen, self.late.plain))

    def _allowed(self) -> set[int]:
        """Those within the budget, whose readers are, too, and what they need to know."""
        within = {at for at in self.late.moving if fits(self.body, self.body.nodes[at])}
        while True:
            allowed: set[int] = set()
            for at in sorted(within, reverse=True):
                outputs = self.body.nodes[at].output
                if allowed.issuperset(reader for name in outputs for reader in self._read(name)):
                    allowed.add(at)
            lost = {reader for reader, maker in self.late.together if maker not in allowed}
            if not lost & allowed:
                return allowed
            within = allowed - lost

    def _read(self, name: str) -> list[int]:
        return self.readers.get(name, [])

    def _not_collected(self, at: int) -> int:
        """What is saved where the loop need not collect what a node gives."""
        collected = {one.body_output for one in self.body.form.collected}
        outputs = collected.intersection(self.body.nodes[at].output)
        return sum(row_bytes(self.body, name) for name in outputs)

    def _crossings(self, allowed: Collection[int]) -> list[Crossing]:
        """Every value that the loop may have to collect."""
        body = self.body
        free = {name for at in self.late.plain for name in body.nodes[at].output}
        free |= {body.origin(one.body_output) for one in body.form.collected if in_order(one)}
        if body.form.scanned:
            free |= {one.body_input for one in body.form.scanned}
        crossings = []
        names = {name for at in allowed for name in scoping.free_names(body.nodes[at])}
        for name in sorted(names & self.late.carrying):
            maker = body.producers.get(name)
            producer: Part = maker if maker is not None and maker in allowed else FRONT
            readers: list[Part] = [at for at in self.readers[name] if at in allowed]
            whole = row_bytes(body, name)
            cost = handed_bytes(body, name) if body.origin(name) in free else whole
            crossings.append(Crossing(producer, tuple(readers), cost))
        return crossings
