"""The rule `batch-inputs`: work that reads only scanned inputs runs once, before the loop."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from onnx import NodeProto

from passes.bodies.may_leave import may_move, may_run_at_once, may_run_once
from passes.bodies.moving import known_rank
from passes.bodies.time_body import TimeBody
from passes.bodies.time_cost import Gains, check_worthy, fits, handed_bytes, is_worth_it
from passes.ir import scope as scoping
from passes.ir.attributes import attribute
from passes.ir.operators import is_scan_9
from passes.rule import Edit, Site, register
from passes.rules.time_axis.before_the_loop import BeforeTheLoop
from passes.rules.time_axis.time_cut import (
    BEHIND,
    FRONT,
    Crossing,
    Part,
    VectorizeProbe,
    in_front,
    with_sources,
    with_work,
)


@dataclass(frozen=True)
class BatchableInputs:
    """Nodes that may run before the loop, by position.

    Those in `plain` compute the same in every iteration, those in `moving` run over all iterations
    at once; `carrying` are the values of these that have time as their first axis.
    """

    plain: frozenset[int]
    moving: frozenset[int]
    carrying: frozenset[str]

    @classmethod
    def of(cls, body: TimeBody) -> BatchableInputs:
        """Find them, in one pass."""
        readable = [
            scanned
            for scanned in body.form.scanned
            if not scanned.axis or known_rank(body, scanned)
        ]
        rows = {scanned.body_input for scanned in readable}
        stays = {*scoping.input_names(body.rows.graph)} - rows
        probe = VectorizeProbe.of(body, rows)
        plain, moving = set(), set()
        for position, node in enumerate(body.nodes):
            names = scoping.free_names(node)
            sees = [name for name in names if probe.carries(name)]
            if position in body.unread or not stays.isdisjoint(names) or not may_move(body, node):
                stays.update(node.output)
            elif not sees and may_run_once(body, node):
                plain.add(position)
            elif sees and may_run_at_once(body, node, sees) and probe.accepts(node):
                moving.add(position)
            else:
                stays.update(node.output)
        return cls(frozenset(plain), frozenset(moving), frozenset(probe.vectorizer.carrying))


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Return whether a node is a Scan of version 9 or later in whose body there is work to move."""
    if not is_scan_9(node, opset):
        return False
    return any(_reads_scanned_alone(node, body) for _, body in scoping.subgraphs(node))


def _reads_scanned_alone(node: NodeProto, body: scoping.Owner) -> bool:
    """Return whether some work in the body depends on scanned inputs, and on no carried value."""
    scanned = attribute(node, "num_scan_inputs", 0)
    inputs = scoping.input_names(body)[: len(node.input)]
    first = len(inputs) - scanned
    carried, rows = set(inputs[:first]), set(inputs[first:])
    for inner in body.node:
        names = scoping.free_names(inner)
        if not carried.isdisjoint(names):
            carried.update(inner.output)
        elif not rows.isdisjoint(names):
            if is_worth_it(inner):
                return True
            rows.update(inner.output)
    return False


@register("batch-inputs", considers=considers, optional=True)
def batch_inputs(site: Site) -> Edit:
    """Run work that depends only on scanned inputs and captured values once, before the Scan.

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

    A cost model decides where to cut the body (`time_cost.py`). A node
    that leaves saves its start in every iteration, and a product the reading of its weights; the
    values handed to the loop, and what is computed for all iterations at once, go through memory.
    Nodes that only move data leave only with others. `--max-bytes` limits the bytes of a value
    for all iterations together. An output that is collected of what moves leaves the loop with
    it. Scanned inputs on other axes are transposed; of reversed ones the loop reads the results
    in reverse. Scanned lengths that are not provably equal get a guard, since the loop may no
    longer see them all; `--assume valid-inputs` leaves it out.

    Where the Scan may run no iteration, only nodes that cannot fail then move.

    Refuses:
    - `opset-too-old`: the opset is below 13, which the vectorization rules do not support
    - `nothing-to-move`: no node that depends only on scanned inputs has a vectorization rule
    - `not-worth-it`: moving would cost more than it saves
    - `random`: no loop would be left, and an unused op draws random numbers
    - `may-fail`: no loop would be left, and an unused op could fail
    - `over-budget`: what would move takes more than `--max-bytes` for all iterations
    """
    body = TimeBody.of(site, one_by_one=True)
    choice = _Choice(body, BatchableInputs.of(body), body.readers())
    return BeforeTheLoop(body, choice.moved()).edit()


@dataclass(frozen=True)
class _Choice:
    """Selects the nodes that move before the loop."""

    body: TimeBody
    batchable: BatchableInputs
    readers: dict[str, list[int]]

    def moved(self) -> list[int]:
        """The positions of the nodes that move, in order.

        Raises:
            Refused: there are none.
        """
        allowed = self._allowed()
        nothing = "no work that reads scanned inputs alone can run over all iterations at once"
        check_worthy(self.body, self.batchable.moving, allowed, nothing)
        saving = Gains(self.body, self.batchable.carrying, self.readers)
        gains = {
            position: saving.of(position) if position in self.batchable.moving else 0
            for position in sorted(allowed)
        }
        chosen = with_work(
            self.body, in_front(gains, self._crossings(allowed)) & self.batchable.moving
        )
        if not chosen:
            what = "what would be handed to the loop costs more than the loop saves"
            raise self.body.site.refused("not-worth-it", what)
        return sorted(with_sources(self.body, chosen, self.batchable.plain | self.batchable.moving))

    def _allowed(self) -> set[int]:
        """The nodes within the budget whose inputs are, too."""
        allowed: set[int] = set()
        body, batchable = self.body, self.batchable
        for position in sorted(batchable.plain | batchable.moving):
            producers = (
                body.index.positions.get(name) for name in scoping.free_names(body.nodes[position])
            )
            if allowed.issuperset(producer for producer in producers if producer is not None) and (
                position in batchable.plain or fits(body, body.nodes[position])
            ):
                allowed.add(position)
        return allowed

    def _crossings(self, allowed: Collection[int]) -> list[Crossing]:
        """Every value that the loop may have to scan."""
        body = self.body
        produced: list[tuple[Part, str]] = [
            (FRONT, scanned.body_input) for scanned in body.form.scanned
        ]
        for position in sorted(allowed):
            produced += [(position, name) for name in body.nodes[position].output if name]
        states = {carried.body_output for carried in body.form.carried}
        crossings = []
        for producer, name in produced:
            readers: list[Part] = [
                reader if reader in allowed else BEHIND for reader in self.readers.get(name, ())
            ]
            if name in states:
                readers.append(BEHIND)
            cost = handed_bytes(body, name) if name in self.batchable.carrying else 0
            crossings.append(Crossing(producer, tuple(dict.fromkeys(readers)), cost))
        return crossings
