"""The graphs that nodes may leave: a body and the branches in it, with what is known of values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from onnx import FunctionProto, GraphProto, NodeProto, TensorProto, TypeProto, helper

from passes.analysis.integers.folding import Array
from passes.analysis.integers.integers import Integers
from passes.analysis.safety.shape_checks import Reading
from passes.analysis.safety.shapes_fit import fits
from passes.analysis.safety.speculation import speculatable
from passes.ir import scope as scoping
from passes.ir.constants import Constants
from passes.ir.operators import op_of
from passes.ir.scope import Scope
from passes.loops.form import Kind, LoopForm
from passes.rule import Site
from passes.types.value_types import Dims, dims_of, elem_type_of


def remember(site: Site, name: str, known: TypeProto | None) -> None:
    """Note the type of a value under its new name, for rules that meet it in this round."""
    if known is not None:
        _moved(site)[name] = known


def _moved(site: Site) -> dict[str, TypeProto]:
    """Types of values that rewrites of this round moved: the types as read do not know where they
    are."""
    return site.memory.once("moved types", dict)


_FUNCTIONS_HAVE_TYPES = 10


@dataclass(frozen=True)
class NestedGraph:
    """A graph below a site's node, as it is now; `scope` says where it was as it was read.

    `renamed` says what values were called then, where that is not what they are called now;
    `captured` are names that mean outer values now, whatever they meant then.
    `inner` has the branches that were looked into, by the position of the If.
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
        """Whether the graph may not run although the site's body does."""
        return self.outer is not None

    @cached_property
    def returned(self) -> frozenset[str]:
        """What the graph returns."""
        return frozenset(scoping.output_names(self.graph))

    @cached_property
    def symbols(self) -> frozenset[str]:
        """The symbolic dims that mean the same in the whole model."""
        if self.outer is not None:
            return self.outer.symbols
        inputs = self.site.model.proto.graph.input
        dims = (dim for one in inputs for dim in one.type.tensor_type.shape.dim)
        return frozenset(dim.dim_param for dim in dims) - {""}

    def branches(self, position: int) -> list[NestedGraph]:
        """The branches of the If at a position."""
        node = self.graph.node[position]
        at = self._as_read.get(tuple(node.output), -1)
        self.inner[position] = [
            NestedGraph(
                self.site,
                graph,
                Scope("", (*self.scope.key, at, part), graph, self.scope),
                self.renamed,
                self.captured,
                self,
            )
            for part, graph in scoping.subgraphs(node)
        ]
        return self.inner[position]

    @cached_property
    def _scope_as_read(self) -> Scope | None:
        """The graph as it was read; None if it is a new one."""
        scope = self.site.scope
        steps = iter(self.scope.key[len(scope.key) :])
        for index, part in zip(steps, steps, strict=True):
            if index == -1:
                return None
            scope = next(one for one in scope.inner(int(index)) if one.key[-1] == part)
        return scope

    @cached_property
    def _as_read(self) -> dict[tuple[str, ...], int]:
        """The positions of the nodes in the graph as it was read; empty if it is a new one."""
        owner = self._scope_as_read.owner if self._scope_as_read is not None else GraphProto()
        return {tuple(node.output): at for at, node in enumerate(owner.node)}

    def type_of(self, name: str) -> TypeProto | None:
        """The type of a value as seen from the graph, None where nothing tells it."""
        if name in self.captured:
            return self.site.type_of(name)
        known = _moved(self.site).get(name)
        return known or self.site.types.of(self.scope, self.renamed.get(name, name))

    def dims_of(self, name: str) -> Dims | None:
        """The dims of a value, None where the rank is unknown."""
        return dims_of(self.type_of(name))

    def proven_dims(self, name: str) -> Dims | None:
        """The dims of a value, of which only those have one symbol that are proven to be one size,
        or vouched for; of what was moved in this round, nothing is proven."""
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
        """The value of what is fixed and small, else None."""
        return Constants(self.site.model, self.scope).value(name)

    def size_of(self, name: str) -> int:
        """The bytes of a value, as if dims that are not known were 1; 0 for no tensors."""
        known = self.type_of(name)
        elem_type = elem_type_of(known)
        if not elem_type:
            return 0
        dims = [dim if isinstance(dim, int) else 1 for dim in dims_of(known) or ()]
        return int(np.prod(dims, dtype=np.int64)) * _item_size(elem_type)

    def cannot_fail(self, node: NodeProto) -> bool:
        """Whether a node may run where the original may not have: on whatever it would read."""
        if scoping.holds_graphs(node):
            return False
        known = {name: self.type_of(name) for name in node.input if name}
        types = {name: one for name, one in known.items() if one is not None}
        if op_of(node) in ("Cast", "CastLike") and len(types) < len(known):
            return False  # of a string, it may fail
        if not fits(node, Reading(self.site.opset, self.proven_dims, self.constant)):
            return False
        if op_of(node) == "Gather":
            return True  # within the bounds, as its index is fixed
        constants = Constants(self.site.model, self.scope)
        fixed = [name for name in node.input if name and constants.tensor(name) is not None]
        alone = GraphProto()
        alone.node.append(node)
        return not speculatable(alone, fixed, types)

    def may_go(self, node: NodeProto) -> bool:
        """Whether a node that nobody reads may go, since it cannot fail: also one that counts, of
        which only the run tells how far."""
        return self.cannot_fail(node) or self._counts(node)

    def _counts(self, node: NodeProto) -> bool:
        """Whether a node is a Range of whole numbers in fixed steps."""
        if op_of(node) != "Range":
            return False
        step = self.constant(node.input[2])
        whole = step is not None and step.dtype.kind == "i" and bool(np.all(step != 0))
        return whole and all(self.dims_of(name) == () for name in node.input)


def typed(site: Site) -> bool:
    """Whether the graph around a site may say types: functions do from IR 10 on."""
    old = site.model.proto.ir_version < _FUNCTIONS_HAVE_TYPES
    return not (old and isinstance(site.scope.owner, FunctionProto))


def collects_strings(site: Site, form: LoopForm) -> bool:
    """Whether a Loop collects strings.

    onnxruntime moves these out of what the body returns, and so out of an outer value that an
    Identity hands on: in such a Loop, no string may come to stand outside.
    """
    outputs = (site.body_type_of("body", one.body_output) for one in form.collected)
    return form.kind is Kind.LOOP and TensorProto.STRING in map(elem_type_of, outputs)


def _item_size(elem_type: int) -> int:
    return int(helper.tensor_dtype_to_np_dtype(elem_type).itemsize)
