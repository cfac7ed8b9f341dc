"""Moves products that are computed before a loop into its body, where cells are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from onnx import GraphProto, NodeProto, helper

from passes.analysis.bodies.context import context_of
from passes.analysis.integers.integers import Integers
from passes.bodies.time_body import TimeBody
from passes.ir.attributes import attribute, attributes, has_references, number
from passes.ir.operators import Registry, called_key, op_of
from passes.ir.protos import copied, replace_all
from passes.loops.form import Scanned
from passes.rule import Edit
from passes.types.value_types import dims_of, elem_type_of
from passes.writing.author import Author

_DEEPEST = 32
#: Writes a row of what each operator computes, and returns its name.
_STEPS: Registry[Callable[[_Rows, NodeProto, str, int, int], str | None]] = Registry()


@dataclass(frozen=True)
class ProductsInside:
    """A loop whose body computes the products of what it scans. `nodes` are those that computed
    them before it, by their outputs."""

    original: TimeBody
    body: TimeBody
    nodes: Mapping[str, NodeProto]

    @classmethod
    def of(cls, body: TimeBody) -> ProductsInside | None:
        """The loop, or None where no product of one scanned tensor is computed before it."""
        site, form = body.site, body.form
        if site.opset != site.target:
            return None
        author = Author(site.target, site.names, f"{site.node.name or 'scan'}/inside")
        rows = _Rows(body, author, Integers(site))
        kept: list[Scanned] = []
        for scanned in form.scanned:
            rank = len(dims_of(site.type_of(scanned.tensor)) or ())
            row = rows.product(scanned.tensor, scanned.axis % rank) if rank else None
            if row is None:
                kept.append(scanned)
                continue
            author.op("Identity", row, outputs=[scanned.body_input])
            rows.reversed.add(scanned.reversed)
        if len(rows.bases) != 1 or len(rows.reversed) != 1:
            return None
        ((tensor, axis),) = rows.bases
        new = Scanned(tensor, rows.bases[tensor, axis], axis, *rows.reversed)
        graph = GraphProto()
        graph.CopyFrom(form.body)
        replace_all(graph.node, [*author.nodes, *form.body.node])
        graph.initializer.extend(author.constants)
        graph.input.append(helper.make_empty_tensor_value_info(new.body_input))
        node = replace(form, body=graph, scanned=(new, *kept)).to_node()
        inside = TimeBody.of(replace(site, place=replace(site.place, node=node)))
        return cls(body, inside, rows.nodes)

    def edit(self, edit: Edit) -> Edit:
        """The Edit of the loop with the products inside, as one of the loop as it is."""
        site = self.original.site
        gone = {site.place.index}
        for name in reversed(list(self.nodes)):
            place = site.graph.positions.get(name, -1)
            outputs = self.nodes[name].output
            readers = {one for output in outputs for one in site.graph.readers.get(output, ())}
            if place >= 0 and readers <= gone:
                gone.add(place)
        covered = tuple(sorted(gone - {site.place.index}))
        known = {*self.nodes, *(name for node in edit.context for name in node.output)}
        return replace(edit, covered=covered, context=context_of(site, is_known=known.__contains__))


@dataclass
class _Rows:
    """Writes one row of tensors, along an axis, in the body; `bases` are the tensors and axes that
    are scanned instead, with the names of their rows."""

    body: TimeBody
    author: Author
    integers: Integers
    bases: dict[tuple[str, int], str] = field(default_factory=dict)
    nodes: dict[str, NodeProto] = field(default_factory=dict)
    reversed: set[bool] = field(default_factory=set)
    _written: dict[tuple[str, int], str | None] = field(default_factory=dict)

    def product(self, name: str, axis: int, depth: int = 0) -> str | None:
        """A row of a product, perhaps with a bias, or of a part of it; None of another tensor."""
        if (name, axis) not in self._written:
            self._written[name, axis] = None
            node = self.integers.producer(name)
            step = _STEPS.get(op_of(node)) if node else None
            if node and step and depth <= _DEEPEST and self._is_plain(node, name):
                self._written[name, axis] = step(self, node, name, axis, depth + 1)
                if self._written[name, axis]:
                    self.nodes.update(dict.fromkeys(node.output, node))
        return self._written[name, axis]

    def base(self, name: str, axis: int) -> str:
        """A row of what is multiplied."""
        return self.bases.setdefault((name, axis), self.author.fresh("row"))

    def rank(self, name: str) -> int:
        """The number of axes of a tensor, 0 where it is unknown."""
        return len(dims_of(self.body.site.type_of(name)) or ())

    def _is_plain(self, node: NodeProto, name: str) -> bool:
        plain = not has_references(node) and called_key(node) not in self.body.functions
        return plain and self.integers.same_meaning(node, name)


@_STEPS.enter("Cast", "Identity")
def _copied(rows: _Rows, node: NodeProto, name: str, axis: int, depth: int) -> str | None:
    types = [elem_type_of(rows.body.site.type_of(one)) for one in (name, node.input[0])]
    return rows.product(node.input[0], axis, depth) if types[0] == types[1] != 0 else None


@_STEPS.enter("MatMul")
def _multiplied(rows: _Rows, node: NodeProto, name: str, axis: int, depth: int) -> str | None:
    """A row of a MatMul with a matrix."""
    first, second = node.input
    ranks, rank = (rows.rank(first), rows.rank(second)), rows.rank(name)
    if ranks == (rank, 2) and axis <= rank - 2:
        return rows.author.op("MatMul", rows.base(first, axis), second)
    if ranks == (2, rank) and axis != rank - 2:
        return rows.author.op("MatMul", first, rows.base(second, axis))
    return None


@_STEPS.enter("Gemm")
def _gemm(rows: _Rows, node: NodeProto, name: str, axis: int, depth: int) -> str | None:
    """A row of a Gemm, which is a vector."""
    x, weight, addend = [*node.input, ""][:3]
    bias = _without_axis(rows, addend, 2, 0) if addend else ""
    if axis != 0 or bias is None or {number(node, key, 1.0) for key in ("alpha", "beta")} != {1.0}:
        return None
    if attribute(node, "transB", 0):
        weight = rows.author.op("Transpose", weight, perm=[1, 0])
    row = rows.author.op("MatMul", rows.base(x, attribute(node, "transA", 0)), weight)
    return rows.author.op("Add", row, bias) if bias else row


@_STEPS.enter("Add")
def _added(rows: _Rows, node: NodeProto, name: str, axis: int, depth: int) -> str | None:
    """A row of a sum with what is the same in each."""
    rank = rows.rank(name)
    for one, other in (node.input, reversed(node.input)):
        bias = _without_axis(rows, other, rank, axis) if rows.rank(one) == rank else None
        row = rows.product(one, axis, depth) if bias else None
        if row and bias:
            return rows.author.op("Add", row, bias)
    return None


def _without_axis(rows: _Rows, name: str, rank: int, axis: int) -> str | None:
    """An addend of a tensor of that rank, that is the same along an axis, as an addend of a row."""
    dims, site = dims_of(rows.body.site.type_of(name)), rows.body.site
    if dims is None:
        return None
    place = axis - (rank - len(dims))
    if place < 0:
        return name
    fixed = site.constant(name)
    if dims[place] != 1 or fixed is None:
        return None
    return rows.author.value(np.squeeze(fixed, place), "bias")


@_STEPS.enter("Slice", "Split")
def _part(rows: _Rows, node: NodeProto, name: str, axis: int, depth: int) -> str | None:
    """A row of a part along another axis, of a Split or a Slice."""
    rank, again = rows.rank(node.input[0]), copied(node)
    given = list(node.input)[3:4] if op_of(node) == "Slice" else []
    axes = rows.body.site.constant(given[0]) if given and given[0] else None
    found = [attribute(node, "axis", 0)] if op_of(node) == "Split" else axes
    along = [int(one) % rank for one in found] if rank and found is not None else [axis]
    row = None if axis in along else rows.product(node.input[0], axis, depth)
    if row is None:
        return None
    again.input[0] = row
    if given:
        again.input[3] = rows.author.ints(*_moved(along, axis))
    else:
        kept = [one for one in node.attribute if one.name != "axis"]
        replace_all(again.attribute, [*kept, helper.make_attribute("axis", _moved(along, axis)[0])])
    replace_all(again.output, [rows.author.fresh(one) for one in node.output])
    rows.author.adopt([again])
    outputs = dict(zip(node.output, again.output, strict=True))
    rows._written.update({(one, axis): new for one, new in outputs.items()})
    return outputs[name]


@_STEPS.enter("Transpose")
def _transposed(rows: _Rows, node: NodeProto, name: str, axis: int, depth: int) -> str | None:
    """A row of a tensor with its axes in another order."""
    perm = attributes(node, "perm") or list(reversed(range(rows.rank(name))))
    row = rows.product(node.input[0], perm[axis], depth) if len(perm) > axis else None
    order = _moved([one for one in perm if one != perm[axis]], perm[axis])
    if row is None or order == sorted(order):
        return row
    return rows.author.op("Transpose", row, perm=order)


def _moved(axes: Sequence[int], without: int) -> list[int]:
    """The axes of a row, in a tensor with one axis more."""
    return [one - (one > without) for one in axes]
