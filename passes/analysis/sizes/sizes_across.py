"""Sizes across the border of a body: of its inputs, and of outputs of loops and branches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from onnx import NodeProto

from passes.analysis.integers.affine import Affine, single_of
from passes.analysis.integers.integer_ops import Reading, is_settled
from passes.analysis.safety.randomness import is_pure
from passes.analysis.trip_count.conditions import never_ends, starts_always
from passes.errors import BadModel
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.ir.scope import Place, Scope
from passes.ir.site import Site
from passes.loops.form import Carried, Kind, LoopForm

_LOOPS = ("Loop", "Scan")


@dataclass(frozen=True)
class Across:
    """Follows sizes into and out of bodies; `read` returns the facts that a scope sees."""

    site: Site
    read: Callable[[Scope], Reading]

    def size(self, scope: Scope, name: str, axis: int) -> Affine | None:
        """The size of an axis of what a name means in a scope."""
        return self.read(scope).size(name, axis)

    def number(self, scope: Scope, name: str) -> Affine | None:
        """The single integer that a value holds."""
        return single_of(self.read(scope).ints(name))

    def inwards(self, home: Scope, name: str, axis: int) -> Affine | None:
        """The size of an axis of the body input `name`, in every iteration."""
        fed = fed_by(self.site, home, name)
        if fed is None or fed.along is None:
            return None if fed is None else self.size(fed.scope, fed.tensor, axis)
        along = self._axis(fed.scope, fed.tensor, fed.along)
        return None if along is None else self.size(fed.scope, fed.tensor, axis + (axis >= along))

    def outwards(self, home: Scope, node: NodeProto, name: str, axis: int) -> Affine | None:
        """The size of an axis of the output `name` of a loop or an If."""
        index = self.site.model.index(home.owner).positions.get(name)
        if index is None or not is_pure(node):  # an impure node may return another size
            return None
        if op_of(node) == "If":
            return self._chosen(home, index, list(node.output).index(name), axis)
        form = _form(self.site, home, node)
        if form is None:
            return None
        body = next(scope for scope in home.inner(index) if scope.key[-1] == "body")
        for carried in form.carried:
            if carried.final == name:
                kept = form.kind is Kind.SCAN or _hands_on(self.site, body, carried)
                return self.size(home, carried.initial, axis) if kept else None
        collected = next(collected for collected in form.collected if collected.tensor == name)
        if axis != self._axis(home, name, collected.axis):
            return None  # without iterations, it is unknown
        return self._trips(home, index, form)

    def _axis(self, scope: Scope, name: str, axis: int) -> int | None:
        """An axis, counted from the front."""
        rank = self.read(scope).rank(name) if axis < 0 else None
        return axis if axis >= 0 else None if rank is None else axis + rank

    def _trips(self, home: Scope, index: int, form: LoopForm) -> Affine | None:
        """The trip count of a loop, which must be the length of each scanned input."""
        if form.kind is Kind.SCAN:
            sizes = (self.size(home, scanned.tensor, scanned.axis) for scanned in form.scanned)
            return next((size for size in sizes if size is not None), None)
        site = replace(self.site, place=Place(home.owner.node[index], index, home))
        if not form.trip_count or not (starts_always(site, form) and never_ends(site, form)):
            return None
        count = self.number(home, form.trip_count)
        return count if count is not None and count.at_least(0) else None

    def _chosen(self, home: Scope, index: int, output: int, axis: int) -> Affine | None:
        """The size that both branches return, or that is 0 where the branch that returns 0 runs."""
        branches = {str(scope.key[-1]): scope for scope in home.inner(index)}
        some, none = (
            self.size(branches[name], scoping.output_names(branches[name].owner)[output], axis)
            for name in ("then_branch", "else_branch")
        )
        if some is None or none is None or some == none:
            return some if none is not None else None
        zero = self._zero_otherwise(home, home.owner.node[index].input[0])
        return some if zero is not None and some - none in (zero, zero.times(-1)) else None

    def _zero_otherwise(self, home: Scope, condition: str) -> Affine | None:
        """A number that is 0 wherever a condition fails that compares it with 0."""
        test = self.site.model.visible_producer(home, condition)
        if test is None or op_of(test) != "Greater":
            return None
        count, bound = (self.number(home, name) for name in test.input)
        compared = count is not None and bound is not None and bound.number == 0
        return count if compared and count is not None and count.at_least(0) else None


@dataclass(frozen=True)
class Fed:
    """The source of a body input: `tensor` itself, or a slice of it `along` an axis, from
    `scope`."""

    scope: Scope
    tensor: str
    along: int | None = None


def fed_by(site: Site, home: Scope, name: str) -> Fed | None:
    """Return the source of a body input in every iteration; None if it varies."""
    holder = home.holder
    if holder is None or name not in site.model.index(home.owner).inputs:
        return None
    form = _form(site, holder.scope, holder.node)
    if form is None:
        return None
    for scanned in form.scanned:
        if scanned.body_input == name:
            return Fed(holder.scope, scanned.tensor, scanned.axis)
    for carried in form.carried:
        if carried.body_input == name and _hands_on(site, home, carried):
            return Fed(holder.scope, carried.initial)
    return None


def _hands_on(site: Site, body: Scope, carried: Carried) -> bool:
    """Return whether every iteration passes a carried value on unchanged."""
    return site.model.index(body.owner).source(carried.body_output) == carried.body_input


def _form(site: Site, home: Scope, node: NodeProto) -> LoopForm | None:
    """The form of a loop; None where the node is none, or a Scan-8, whose rows may end early."""
    if op_of(node) not in _LOOPS or not is_settled(node):
        return None
    try:
        form = LoopForm.from_node(node, site.model.opset_at(home))
    except BadModel:
        return None
    return None if form.kind is Kind.SCAN_8 else form
