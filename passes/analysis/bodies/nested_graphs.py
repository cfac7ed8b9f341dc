"""The graphs that nodes may leave: a body and the branches in it, with facts about values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np
from onnx import FunctionProto, GraphProto, NodeProto, TensorProto, TypeProto, helper

from passes.analysis.integers.integers import Integers
from passes.analysis.safety.may_fail import may_go, may_run_unreached
from passes.analysis.safety.shapes_fit import Known
from passes.ir import scope as scoping
from passes.ir.constants import Constants
from passes.ir.scope import Scope
from passes.ir.versions import FUNCTIONS_HAVE_TYPES
from passes.loops.form import Kind, LoopForm
from passes.operators.exactness import Array
from passes.rule import Site, Slot
from passes.types.value_types import Dims, dims_of, elem_type_of

_T = TypeVar("_T")
_MOVED_TYPES: Slot[dict[str, TypeProto]] = Slot()


def remember(site: Site, name: str, known: TypeProto | None) -> None:
    """Record the type of a value under its new name, for rules that meet it in this round."""
    if known is not None:
        _moved(site)[name] = known


def _moved(site: Site) -> dict[str, TypeProto]:
    """Types of values that rewrites of this round moved: types inferred before do not know
    where they are."""
    return site.memory.once(_MOVED_TYPES, dict)


@dataclass(frozen=True)
class NestedGraph:
    """A graph below a site's node in its current state; `scope` is that of the original.

    `renamed` maps names that changed to the original ones;
    `captured` are names that now mean outer values, whatever they meant before.
    `inner` has the branches that were visited, by the position of the If.
    """

    site: Site
    graph: GraphProto
    scope: Scope
    renamed: Mapping[str, str] = field(default_factory=dict)
    captured: frozenset[str] = frozenset()
    outer: NestedGraph | None = None
    inner: dict[int, list[NestedGraph]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        site: Site,
        graph: GraphProto,
        part: str,
        renamed: Mapping[str, str] | None = None,
        captured: Iterable[str] = (),
    ) -> NestedGraph:
        """A graph that the site's node itself holds."""
        key = (*site.scope.key, site.place.index, part)
        scope = Scope("", key, graph, site.scope)
        return cls(site, graph, scope, renamed or {}, frozenset(captured))

    @property
    def is_branch(self) -> bool:
        """True if the graph may not run although the site's body does."""
        return self.outer is not None

    @cached_property
    def returned(self) -> frozenset[str]:
        """The outputs of the graph."""
        return frozenset(scoping.output_names(self.graph))

    @cached_property
    def symbols(self) -> frozenset[str]:
        """The symbolic dims that mean the same in the whole model."""
        if self.outer is not None:
            return self.outer.symbols
        inputs = self.site.model.proto.graph.input
        dims = (dim for value in inputs for dim in value.type.tensor_type.shape.dim)
        return frozenset(dim.dim_param for dim in dims) - {""}

    def branches(self, position: int) -> list[NestedGraph]:
        """The branches of the If at a position."""
        node = self.graph.node[position]
        index = self._as_read.get(tuple(node.output), -1)
        self.inner[position] = [
            NestedGraph(
                self.site,
                graph,
                Scope("", (*self.scope.key, index, part), graph, self.scope),
                self.renamed,
                self.captured,
                self,
            )
            for part, graph in scoping.subgraphs(node)
        ]
        return self.inner[position]

    @cached_property
    def _scope_as_read(self) -> Scope | None:
        """The original graph; None for a new one."""
        scope = self.site.scope
        steps = iter(self.scope.key[len(scope.key) :])
        for index, part in zip(steps, steps, strict=True):
            if index == -1:
                return None
            scope = next(
                inner_scope
                for inner_scope in scope.inner(int(index))
                if inner_scope.key[-1] == part
            )
        return scope

    @cached_property
    def _as_read(self) -> dict[tuple[str, ...], int]:
        """The positions of the nodes in the original graph; empty for a new one."""
        owner = self._scope_as_read.owner if self._scope_as_read is not None else GraphProto()
        return {tuple(node.output): position for position, node in enumerate(owner.node)}

    def type_of(self, name: str) -> TypeProto | None:
        """The type of a value as seen from the graph; None if it is unknown."""
        if name in self.captured:
            return self.site.type_of(name)
        known = _moved(self.site).get(name)
        return known or self.site.types.of(self.scope, self.renamed.get(name, name))

    def dims_of(self, name: str) -> Dims | None:
        """The dims of a value; None where the rank is unknown."""
        return dims_of(self.type_of(name))

    def proven_dims(self, name: str) -> Dims | None:
        """Return the dims of a value in which one symbol means only sizes that are proven, or
        assumed, to be equal; nothing is proven about values moved in this round."""
        dims = self.dims_of(name)
        if self.site.assumes("valid-inputs"):
            return dims
        scope = self.site.scope if name in self.captured else self._scope_as_read
        proven = scope and self._integers.proven_dims(scope, self.renamed.get(name, name))
        if dims is None or not proven or len(proven) != len(dims):
            return dims and tuple(dim if isinstance(dim, int) else None for dim in dims)
        return tuple(
            dim if isinstance(dim, int) else size for dim, size in zip(dims, proven, strict=True)
        )

    @cached_property
    def _integers(self) -> Integers:
        return self.outer._integers if self.outer is not None else Integers(self.site)

    def constant(self, name: str) -> Array | None:
        """The value of a small constant, else None."""
        return Constants(self.site.model, self.scope).value(name)

    def size_of(self, name: str) -> int:
        """The bytes of a value, with unknown dims counted as 1; 0 if it is not a tensor."""
        known = self.type_of(name)
        elem_type = elem_type_of(known)
        if not elem_type:
            return 0
        dims = [dim if isinstance(dim, int) else 1 for dim in dims_of(known) or ()]
        item = int(helper.tensor_dtype_to_np_dtype(elem_type).itemsize)
        return int(np.prod(dims, dtype=np.int64)) * item

    @cached_property
    def known(self) -> Known:
        """The facts about its values from which follows whether a node may fail."""
        dims, constant = self.as_here(self.proven_dims), self.as_here(self.constant)
        return Known(self.site.opset, dims, constant, type_of=self.as_here(self.type_of))

    def as_here(self, read: Callable[[str], _T | None]) -> Callable[[str], _T | None]:
        """Return a look-up of facts by name that leaves out names that bodies in the graph define:
        there, they mean other values."""
        return lambda name: None if name in self._defined_below else read(name)

    @cached_property
    def _defined_below(self) -> frozenset[str]:
        bodies = [body for node in self.graph.node for _, body in scoping.subgraphs(node)]
        below = (owner for body in bodies for owner in scoping.graphs_below(body))
        return frozenset(name for owner in below for name in scoping.defined(owner))

    def cannot_fail(self, node: NodeProto) -> bool:
        """Return whether a node without bodies may run on whatever it would read."""
        return not scoping.holds_graphs(node) and may_run_unreached(node, self.known)

    def may_go(self, node: NodeProto) -> bool:
        """Return whether a node without bodies that nothing reads may go."""
        return not scoping.holds_graphs(node) and may_go(node, self.known)


def typed(site: Site) -> bool:
    """Return whether the graph around a site may declare types: functions may from IR 10 on."""
    old = site.model.proto.ir_version < FUNCTIONS_HAVE_TYPES
    return not (old and isinstance(site.scope.owner, FunctionProto))


def collects_strings(site: Site, form: LoopForm) -> bool:
    """Return whether a Loop collects strings.

    onnxruntime moves these out of what the body returns, and so out of an outer value that an
    Identity copies: no string may move out of such a Loop.
    """
    outputs = (site.body_type_of("body", collected.body_output) for collected in form.collected)
    return form.kind is Kind.LOOP and TensorProto.STRING in map(elem_type_of, outputs)
