"""Values that a loop carries, scans or collects twice become one."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass, field, replace

from onnx import NodeProto

from passes.analysis.bodies.value_numbers import Numbering, names_below, read_as
from passes.loops.form import Carried, Collected, LoopForm, Scanned
from passes.rule import Site
from passes.types.value_types import elem_type_of
from passes.writing.body_outputs import IDENTITY_OF_OPTIONALS

#: Rounds until carried values that start alike must have been told apart; else all are kept.
_MOST_ROUNDS = 16


@dataclass
class Merging:
    """Merges what a loop has twice; its body is changed in place.

    Carried values are the same if they start alike, and every iteration does the same to them,
    taking it that they are the same when it begins. `read` are the names that somebody reads
    behind the loop, `finals` what defines there the outputs that are gone.
    """

    site: Site
    form: LoopForm
    read: Collection[str]
    finals: list[NodeProto] = field(default_factory=list)
    count: int = 0

    def merge(self) -> LoopForm:
        """The loop with each value once."""
        form = self.form
        below = names_below(form.body)
        same: dict[str, str] = {}
        scanned = self._scanned(below, same)
        labels = self._labels()
        carried = self._carried(below, same, labels)
        numbers = Numbering(form.body, labels)
        collected = self._collected(numbers)
        read_as(form.body, same)
        merged = replace(
            form, carried=tuple(carried), scanned=tuple(scanned), collected=tuple(collected)
        )
        self.count = form.width - merged.width
        return merged

    def _scanned(self, below: set[str], same: dict[str, str]) -> list[Scanned]:
        first: dict[Hashable, Scanned] = {}
        kept = []
        for one in self.form.scanned:
            known = first.setdefault((one.tensor, one.axis, one.reversed), one)
            if known is one or known.body_input in below:
                kept.append(one)
            else:
                same[one.body_input] = known.body_input
        return kept

    def _labels(self) -> dict[str, Hashable]:
        """Equal labels for carried values (body inputs) that are the same."""
        carried = self.form.carried
        groups: list[Hashable] = [self._start(one) for one in carried]
        for _ in range(_MOST_ROUNDS):
            if len(set(groups)) == len(groups):
                break
            labels = {one.body_input: group for one, group in zip(carried, groups, strict=True)}
            numbers = Numbering(self.form.body, labels)
            ends = [numbers.of(one.body_output) for one in carried]
            known: dict[Hashable, int] = {}
            refined = [
                known.setdefault((group, end), len(known))
                for group, end in zip(groups, ends, strict=True)
            ]
            if len(known) == len(set(groups)):
                return labels
            groups = list(refined)
        return {one.body_input: ("own", one.body_input) for one in carried}

    def _start(self, one: Carried) -> Hashable:
        value = self.site.constant(one.initial)
        if value is None:
            return one.initial
        content = repr(value.tolist()) if value.dtype == object else value.tobytes()
        return (value.dtype.name, value.shape, content)

    def _carried(
        self, below: set[str], same: dict[str, str], labels: dict[str, Hashable]
    ) -> list[Carried]:
        first: dict[Hashable, int] = {}
        kept: list[Carried] = []
        for one in self.form.carried:
            at = first.setdefault(labels[one.body_input], len(kept))
            if at == len(kept) or kept[at].body_input in below or not self._can_hand_on(one):
                kept.append(one)
                continue
            same[one.body_input] = kept[at].body_input
            if one.final in self.read:
                kept[at] = replace(kept[at], final=kept[at].final or self.site.fresh("final"))
                self._hand_on(kept[at].final, one.final)
        return kept

    def _collected(self, numbers: Numbering) -> list[Collected]:
        first: dict[Hashable, int] = {}
        kept: list[Collected] = []
        for one in self.form.collected:
            key = (numbers.of(one.body_output), one.axis, one.reversed)
            at = first.setdefault(key, len(kept))
            if at == len(kept):
                kept.append(one)
            elif one.tensor in self.read:
                kept[at] = replace(kept[at], tensor=kept[at].tensor or self.site.fresh("rows"))
                self._hand_on(kept[at].tensor, one.tensor)
        return kept

    def _can_hand_on(self, one: Carried) -> bool:
        """Whether an Identity can: an early one takes tensors only."""
        known = elem_type_of(self.site.type_of(one.initial))
        return bool(known) or self.site.opset >= IDENTITY_OF_OPTIONALS

    def _hand_on(self, value: str, name: str) -> None:
        self.finals.append(NodeProto(op_type="Identity", input=[value], output=[name]))
