"""What of a loop's body feeds collected outputs only."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from onnx import NodeProto, TensorProto

from passes import scope as scoping
from passes.loop_form import Kind
from passes.rules.attempt import Attempt
from passes.rules.time_body import TimeBody
from passes.rules.without_iterations import (
    may_move,
    may_run_on_nothing,
    may_run_once,
    stands_guessed_sizes,
)
from passes.value_types import dims_of, elem_type_of


@dataclass(frozen=True)
class Late:
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
    def of(cls, body: TimeBody) -> Late:
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
