"""The rule `batch-inputs`: what reads scanned inputs alone runs once, in front of the loop."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from onnx import NodeProto

from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.rule import Edit, Refused, Site, register
from passes.rules.time_axis.before_the_loop import hoisted
from passes.rules.time_axis.connected_compute import too_large, with_sources, with_work
from passes.rules.time_axis.moving import known_rank
from passes.rules.time_axis.time_body import TimeBody
from passes.rules.time_axis.time_cost import Gains, fits, handed_bytes, is_worth_it
from passes.rules.time_axis.time_cut import BEHIND, FRONT, Crossing, Part, in_front
from passes.rules.time_axis.vectorize_probe import Attempt
from passes.rules.time_axis.without_iterations import may_move, may_run_on_nothing, may_run_once


@dataclass(frozen=True)
class BatchableInputs:
    """Nodes that may run in front of the loop, by position.

    Those in `plain` give the same in every iteration, those in `moving` run over all iterations
    at once; `carrying` are the values of these that have time as their first axis.
    """

    plain: frozenset[int]
    moving: frozenset[int]
    carrying: frozenset[str]

    @classmethod
    def of(cls, body: TimeBody) -> BatchableInputs:
        """Find them, in one walk."""
        readable = [one for one in body.form.scanned if not one.axis or known_rank(body, one)]
        rows = {one.body_input for one in readable}
        stays = {*scoping.input_names(body.rows.graph)} - rows
        attempt = Attempt.of(body, rows)
        plain, moving = set(), set()
        for at, node in enumerate(body.nodes):
            names = scoping.free_names(node)
            sees = [name for name in names if attempt.carries(name)]
            if at in body.unread or not stays.isdisjoint(names) or not may_move(body, node):
                stays.update(node.output)
            elif not sees and may_run_once(body, node):
                plain.add(at)
            elif sees and may_run_on_nothing(body, node, sees) and attempt.takes(node):
                moving.add(at)
            else:
                stays.update(node.output)
        return cls(frozenset(plain), frozenset(moving), frozenset(attempt.at.carrying))


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Whether a node is a Scan of version 9 or later in whose body there is work to move."""
    if op_of(node) != "Scan" or opset < 9:
        return False
    return any(_reads_scanned_alone(node, body) for _, body in scoping.subgraphs(node))


def _reads_scanned_alone(node: NodeProto, body: scoping.Owner) -> bool:
    """Whether some work in the body depends on scanned inputs, and on no carried value."""
    scanned = next((one.i for one in node.attribute if one.name == "num_scan_inputs"), 0)
    inputs = scoping.input_names(body)[: len(node.input)]
    first = len(inputs) - scanned
    carried, rows = set(inputs[:first]), set(inputs[first:])
    for one in body.node:
        names = scoping.free_names(one)
        if not carried.isdisjoint(names):
            carried.update(one.output)
        elif not rows.isdisjoint(names):
            if is_worth_it(one):
                return True
            rows.update(one.output)
    return False


@register("batch-inputs", considers=considers, optional=True)
def batch_inputs(site: Site) -> Edit:
    """Run what depends on scanned inputs and captures alone in front of the Scan, once.

    Before:

        h, hs = Scan <num_scan_inputs = 1, body = step (float[B,H] h_in, float[B,I] x_t) => (...) {
            a = MatMul (x_t, W)
            b = MatMul (h_in, R)
            ...
        }> (h0, x)

    After:

        all_a = MatMul (x, W)
        h, hs = Scan <num_scan_inputs = 1, body = step (float[B,H] h_in, float[B,4H] a) => (...) {
            b = MatMul (h_in, R)
            ...
        }> (h0, all_a)

    Where to cut the body is decided by what it costs (`time_cost.py`). A node
    that leaves saves its start in every iteration, and a product the reading of its weights; the
    values handed to the loop, and what is computed for all iterations at once, go through memory.
    Nodes that only move data leave with others only. `--max-bytes` bounds what a value may take
    for all iterations together. An output that is collected of what moves leaves the loop with
    it. Scanned inputs on other axes are transposed; of reversed ones the loop reads the outcome
    reversed. Scanned lengths that are not provably equal get a guard, for the loop may no longer
    see them all; `--assume valid-inputs` leaves it out.

    Where the Scan may run no iteration, only what cannot fail then moves.

    Refuses:
    - `opset-too-old`: the opset is below 13, which the rules for one more axis do not know
    - `nothing-to-move`: what depends on scanned inputs alone has no rule for one more axis
    - `not-worth-it`: moving would cost more than it saves
    - `random`: no loop would be left, and an op that nobody reads draws random numbers
    - `may-fail`: no loop would be left, and an op that nobody reads could fail
    - `over-budget`: what would move takes more than `--max-bytes` for all iterations
    """
    body = TimeBody.of(site)
    return hoisted(body, _Choice.of(body).moved())


@dataclass(frozen=True)
class _Choice:
    """Which of the nodes that may go in front do."""

    body: TimeBody
    early: BatchableInputs
    readers: dict[str, list[int]]

    @classmethod
    def of(cls, body: TimeBody) -> _Choice:
        return cls(body, BatchableInputs.of(body), body.readers())

    def moved(self) -> list[int]:
        """The positions of the nodes that move, in order.

        Raises:
            Refused: there are none.
        """
        worthy = {at for at in self.early.moving if is_worth_it(self.body.nodes[at])}
        if not worthy:
            raise self._refusal(
                "nothing-to-move",
                "no work that reads scanned inputs alone can run over all iterations at once",
            )
        allowed = self._allowed()
        if worthy.isdisjoint(allowed):
            raise too_large(self.body, worthy)
        saving = Gains(self.body, self.early.carrying, self.readers)
        gains = {at: saving.of(at) if at in self.early.moving else 0 for at in sorted(allowed)}
        chosen = with_work(self.body, in_front(gains, self._crossings(allowed)) & self.early.moving)
        if not chosen:
            raise self._refusal(
                "not-worth-it", "what would be handed to the loop costs more than the loop saves"
            )
        return sorted(with_sources(self.body, chosen, self.early.plain | self.early.moving))

    def _refusal(self, code: str, sentence: str) -> Refused:
        return Refused(code, sentence, [self.body.site.path])

    def _allowed(self) -> set[int]:
        """Those within the budget, and whose inputs are."""
        allowed: set[int] = set()
        body, early = self.body, self.early
        for at in sorted(early.plain | early.moving):
            makers = (body.producers.get(name) for name in scoping.free_names(body.nodes[at]))
            if allowed.issuperset(maker for maker in makers if maker is not None) and (
                at in early.plain or fits(body, body.nodes[at])
            ):
                allowed.add(at)
        return allowed

    def _crossings(self, allowed: Collection[int]) -> list[Crossing]:
        """Every value that the loop may have to scan."""
        body = self.body
        made: list[tuple[Part, str]] = [(FRONT, one.body_input) for one in body.form.scanned]
        for at in sorted(allowed):
            made += [(at, name) for name in body.nodes[at].output if name]
        states = {one.body_output for one in body.form.carried}
        crossings = []
        for producer, name in made:
            readers: list[Part] = [
                at if at in allowed else BEHIND for at in self.readers.get(name, ())
            ]
            if name in states:
                readers.append(BEHIND)
            cost = handed_bytes(body, name) if name in self.early.carrying else 0
            crossings.append(Crossing(producer, tuple(dict.fromkeys(readers)), cost))
        return crossings
