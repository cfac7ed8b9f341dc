"""Decides which conditions of loops always hold, and splits the others into parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from onnx import NodeProto

from passes.ir.constants import Constants
from passes.ir.model import Model
from passes.ir.scope import Scope
from passes.loops.form import LoopForm
from passes.loops.parts import conjuncts, is_true
from passes.rule import Site


@dataclass(frozen=True)
class LoopConditions:
    """Reads conditions as they are seen from a scope.

    `given` is the condition that a body gets: it holds whenever the body runs.
    """

    model: Model
    scope: Scope
    given: str = ""

    @classmethod
    def around(cls, site: Site) -> LoopConditions:
        """Return the conditions before a loop; its body may use their names itself."""
        return cls(site.model, site.scope)

    @classmethod
    def inside(cls, site: Site, form: LoopForm) -> LoopConditions:
        """Conditions in the body of a Loop."""
        assert form.condition is not None
        (scope,) = site.scope.inner(site.place.index)
        return cls(site.model, scope, form.condition.body_input)

    def always(self, name: str) -> bool:
        """Return whether a condition holds in every run, or, in a body, whenever it runs."""
        return all(self._is_true(part) for _, part in self.parts(name))

    def open_parts(self, name: str) -> list[NodeProto | None]:
        """The conjuncts that are not always true; None for one that no node computes."""
        return [node for node, part in self.parts(name) if not self._is_true(part)]

    def parts(self, name: str) -> Iterator[tuple[NodeProto | None, str]]:
        """Yield the parts of a condition, all of which must hold: the producer of each, and its
        name."""
        return conjuncts(name, partial(self.model.visible_producer, self.scope))

    def _is_true(self, name: str) -> bool:
        given = bool(name) and name == self.given
        return given or is_true(Constants(self.model, self.scope).value(name))


def starts_always(site: Site, form: LoopForm) -> bool:
    """Return whether only the trip count can keep a loop from running: the initial condition
    holds."""
    return form.condition is None or LoopConditions.around(site).always(form.condition.initial)


def never_ends(site: Site, form: LoopForm) -> bool:
    """Return whether nothing that the body computes ends a loop before its trip count."""
    if form.condition is None:
        return True
    return LoopConditions.inside(site, form).always(form.condition.body_output)


def ends_with_its_count(model: Model, scope: Scope, index: int, opset: int) -> bool:
    """Return whether only its trip count ends the Loop at `index` of a scope."""
    form = LoopForm.from_node(scope.owner.node[index], opset)
    (body,) = scope.inner(index)
    assert form.condition is not None
    starts = LoopConditions(model, scope).always(form.condition.initial)
    inside = LoopConditions(model, body, form.condition.body_input)
    return starts and inside.always(form.condition.body_output)
