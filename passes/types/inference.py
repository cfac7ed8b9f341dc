"""Types and shapes of values: inferred once per model and looked up by scope and name, and those
that graphs declare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property

from onnx import FunctionProto, GraphProto, ModelProto, TensorProto, TypeProto, ValueInfoProto

from passes.ir import scope as scoping
from passes.ir.lean import constants, with_tensors
from passes.ir.scope import Key, Scope
from passes.ir.versions import FREE_INITIALIZERS
from passes.types.function_types import infer_functions
from passes.types.type_tables import Tables, TypeTable, every_scope, inferred, look_up, tabulate
from passes.types.value_types import Dims, is_static, shapes_below

_LARGE = 1 << 16  # bytes; inference needs no weight larger than a shape


@dataclass
class ValueTypes:
    """Types of the values of one model, in every scope; shape inference runs on first use."""

    model: ModelProto

    def of(self, scope: Scope, name: str) -> TypeProto | None:
        """The type of what `name` means in `scope`; None if it is unknown."""
        return look_up(self._by_scope, scope, name)

    def within(self, scope: Scope, name: str) -> TypeProto | None:
        """The type of what `scope` itself defines as `name`; None if it is unknown."""
        table = self._by_scope.get(scope.key)
        return None if table is None else table.find(name)

    @cached_property
    def elem_types(self) -> Mapping[str, Set[int]]:
        """The element types of tensors, by name: of all that a name means somewhere."""
        found: dict[str, set[int]] = {}
        for table in self._by_scope.values():
            for name, elem_type in table.elem_types():
                found.setdefault(name, set()).add(elem_type)
        return found

    @cached_property
    def _by_scope(self) -> Tables:
        light = light_model(self.model)
        tables: dict[Key, TypeTable] = {}
        tabulate(inferred(light), "main", 0, tables)
        infer_functions(light, tables)
        return tables


def light_model(model: ModelProto, *, has_bodies: bool | None = None) -> ModelProto:
    """A light copy, which must not change; the model itself where it has nothing to leave out.

    `has_bodies`: whether any node has a body, if that is known.
    """
    if has_bodies is None:
        has_bodies = any(
            scoping.holds_graphs(n) for _, top in scoping.owners(model) for n in top.node
        )
    whole = not has_bodies and not model.training_info
    defaults = scoping.input_names(model.graph) if model.ir_version >= FREE_INITIALIZERS else []
    if not whole or any(tensor.name in defaults for tensor in model.graph.initializer):
        return light_copy(model)
    return (
        model
        if all(one.ByteSize() <= _LARGE for one in constants(model.graph))
        else light_copy(model)
    )


def light_copy(model: ModelProto) -> ModelProto:
    """A copy without large constants, overridable defaults and constant inputs of bodies.

    Inference would take a default for the value that the input always has; and it compares the
    number of a body's inputs with what the node feeds, which fails for an IR 3 body that lists its
    initializers as inputs.
    """
    free = model.ir_version >= FREE_INITIALIZERS
    names = frozenset(scoping.input_names(model.graph) if free else ())
    defaults = {id(one): one for one in model.graph.initializer if one.name in names}
    copy = with_tensors(
        model, lambda one: None if id(one) in defaults else _light(one), without=("training_info",)
    )
    tops: list[scoping.Owner] = [copy.graph, *copy.functions]
    for owner in tops:
        for graph in scoping.graphs_below(owner):
            if isinstance(graph, GraphProto) and graph is not copy.graph:
                scoping.drop_constant_inputs(graph)
    return copy


def _light(tensor: TensorProto) -> TensorProto:
    if tensor.ByteSize() <= _LARGE:
        return tensor
    return TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)


def declarations(
    proto: ModelProto, *, outputs: bool = False
) -> Iterator[tuple[Scope, list[ValueInfoProto]]]:
    """Yield the declared values of each graph and function, except the signature of the model, of
    which `outputs` are yielded on demand."""
    for top in scoping.scopes(proto):
        for scope in every_scope(top):
            owner = scope.owner
            values = list(owner.value_info)
            if owner is proto.graph:
                values += proto.graph.output if outputs else []
            elif not isinstance(owner, FunctionProto):
                values += [*owner.input, *owner.output]
            yield scope, values


def without_sizes(proto: ModelProto) -> ModelProto:
    """A light copy that declares no sizes but those of the inputs of the model, ranks alone."""
    plain = light_copy(proto)
    for _, values in declarations(plain, outputs=True):
        for value in values:
            for shape in shapes_below(value.type):
                for dim in shape.dim:
                    dim.Clear()
    return plain


def write_sizes(kind: TypeProto, dims: Dims | None) -> None:
    """Declare those of the dims of a tensor that are sizes, where none is declared."""
    if dims is None or not kind.HasField("tensor_type"):
        return
    shape = kind.tensor_type.shape
    if not kind.tensor_type.HasField("shape") and is_static(dims):
        shape.SetInParent()
        for _ in dims:
            shape.dim.add()
    if len(shape.dim) != len(dims):
        return  # a rank that is mistaken
    for own, known in zip(shape.dim, dims, strict=True):
        if isinstance(known, int) and not own.HasField("dim_value"):
            own.dim_value = known
