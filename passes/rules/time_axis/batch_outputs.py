"""The rule `batch-outputs`: work that feeds only collected outputs runs once, after the loop."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from onnx import NodeProto, TensorProto

from passes.bodies.may_leave import (
    may_move,
    may_run_at_once,
    may_run_once,
    tolerates_unknown_sizes,
)
from passes.bodies.time_body import TimeBody
from passes.bodies.time_cost import (
    COPY,
    Gains,
    check_worthy,
    fits,
    handed_bytes,
    is_worth_it,
    row_bytes,
)
from passes.ir import scope as scoping
from passes.ir.attributes import attribute
from passes.ir.live import dependents
from passes.ir.operators import is_loop_9, op_of
from passes.loops.form import Kind
from passes.rule import Edit, Site, register
from passes.rules.time_axis.after_the_loop import AfterTheLoop, in_order
from passes.rules.time_axis.time_cut import (
    FRONT,
    Crossing,
    Part,
    VectorizeProbe,
    behind,
    with_sources,
    with_work,
)
from passes.types.value_types import dims_of, elem_type_of


@dataclass(frozen=True)
class BatchableOutputs:
    """Nodes that may run after the loop, by position.

    Those in `moving` run over all iterations at once, on values that the loop collects; those in
    `plain` are the same in every iteration, and are written once more after the loop. `carrying`
    are the values that have time as their first axis there; `together` are pairs of a reader and
    a node without which the reader may not move.
    """

    plain: frozenset[int]
    moving: frozenset[int]
    carrying: frozenset[str]
    together: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, body: TimeBody) -> BatchableOutputs:
        """Find them, in one pass forwards and then one backwards."""
        inputs = set(scoping.input_names(body.rows.graph))
        finding = _Finding(body, VectorizeProbe.of(body, inputs), set(), set(), {})
        varies = _varying(body)
        for position, node in enumerate(body.nodes):
            finding.visit(position, node)
        moving = _only_collected(body, finding.taken & varies | set(finding.shapes.values()))
        together = finding.together(moving)
        while lost := {reader for reader, producer in together if producer not in moving}:
            moving = _only_collected(body, moving - lost)
            together = finding.together(moving)
        carrying = frozenset(finding.probe.vectorizer.carrying)
        return cls(frozenset(finding.plain), frozenset(moving), carrying, tuple(together))


@dataclass(frozen=True)
class _Finding:
    """The state of the pass forwards. `shapes` are outputs of nodes in `taken` without a time
    axis: they are known after the loop only if those nodes move."""

    body: TimeBody
    probe: VectorizeProbe
    plain: set[int]
    taken: set[int]
    shapes: dict[str, int]

    def visit(self, position: int, node: NodeProto) -> None:
        names = scoping.free_names(node)
        sees = [name for name in names if self.probe.carries(name)]
        shaped = any(name in self.shapes for name in names)
        free = may_move(self.body, node) and position not in self.body.unread
        outputs = set(filter(None, node.output))
        if free and not sees and may_run_once(self.body, node):
            if shaped:
                self._take(position, outputs)
            else:
                self.plain.add(position)
        elif (
            free
            and sees
            and may_run_at_once(self.body, node, sees)
            and tolerates_unknown_sizes(self.body, node, sees)
            and _has_types(self.body, node)
            and not _reads_text(self.body, sees)
            and self.probe.accepts(node)
        ):
            self._take(position, {name for name in outputs if not self.probe.carries(name)})
        else:
            self.probe.vectorizer.carrying.update(outputs)

    def _take(self, position: int, shapes: set[str]) -> None:
        self.taken.add(position)
        self.shapes.update(dict.fromkeys(sorted(shapes), position))

    def together(self, moving: Collection[int]) -> list[tuple[int, int]]:
        """Readers of shapes, each with the node that computes the shape."""
        return [
            (position, self.shapes[name])
            for position in sorted(moving)
            for name in scoping.free_names(self.body.nodes[position])
            if name in self.shapes
        ]


def _varying(body: TimeBody) -> set[int]:
    """The nodes that depend on what only the loop has: carried values, the iteration number."""
    scanned = {scanned.body_input for scanned in body.form.scanned}
    varying = set(scoping.input_names(body.rows.graph)) - scanned
    found = set()
    for position, node in enumerate(body.nodes):
        if not varying.isdisjoint(scoping.free_names(node)):
            varying.update(node.output)
            found.add(position)
    return found


def _only_collected(body: TimeBody, taken: Collection[int]) -> set[int]:
    """The nodes whose outputs only feed others of them, and collected outputs."""
    kept_in = {carried.body_output for carried in body.form.carried}
    if body.form.condition is not None:
        kept_in.add(body.form.condition.body_output)
    moving: set[int] = set()
    for position in reversed(range(len(body.nodes))):
        node = body.nodes[position]
        if position in taken and kept_in.isdisjoint(node.output):
            moving.add(position)
        else:
            kept_in.update(scoping.free_names(node))
    return moving


def _reads_text(body: TimeBody, sees: Sequence[str]) -> bool:
    """Return whether a Loop might have to collect strings, which onnxruntime moves away."""
    types = [body.rows.types.get(name) for name in sees]
    texts = any(elem_type_of(type_) == TensorProto.STRING for type_ in types)
    return body.form.kind is Kind.LOOP and texts


def _has_types(body: TimeBody, node: NodeProto) -> bool:
    """Return whether the inputs of a node can be collected, and its outputs be placed on their
    axes."""
    known = [body.rows.types.get(name) for name in scoping.free_names(node)]
    turned = {collected.body_output for collected in body.form.collected if collected.axis}
    placed = all(body.row_rank(name) is not None for name in node.output if name in turned)
    return placed and all(elem_type_of(type_) and dims_of(type_) is not None for type_ in known)


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Return whether a node is a Loop, or a Scan of version 9 or later, with work that only feeds
    collected outputs."""
    return is_loop_9(node, opset) and any(
        _feeds_collected_alone(node, body) for _, body in scoping.subgraphs(node)
    )


