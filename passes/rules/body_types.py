"""Types in the body of a Loop, and which carried values keep theirs in every iteration."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import onnx
from onnx import FunctionProto, GraphProto, ModelProto, TensorProto, TypeProto, helper

from passes.loop_form import Carried, LoopForm
from passes.rule import Site
from passes.rules.affine import Affine, Atom
from passes.rules.integers import Integers
from passes.rules.iteration_reads import Read
from passes.shape_inference import infer_shapes
from passes.value_types import Dim, dims_of, elem_type_of, tensor_type

Dims = tuple[Dim, ...]
_MOST_ROUNDS = 16
_LARGE = 1 << 10  # elements; inference needs no constant larger than a shape


@dataclass(frozen=True)
class Change:
    """A carried value whose shape is not the same before and after an iteration."""

    before: Dims | None
    after: Dims | None

    @property
    def known(self) -> bool:
        """Whether the shapes surely differ: in rank, or in a number."""
        if self.before is None or self.after is None:
            return False
        if len(self.before) != len(self.after):
            return True
        return any(
            isinstance(one, int) and isinstance(other, int) and one != other
            for one, other in zip(self.before, self.after, strict=True)
        )


@dataclass(frozen=True)
class BodyTypes:
    """The types that hold in every iteration, by name, and the carried values that change."""

    types: Mapping[str, TypeProto]
    changes: Mapping[str, Change]
    invariant: frozenset[Dim]  # symbols that are the same size in every iteration
    sizes: Mapping[Dim, Atom]  # what some of them are the sizes of

    def elem_type(self, name: str) -> int:
        """The element type of a value of the body, 0 where it is not known."""
        return elem_type_of(self.types.get(name))

    def dims(self, name: str) -> Dims | None:
        """The dims of a value of the body."""
        return dims_of(self.types.get(name))


def body_types(
    site: Site, form: LoopForm, reads: Sequence[Read], checked: Collection[str] = ()
) -> BodyTypes:
    """Infer the body until the shapes of the carried values change no more.

    The slices that iterations read are known better than inference could tell. The shapes of
    `checked` carried values (body inputs) are compared when the model runs.

    A dim that one iteration changes is widened to a size that nothing is known of, and the body
    inferred again, since other shapes may depend on it.
    """
    inference = _Inference(site, form, reads, Integers(site))
    dims = {one.body_input: inference.first(one) for one in form.carried}
    changes: dict[str, Change] = {}
    for _ in range(_MOST_ROUNDS):
        types = inference.run(dims)
        widened = False
        for one in form.carried:
            before, after = dims[one.body_input], dims_of(types.get(one.body_output))
            if before is not None and (before == after or one.body_input in checked):
                continue
            if inference.declared_alike(one) and not _differ(before, after):
                continue
            changes.setdefault(one.body_input, Change(before, after))
            wider = inference.widen(one.body_input, before, after)
            widened |= wider != before
            dims[one.body_input] = wider
        if not widened:
            break
    stable = [dims[one.body_input] for one in form.carried if one.body_input not in changes]
    given = [inference.outer(name) for name in form.captured]
    known = {dim for shape in (*stable, *given) for dim in shape or () if isinstance(dim, str)}
    return BodyTypes(types, changes, frozenset(known), inference.sizes)


def _differ(before: Dims | None, after: Dims | None) -> bool:
    """Whether two shapes surely differ: in rank, or in a size."""
    if before is None or after is None:
        return False
    if len(before) != len(after):
        return True
    return any(
        one != other and _is_told(one) and _is_told(other)
        for one, other in zip(before, after, strict=True)
    )


def _is_told(dim: Dim) -> bool:
    """Whether a dim is a number, or the size of an axis that is known to be another one."""
    return isinstance(dim, int) or (dim is not None and not dim.startswith((_WIDE, _INFERRED)))


def _forget_symbols(type_proto: TypeProto) -> None:
    """Leave the sizes that a declaration fixes."""
    if type_proto.WhichOneof("value") == "tensor_type":
        for dim in type_proto.tensor_type.shape.dim:
            dim.ClearField("dim_param")


def _symbol(size: Affine | None) -> Dim:
    """The symbol, or the number, that a size is."""
    if size is None:
        return None
    if size.number is not None:
        return size.number
    return (
        _SIZE
        + repr(sorted((repr(atom.key), count) for atom, count in size.terms))
        + (f" + {size.constant}")
    )


@dataclass(frozen=True)
class _Inference:
    site: Site
    form: LoopForm
    reads: Sequence[Read]
    integers: Integers
    sizes: dict[Dim, Atom] = field(default_factory=dict)

    def first(self, one: Carried) -> Dims | None:
        """The shape before the first iteration, a symbol of its own for each unknown dim."""
        declared = self.declared(one.body_input)
        initial = self.outer(one.initial)
        if initial is None or (declared is not None and len(declared) != len(initial)):
            if declared is None:
                return None
            initial = (None,) * len(declared)
        told = declared or initial
        return tuple(
            said if isinstance(said, int) else dim or f"{_OWN}{one.body_input}.{axis}"
            for axis, (dim, said) in enumerate(zip(initial, told, strict=True))
        )

    def outer(self, name: str) -> Dims | None:
        """The shape of an outer value; a symbol stands for the size of one very axis."""
        dims = dims_of(self.site.type_of(name))
        if dims is None:
            return None
        sizes = [self.integers.size(name, axis) for axis in range(len(dims))]
        shape = tuple(
            dim if isinstance(dim, int) else _symbol(size)
            for dim, size in zip(dims, sizes, strict=True)
        )
        for axis, dim in enumerate(shape):
            if isinstance(dim, str):
                self.sizes.setdefault(dim, Atom(("size", name, axis), name, axis))
        return shape

    def declared(self, name: str) -> Dims | None:
        """What the body itself says of the shape of an input or output."""
        for value in (*self.form.body.input, *self.form.body.output):
            if value.name == name and dims_of(value.type) is not None:
                return dims_of(value.type)
        return None

    def declared_alike(self, one: Carried) -> bool:
        """Whether the model itself says that a shape stays.

        A symbol is a promise, which a run need not keep.
        """
        before, after = self.declared(one.body_input), self.declared(one.body_output)
        promised = "valid-inputs" in self.site.options.get("assume", ())
        told = before is not None and all(
            isinstance(dim, int) or (promised and dim is not None) for dim in before
        )
        return told and before == after

    def widen(self, name: str, before: Dims | None, after: Dims | None) -> Dims | None:
        """The shape that both are, with new symbols for the dims that differ."""
        if before is None or after is None or len(before) != len(after):
            return None
        return tuple(
            one if one == other else f"{_WIDE}{name}.{axis}"
            for axis, (one, other) in enumerate(zip(before, after, strict=True))
        )

    def run(self, carried: Mapping[str, Dims | None]) -> dict[str, TypeProto]:
        """Infer the body with these shapes of its carried values."""
        model = self._model(carried)
        try:
            graph = infer_shapes(model).graph
        except (RuntimeError, ValueError, onnx.checker.ValidationError):
            graph = model.graph
        values = (*graph.value_info, *graph.output, *graph.input)
        types = {value.name: value.type for value in values}
        for tensor in graph.initializer:
            types[tensor.name] = tensor_type(tensor.data_type, tuple(tensor.dims))
        return types

    def _model(self, carried: Mapping[str, Dims | None]) -> ModelProto:
        form, site = self.form, self.site
        (*_, top) = site.scope.chain()
        imports = top.owner if isinstance(top.owner, FunctionProto) else site.model.proto
        model = ModelProto(
            ir_version=max(4, site.model.proto.ir_version), opset_import=imports.opset_import
        )
        model.functions.extend(site.model.proto.functions)
        graph = model.graph
        graph.CopyFrom(form.body)
        for value in (*graph.output, *graph.value_info):
            _forget_symbols(value.type)
        del graph.input[:]
        self._feed(graph, carried)
        self._feed_slices(graph)
        for name in form.captured:
            self._capture(graph, name)
        return model

    def _feed(self, graph: GraphProto, carried: Mapping[str, Dims | None]) -> None:
        assert self.form.condition is not None
        scalar: Sequence[tuple[str, int]] = (
            (self.form.iteration, TensorProto.INT64),
            (self.form.condition.body_input, TensorProto.BOOL),
        )
        for name, elem_type in scalar:
            graph.input.append(helper.make_value_info(name, tensor_type(elem_type, ())))
        for one in self.form.carried:
            value = graph.input.add(name=one.body_input)
            known = self.site.type_of(one.initial)
            if known is not None and elem_type_of(known):
                dims = carried[one.body_input]
                value.type.CopyFrom(tensor_type(elem_type_of(known), dims))
            elif known is not None:
                value.type.CopyFrom(known)

    def _feed_slices(self, graph: GraphProto) -> None:
        """Let the slices be inputs, in the place of the nodes that read them."""
        gone = {position for read in self.reads for position in read.nodes}
        kept = [node for position, node in enumerate(graph.node) if position not in gone]
        del graph.node[:]
        graph.node.extend(kept)
        for read in self.reads:
            dims = list(self.outer(read.tensor) or ())
            dims[read.axis : read.axis + 1] = [1] if read.kept_axis else []
            elem_type = elem_type_of(self.site.type_of(read.tensor))
            for name in read.results:
                graph.input.append(
                    helper.make_value_info(name, tensor_type(elem_type, tuple(dims)))
                )

    def _capture(self, graph: GraphProto, name: str) -> None:
        fixed = self.site.constant(name)
        if fixed is not None and fixed.size <= _LARGE:
            tensor = onnx.numpy_helper.from_array(fixed, name)
            graph.initializer.append(tensor)
            return
        value = graph.input.add(name=name)
        known = self.site.type_of(name)
        if known is not None:
            value.type.CopyFrom(known)
        if elem_type_of(known):
            value.type.CopyFrom(tensor_type(elem_type_of(known), self.outer(name)))


_OWN, _WIDE, _INFERRED, _SIZE = "own size of ", "changed size of ", "unk__", "size "


def without_made_up(dims: Dims) -> Dims:
    """A shape without the symbols that only the inference of a body knows."""
    made = (_OWN, _WIDE, _INFERRED, _SIZE)
    return tuple(None if isinstance(dim, str) and dim.startswith(made) else dim for dim in dims)
