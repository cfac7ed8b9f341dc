"""What stands for guarded values where their loop runs no iteration: zeros of their shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from passes.analysis.bodies.nested_graphs import NestedGraph
from passes.ir import scope as scoping
from passes.ir.versions import SHAPES_MAY_DIFFER
from passes.loops.form import LoopForm
from passes.rules.hoist.invariants import Candidate
from passes.types.value_types import INFERRED, Dim, dims_of, elem_type_of

#: Where a size stands: it is this axis of an outer value.
Place = tuple[str, int]


@dataclass
class StandIns:
    """The sizes of values that moved behind an If, told by outer values that are always there.

    A loop that runs no iteration collects nothing, but in the shape of what it would have
    collected, which follows from the shapes of the values that its body reads. So what stands
    for them must have their shape where it is seen: `is_known` says whether that can be written.
    Before opset 11 it must always have it, since both branches of an If have one shape.
    """

    level: NestedGraph
    form: LoopForm
    candidates: Sequence[Candidate]

    def is_known(self, number: int, name: str) -> bool:
        """Whether something can stand for an output of a candidate."""
        known = self.candidates[number].level.type_of(name)
        dims = dims_of(known)
        if dims is None or not elem_type_of(known):
            return False
        return not self._is_seen(name) or None not in self._sizes(number, dims)

    def sizes(self, number: int, name: str) -> list[int | Place]:
        """The sizes of what stands for an output of a candidate; 0 where nobody sees them."""
        dims = self.candidates[number].level.dims_of(name) or ()
        if not self._is_seen(name):
            return [dim if isinstance(dim, int) else 0 for dim in dims]
        return [size or 0 for size in self._sizes(number, dims)]

    def _sizes(self, number: int, dims: Sequence[Dim]) -> list[int | Place | None]:
        told = self._told[number]
        return [told.get(dim) if isinstance(dim, str) else dim for dim in dims]

    def _is_seen(self, name: str) -> bool:
        return self.level.site.target < SHAPES_MAY_DIFFER or name in self._shaping

    @cached_property
    def _shaping(self) -> set[str]:
        """The values on which the shape of something that is collected may depend."""
        collected = (one.body_output for one in self.form.collected)
        shaping = {name for name in collected if not _is_fixed(self.level.dims_of(name))}
        for node in reversed(self.level.graph.node):
            if not shaping.isdisjoint(node.output):
                shaping.update(scoping.free_names(node))
                for _, branch in scoping.subgraphs(node):
                    for graph in scoping.graphs_below(branch):
                        shaping.update(scoping.defined(graph))
        return shaping

    @cached_property
    def _told(self) -> list[dict[str, Place]]:
        """For each candidate where the symbols stand among the outer values behind it."""
        told: list[dict[str, Place]] = []
        for one in self.candidates:
            found: dict[str, Place] = {}
            makers = {name: at for at, name in one.reads}
            for name in scoping.free_names(one.node) if one.node is not None else ():
                places = told[makers[name]] if name in makers else self._places(one.level, name)
                found = {**places, **found}
            told.append(found)
        return told

    def _places(self, level: NestedGraph, name: str) -> dict[str, Place]:
        dims = level.dims_of(name) or ()
        told = ((dim, (name, axis)) for axis, dim in enumerate(dims) if isinstance(dim, str))
        return {
            dim: at for dim, at in told if dim in self.level.symbols or dim.startswith(INFERRED)
        }


def _is_fixed(dims: Sequence[Dim] | None) -> bool:
    return dims is not None and all(isinstance(dim, int) for dim in dims)
