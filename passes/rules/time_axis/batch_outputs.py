"""The rule `batch-outputs`: what feeds collected outputs alone runs once, behind the loop."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from onnx import NodeProto, TensorProto

from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.loops.form import Kind
from passes.rule import Edit, Refused, Site, register
from passes.rules.time_axis.behind_the_loop import in_order, sunk
from passes.rules.time_axis.connected_compute import too_large, with_sources, with_work
from passes.rules.time_axis.time_body import TimeBody
from passes.rules.time_axis.time_cost import Gains, fits, handed_bytes, is_worth_it, row_bytes
from passes.rules.time_axis.time_cut import FRONT, Crossing, Part, behind
from passes.rules.time_axis.vectorize_probe import Attempt
from passes.rules.time_axis.without_iterations import (
    may_move,
    may_run_on_nothing,
    may_run_once,
    stands_guessed_sizes,
)
from passes.types.value_types import dims_of, elem_type_of


@dataclass(frozen=True)
class BatchableOutputs:
    """Nodes that may run behind the loop, by position.

    Those in `moving` run over all iterations at once, on values that the loop collects; those in
    `plain` are the same in every iteration, and are written once more behind the loop. `carrying`
    are the values that have time as their first axis there; `together` are pairs of a reader and
    a node, of which the reader may move only with the other.
    """

    plain: frozenset[int]
    moving: frozenset[int]
    carrying: frozenset[str]
    together: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, body: TimeBody) -> BatchableOutputs:
        """Find them, in one walk from the front and then from the back."""
        inputs = set(scoping.input_names(body.rows.graph))
        finding = _Finding(body, Attempt.of(body, inputs), set(), set(), {})
        varies = _varying(body)
        for at, node in enumerate(body.nodes):
            finding.visit(at, node)
        moving = _only_collected(body, finding.taken & varies | set(finding.shapes.values()))
        together = finding.together(moving)
        while lost := {reader for reader, maker in together if maker not in moving}:
            moving = _only_collected(body, moving - lost)
            together = finding.together(moving)
        carrying = frozenset(finding.attempt.at.carrying)
        return cls(frozenset(finding.plain), frozenset(moving), carrying, tuple(together))


@dataclass(frozen=True)
class _Finding:
    """What a walk from the front knows. `shapes` are values of nodes in `taken` that do not have
    time as an axis: they are known behind the loop only if those move."""

    body: TimeBody
    attempt: Attempt
    plain: set[int]
    taken: set[int]
    shapes: dict[str, int]

    def visit(self, at: int, node: NodeProto) -> None:
        names = scoping.free_names(node)
        sees = [name for name in names if self.attempt.carries(name)]
        shaped = any(name in self.shapes for name in names)
        free = may_move(self.body, node) and at not in self.body.unread
        outputs = set(filter(None, node.output))
        if free and not sees and may_run_once(self.body, node):
            if shaped:
                self._take(at, outputs)
            else:
                self.plain.add(at)
        elif (
            free
            and sees
            and may_run_on_nothing(self.body, node, sees)
            and stands_guessed_sizes(self.body, node, sees)
            and _has_types(self.body, node)
            and not _reads_text(self.body, sees)
            and self.attempt.takes(node)
        ):
            self._take(at, {name for name in outputs if not self.attempt.carries(name)})
        else:
            self.attempt.at.carrying.update(outputs)

    def _take(self, at: int, shapes: set[str]) -> None:
        self.taken.add(at)
        self.shapes.update(dict.fromkeys(sorted(shapes), at))

    def together(self, moving: Collection[int]) -> list[tuple[int, int]]:
        """Readers of shapes, each with the node that tells it."""
        return [
            (at, self.shapes[name])
            for at in sorted(moving)
            for name in scoping.free_names(self.body.nodes[at])
            if name in self.shapes
        ]


def _varying(body: TimeBody) -> set[int]:
    """The nodes that depend on what only the loop knows: carried values, the iteration number."""
    scanned = {one.body_input for one in body.form.scanned}
    known = set(scoping.input_names(body.rows.graph)) - scanned
    found = set()
    for at, node in enumerate(body.nodes):
        if not known.isdisjoint(scoping.free_names(node)):
            known.update(node.output)
            found.add(at)
    return found


def _only_collected(body: TimeBody, taken: Collection[int]) -> set[int]:
    """Those whose outcome only goes to others of them, and to collected outputs."""
    kept_in = {one.body_output for one in body.form.carried}
    if body.form.condition is not None:
        kept_in.add(body.form.condition.body_output)
    moving: set[int] = set()
    for at in reversed(range(len(body.nodes))):
        node = body.nodes[at]
        if at in taken and kept_in.isdisjoint(node.output):
            moving.add(at)
        else:
            kept_in.update(scoping.free_names(node))
    return moving


def _reads_text(body: TimeBody, sees: Sequence[str]) -> bool:
    """Whether a Loop might have to collect strings, which onnxruntime moves out of their place."""
    types = [body.rows.types.get(name) for name in sees]
    texts = any(elem_type_of(one) == TensorProto.STRING for one in types)
    return body.form.kind is Kind.LOOP and texts


def _has_types(body: TimeBody, node: NodeProto) -> bool:
    """Whether what a node reads can be collected, should it stay, and what it gives be placed."""
    known = [body.rows.types.get(name) for name in scoping.free_names(node)]
    turned = {one.body_output for one in body.form.collected if one.axis}
    placed = all(body.row_rank(name) is not None for name in node.output if name in turned)
    return placed and all(elem_type_of(one) and dims_of(one) is not None for one in known)


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

    Where to cut the body is decided by what it costs (`time_cost.py`). A value
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
    choice = _Choice(body, BatchableOutputs.of(body), body.readers())
    return sunk(body, choice.moved(), choice.late.plain)


@dataclass(frozen=True)
class _Choice:
    """Which of the nodes that may go behind do."""

    body: TimeBody
    late: BatchableOutputs
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
