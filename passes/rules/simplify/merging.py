"""Values that a loop carries, scans or collects twice become one."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass, field, replace

from onnx import NodeProto

from passes.analysis.bodies.value_numbers import Numbering, names_below, read_as
from passes.ir.versions import IDENTITY_OF_OPTIONALS
from passes.loops.form import Carried, Collected, LoopForm, Scanned
from passes.rule import Site
from passes.types.value_types import elem_type_of

#: Rounds in which carried values with equal initial values are distinguished; else all are kept.
_MOST_ROUNDS = 16


@dataclass
class Merging:
    """Merges what a loop has twice; its body is changed in place.

    Carried values are the same if their initial values are, and every iteration does the same to
    them, assuming that they are the same when it begins. `read` are the names that are read
    after the loop, `finals` the nodes that define the outputs that are gone.
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
        for scanned in self.form.scanned:
            known = first.setdefault((scanned.tensor, scanned.axis, scanned.reversed), scanned)
            if known is scanned or known.body_input in below:
                kept.append(scanned)
            else:
                same[scanned.body_input] = known.body_input
        return kept

    def _labels(self) -> dict[str, Hashable]:
        """Equal labels for equal carried values (body inputs)."""
        carried = self.form.carried
        groups: list[Hashable] = [self._start(state) for state in carried]
        for _ in range(_MOST_ROUNDS):
            if len(set(groups)) == len(groups):
                break
            labels = {state.body_input: group for state, group in zip(carried, groups, strict=True)}
            numbers = Numbering(self.form.body, labels)
            ends = [numbers.of(state.body_output) for state in carried]
            known: dict[Hashable, int] = {}
            refined = [
                known.setdefault((group, end), len(known))
                for group, end in zip(groups, ends, strict=True)
            ]
            if len(known) == len(set(groups)):
                return labels
            groups = list(refined)
        return {state.body_input: ("own", state.body_input) for state in carried}

    def _start(self, carried: Carried) -> Hashable:
        value = self.site.constant(carried.initial)
        if value is None:
            return carried.initial
        content = repr(value.tolist()) if value.dtype == object else value.tobytes()
        return (value.dtype.name, value.shape, content)

    def _carried(
        self, below: set[str], same: dict[str, str], labels: dict[str, Hashable]
    ) -> list[Carried]:
        first: dict[Hashable, int] = {}
        kept: list[Carried] = []
        for carried in self.form.carried:
            position = first.setdefault(labels[carried.body_input], len(kept))
            if (
                position == len(kept)
                or kept[position].body_input in below
                or not self._can_hand_on(carried)
            ):
                kept.append(carried)
                continue
            same[carried.body_input] = kept[position].body_input
            if carried.final in self.read:
                kept[position] = replace(
                    kept[position], final=kept[position].final or self.site.fresh("final")
                )
                self._hand_on(kept[position].final, carried.final)
        return kept

    def _collected(self, numbers: Numbering) -> list[Collected]:
        first: dict[Hashable, int] = {}
        kept: list[Collected] = []
        for collected in self.form.collected:
            key = (numbers.of(collected.body_output), collected.axis, collected.reversed)
            position = first.setdefault(key, len(kept))
            if position == len(kept):
                kept.append(collected)
            elif collected.tensor in self.read:
                kept[position] = replace(
                    kept[position], tensor=kept[position].tensor or self.site.fresh("rows")
                )
                self._hand_on(kept[position].tensor, collected.tensor)
        return kept

    def _can_hand_on(self, carried: Carried) -> bool:
        """Return whether an Identity can copy it: before optional types, it takes only tensors."""
        known = elem_type_of(self.site.type_of(carried.initial))
        return bool(known) or self.site.opset >= IDENTITY_OF_OPTIONALS

    def _hand_on(self, value: str, name: str) -> None:
        self.finals.append(NodeProto(op_type="Identity", input=[value], output=[name]))
