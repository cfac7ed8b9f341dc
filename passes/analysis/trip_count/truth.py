"""Which conditions are always true, and which are handed on as they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from onnx import GraphProto, NodeProto

from passes.analysis.integers.integers import Integers
from passes.ir.conditions import conjuncts, is_true
from passes.ir.constants import Constants
from passes.ir.scope import Scope
from passes.loops.form import Condition, LoopForm
from passes.rule import Site


@dataclass(frozen=True)
class Truth:
    """Reads conditions at a loop: those outside it, and those in its body."""

    site: Site
    form: LoopForm
    _integers: Integers = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_integers", Integers(self.site, self.form.body))

    @property
    def condition(self) -> Condition:
        """The condition of the loop, which every Loop has."""
        assert self.form.condition is not None
        return self.form.condition

    def always(self, name: str) -> bool:
        """Whether a condition holds whenever the body runs, or, outside it, in every run."""
        return all(self._is_true(one) for _, one in self.parts(name))

    @property
    def outside(self) -> Truth:
        """The same for conditions in front of the loop, whose names the body may use itself."""
        condition = replace(self.condition, body_input="")
        return Truth(self.site, replace(self.form, body=GraphProto(), condition=condition))

    def starts(self) -> bool:
        """Whether the condition holds at first, in every run."""
        return self.outside.always(self.condition.initial)

    def ends_never(self) -> bool:
        """Whether nothing that the body computes ends the loop."""
        return self.always(self.condition.body_output)

    def open_parts(self, name: str) -> list[NodeProto | None]:
        """The conjuncts that are not always true; None for one that no node computes."""
        return [node for node, one in self.parts(name) if not self._is_true(one)]

    def parts(self, name: str) -> Iterator[tuple[NodeProto | None, str]]:
        """What must hold for a condition to hold: the node behind each part, and its name."""
        return conjuncts(name, self._integers.source)

    def _is_true(self, name: str) -> bool:
        if name == self.condition.body_input:
            return True  # the body runs only where it is
        inside = (*self.site.scope.key, self.site.place.index, "body")
        scope = Scope("", inside, self.form.body, self.site.scope)
        return is_true(Constants(self.site.model, scope).value(name))