def _feeds_collected_alone(node: NodeProto, body: scoping.Owner) -> bool:
    """Return whether some work in the body depends on a carried value, and only outputs depend on
    it."""
    scanned = attribute(node, "num_scan_inputs", 0)
    inputs, outputs = scoping.input_names(body), scoping.output_names(body)
    carried = len(node.input) - (scanned if op_of(node) == "Scan" else 1)
    varies = dependents(body.node, inputs[: len(node.input) - scanned])
    needed = set(outputs[:carried])
    for inner in reversed(body.node):
        if not needed.isdisjoint(inner.output):
            needed.update(scoping.free_names(inner))
        elif is_worth_it(inner) and not varies.isdisjoint(inner.output):
            return True
    return False


@register("batch-outputs", considers=considers, optional=True)
def batch_outputs(site: Site) -> Edit:
    """Run work that feeds only collected outputs once, after the loop.

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

    A cost model decides where to cut the body (`time_cost.py`). A value
    that the loop collects already is not collected twice, and a scanned tensor is read again.
    Outputs that are collected on another axis or in reverse are rearranged after the loop. A Loop
    may end at any iteration: what moves sees those that ran, and no others. Where possibly no
    iteration runs, only nodes that cannot fail then move. `--max-bytes` limits the bytes of a value
    for all iterations together.

    Refuses:
    - `opset-too-old`: the opset is below 13, which the vectorization rules do not support
    - `nothing-to-move`: no node that feeds only collected outputs has a vectorization rule
    - `not-worth-it`: moving would cost more than it saves
    - `over-budget`: what would move takes more than `--max-bytes` for all iterations
    """
    body = TimeBody.of(site, one_by_one=True)
    choice = _Choice(body, BatchableOutputs.of(body), body.readers())
    return AfterTheLoop(body, choice.moved(), choice.batchable.plain).edit()


@dataclass(frozen=True)
class _Choice:
    """Selects the nodes that move after the loop."""

    body: TimeBody
    batchable: BatchableOutputs
    readers: dict[str, list[int]]

    def moved(self) -> list[int]:
        """The positions of the nodes that move, in order.

        Raises:
            Refused: there are none.
        """
        body = self.body
        allowed = self._allowed()
        nothing = "no work that feeds collected outputs alone can run over all iterations at once"
        check_worthy(body, self.batchable.moving, allowed, nothing)
        saving = Gains(body, self.batchable.carrying, self.readers)
        gains = {
            position: saving.of(position) + self._not_collected(position)
            for position in sorted(allowed)
        }
        together = [pair for pair in self.batchable.together if allowed.issuperset(pair)]
        chosen = with_work(body, behind(gains, self._crossings(allowed), together))
        if not chosen:
            what = "what the loop would collect instead costs more than the loop saves"
            raise body.site.refused("not-worth-it", what)
        return sorted(with_sources(body, chosen, self.batchable.plain))

    def _allowed(self) -> set[int]:
        """The nodes within the budget whose readers and shapes are, too."""
        within = {
            position
            for position in self.batchable.moving
            if fits(self.body, self.body.nodes[position])
        }
        while True:
            allowed: set[int] = set()
            for position in sorted(within, reverse=True):
                outputs = self.body.nodes[position].output
                read = (self.readers.get(name, ()) for name in outputs)
                if all(map(allowed.issuperset, read)):
                    allowed.add(position)
            lost = {
                reader for reader, producer in self.batchable.together if producer not in allowed
            }
            if not lost & allowed:
                return allowed
            within = allowed - lost

    def _not_collected(self, position: int) -> int:
        """The bytes saved where the loop need not collect the outputs of a node."""
        collected = {collected.body_output for collected in self.body.form.collected}
        outputs = collected.intersection(self.body.nodes[position].output)
        return sum(row_bytes(self.body, name) for name in outputs)

    def _crossings(self, allowed: Collection[int]) -> list[Crossing]:
        """Every value that the loop may have to collect."""
        body = self.body
        free = {name for position in self.batchable.plain for name in body.nodes[position].output}
        free |= {
            body.index.source(collected.body_output)
            for collected in body.form.collected
            if in_order(collected)
        }
        if body.form.scanned:
            free |= {scanned.body_input for scanned in body.form.scanned}
        crossings = []
        names = {name for position in allowed for name in scoping.free_names(body.nodes[position])}
        for name in sorted(names & self.batchable.carrying):
            position = body.index.positions.get(name)
            producer: Part = position if position in allowed and position is not None else FRONT
            readers: list[Part] = [reader for reader in self.readers[name] if reader in allowed]
            cost = handed_bytes(body, name) if body.index.source(name) in free else self._new(name)
            crossings.append(Crossing(producer, tuple(readers), cost))
        return crossings

    def _new(self, name: str) -> int:
        """The cost of collecting a value: its bytes, and the node that copies what is a state."""
        inside = self.body.index.positions.keys() - set(self.body.form.body_outputs)
        return row_bytes(self.body, name) + (0 if name in inside else COPY)
