"""Infers the types in the body of a Loop from those of what it carries, reads and captures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from onnx import GraphProto, ModelProto, TypeProto, helper

from passes.analysis.bodies.iteration_reads import Read
from passes.analysis.integers.affine import Atom
from passes.analysis.integers.integers import Integers
from passes.analysis.sizes.made_up_sizes import changed_size, own_size, size_symbol
from passes.analysis.sizes.whole_axes import forget_whole_axes
from passes.ir.boundary import Outer, close
from passes.ir.model import Model
from passes.ir.places import imports_of, scopes
from passes.ir.protos import drop_at
from passes.loops.form import Carried, LoopForm
from passes.rule import Site
from passes.types.type_tables import TypeTable, inferred
from passes.types.value_types import INFERRED, Dim, Dims, dims_of, elem_type_of, tensor_type

_LARGE = 1 << 10  # elements; inference needs no constant larger than a shape


@dataclass(frozen=True)
class BodyInference:
    """The body of a Loop as a standalone model, which can be inferred repeatedly.

    `sizes` maps symbols of outer sizes to their meaning. `promised`: what the model declares
    with one symbol is assumed to be one size. `declaring`: the numbers that the body declares are
    taken for sizes, which a runtime need not enforce in a Loop.
    """

    site: Site
    form: LoopForm
    reads: Sequence[Read]
    integers: Integers
    sizes: dict[Dim, Atom] = field(default_factory=dict)
    promised: bool = False
    declaring: bool = True

    def first(self, carried: Carried) -> Dims | None:
        """The shape before the first iteration, a symbol of its own for each unknown dim."""
        declared = self.declared(carried.body_input)
        initial = self.outer(carried.initial)
        if initial is None or (declared is not None and len(declared) != len(initial)):
            if declared is None:
                return None
            initial = (None,) * len(declared)
        known = (self.declaring and declared) or initial
        return tuple(
            size if isinstance(size, int) else dim or own_size(carried.body_input, axis)
            for axis, (dim, size) in enumerate(zip(initial, known, strict=True))
        )

    def outer(self, name: str) -> Dims | None:
        """Return the shape of an outer value; a symbol means the size of one particular axis."""
        dims = dims_of(self.site.type_of(name))
        if dims is None or self.promised:
            return dims
        sizes = [self.integers.size(name, axis) for axis in range(len(dims))]
        shape = tuple(
            dim if isinstance(dim, int) else size_symbol(size)
            for dim, size in zip(dims, sizes, strict=True)
        )
        for axis, dim in enumerate(shape):
            if isinstance(dim, str):
                self.sizes.setdefault(dim, Atom(("size", name, axis), name, axis))
        return shape

    def declared(self, name: str) -> Dims | None:
        """The shape that the body itself declares for an input or output."""
        for value in (*self.form.body.input, *self.form.body.output):
            if value.name == name and dims_of(value.type) is not None:
                return dims_of(value.type)
        return None

    def declared_alike(self, carried: Carried) -> bool:
        """Return whether the body itself declares that a shape stays the same."""
        before = self.declared(carried.body_input)
        known = before is not None and None not in before
        return known and before == self.declared(carried.body_output)

    def only_promised(self, carried: Carried) -> bool:
        """Return whether it does so with symbols, without `--assume valid-inputs`."""
        assumed = self.site.assumes("valid-inputs")
        return not assumed and any(
            isinstance(dim, str) for dim in self.declared(carried.body_input) or ()
        )

    def widen(self, name: str, before: Dims | None, after: Dims | None) -> Dims | None:
        """A shape that covers both, with new symbols for the dims that differ."""
        if before is None or after is None or len(before) != len(after):
            return None
        return tuple(
            old if old == new else changed_size(name, axis)
            for axis, (old, new) in enumerate(zip(before, after, strict=True))
        )

    def run(self, carried: Mapping[str, Dims | None]) -> dict[str, TypeProto]:
        """Infer the body with these shapes of its carried values.

        What onnx leaves open of those after the iteration is followed further: its Slice with
        computed bounds has no known size, on no axis.
        """
        model = Model(inferred(self._model(carried)))
        known = TypeTable(model.proto.graph).known
        after = {state.body_output for state in self.form.carried}
        open_ = {name: dims for name in after if _is_open(dims := dims_of(known.get(name)))}
        if not open_:
            return known
        integers = Integers(Site.of_graph(model, next(scopes(model.proto))))
        given = (
            (integers.size(value.name, axis), dim)
            for value in model.proto.graph.input
            for axis, dim in enumerate(dims_of(value.type) or ())
        )
        symbols = {size: dim for size, dim in given if isinstance(dim, str)}
        for name, dims in open_.items():
            sizes = [(dim, integers.size(name, axis)) for axis, dim in enumerate(dims)]
            shape = [
                symbols.get(size, dim) if size is None or size.number is None else size.number
                for dim, size in sizes
            ]
            known[name] = tensor_type(elem_type_of(known[name]), tuple(shape))
        return known

    def _model(self, carried: Mapping[str, Dims | None]) -> ModelProto:
        form, site = self.form, self.site
        proto = site.model.proto
        model = ModelProto(
            ir_version=max(4, proto.ir_version),
            opset_import=imports_of(proto, site.scope.outermost.owner),
            functions=proto.functions,
            graph=form.body,
        )
        graph = model.graph
        for value in (*graph.output, *graph.value_info):
            _forget_sizes(value.type, numbers=not self.declaring)
        del graph.input[:]
        self._feed(graph, carried)
        self._feed_slices(graph)
        close(graph, {name: self._captured(name) for name in form.captured})
        forget_whole_axes(graph)
        return model

    def _feed(self, graph: GraphProto, carried: Mapping[str, Dims | None]) -> None:
        form = self.form
        assert form.condition is not None
        head = (form.iteration, form.condition.body_input)
        graph.input.extend(map(helper.make_value_info, head, form.head_types))
        for state in self.form.carried:
            known = self.site.type_of(state.initial)
            if elem_type_of(known):
                known = tensor_type(elem_type_of(known), carried[state.body_input])
            graph.input.add(name=state.body_input, type=known)

    def _feed_slices(self, graph: GraphProto) -> None:
        """Make the slices inputs, in place of the nodes that read them."""
        gone = {position for read in self.reads for position in read.nodes}
        drop_at(graph.node, gone)
        for read in self.reads:
            dims = list(self.outer(read.tensor) or ())
            dims[read.axis : read.axis + 1] = [1] if read.kept_axis else []
            elem_type = elem_type_of(self.site.type_of(read.tensor))
            for name in read.results:
                graph.input.append(
                    helper.make_value_info(name, tensor_type(elem_type, tuple(dims)))
                )

    def _captured(self, name: str) -> Outer:
        known = self.site.outer(name, _LARGE)
        if isinstance(known, TypeProto) and elem_type_of(known):
            return tensor_type(elem_type_of(known), self.outer(name))
        return known


def _is_open(dims: Dims | None) -> TypeGuard[Dims]:
    """Return whether onnx knows the rank, but not all sizes."""
    return any(dim is None or str(dim).startswith(INFERRED) for dim in dims or ())


def _forget_sizes(type_proto: TypeProto, *, numbers: bool) -> None:
    """Remove the symbols from a declared shape, and with `numbers` the sizes, too."""
    if type_proto.WhichOneof("value") == "tensor_type":
        for dim in type_proto.tensor_type.shape.dim:
            dim.ClearField("dim_param")
            if numbers:
                dim.ClearField("dim_value")
