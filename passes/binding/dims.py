"""Fixes symbolic dims of a whole model: the one change of its signature that a user may ask for."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from onnx import (
    FunctionProto,
    ModelProto,
    NodeProto,
    TensorShapeProto,
    TypeProto,
    ValueInfoProto,
)

from passes.check import check
from passes.engine.full_check import full_objection
from passes.errors import BadModel, DoesNotFit
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.ir.protos import copied
from passes.ir.scope import Scope
from passes.types.inference import ValueTypes
from passes.types.type_tables import every_scope
from passes.types.value_types import Dim, Dims, dims_of, is_static, shapes_below


class UnknownDim(DoesNotFit):
    """The model has no symbolic dim of the name that was to be fixed."""


def parsed(text: str) -> tuple[str, int | str]:
    """The name and the size of `batch=4`, or both names of `b=batch`.

    Raises:
        ValueError: it is not of that form, or the size is negative or no int64.
    """
    name, _, size = text.rpartition("=")
    if not name or not size or size.startswith("-"):
        raise ValueError(f"{text!r} is not of the form NAME=SIZE or NAME=NAME")
    return name, size_of(size) if size.isdecimal() else size


def size_of(text: str) -> int:
    """The size that digits tell.

    Raises:
        ValueError: it is no int64.
    """
    if (size := int(text)) >= 1 << 63:
        raise ValueError(f"the size {text} is no int64")
    return size


def unite(proto: ModelProto, dims: Mapping[str, int | str]) -> dict[str, int]:
    """Give dims that are equal to other ones the names of those, in place, everywhere.

    Returns:
        The sizes of those that are left, as far as they have one.

    Raises:
        DoesNotFit: a dim is equal to itself, by way of others.
    """
    names, sizes = dict[str, str](), dict[str, int]()
    for name in dims:
        passed, size = [name], dims.get(name)
        while isinstance(size, str):
            if size in passed:
                raise DoesNotFit(f"the dim {size!r} is declared equal to itself")
            passed.append(size)
            size = dims.get(size)
        names[name] = kept = passed[-1]
        if size is not None:
            sizes[kept] = size
    for top in scoping.scopes(proto):
        for scope in every_scope(top):
            owner = scope.owner
            values = [] if isinstance(owner, FunctionProto) else [*owner.input, *owner.output]
            for named in _named([*owner.value_info, *values], names):
                named.dim.dim_param = names[named.name]
    return sizes


def dims_of_inputs(model: Model) -> Mapping[str, None]:
    """The symbolic dims that inputs of the model declare, in order."""
    return dict.fromkeys(
        dim.dim_param
        for value in model.proto.graph.input
        for shape in shapes_below(value.type)
        for dim in shape.dim
        if dim.dim_param
    )


def refuse_unknown(names: Iterable[str], known: Collection[str]) -> None:
    """See that inputs have dims of these names.

    Raises:
        UnknownDim: one has none; those that there are are named.
    """
    for name in names:
        if name not in known:
            there = ", ".join(known) or "none"
            raise UnknownDim(f"no input has a dim {name!r}; there are: {there}")


def fix(model: Model, proto: ModelProto, sizes: Mapping[str, int]) -> None:
    """Fix these symbolic dims everywhere, in bodies and functions too, in place: `proto` is a copy
    of the model, whose inputs may have been changed.

    What the inputs declare holds. All other declarations are hints, for exporters mistake dims in
    bodies: those of a graph in which one contradicts the sizes are inferred anew, or left open.
    """
    known = dims_of_inputs(model)
    for named in _named(proto.graph.input, sizes):
        named.dim.dim_value = sizes[named.name]
    hints = [hint for hint in _hints(proto, sizes) if hint.dims]
    for hint in hints:
        hint.write([None] * len(hint.dims))
    objections = _Objections(model)
    if objections.new(proto):
        _infer_again(proto)
    if not hints:
        return
    types = ValueTypes(proto)
    inferred = [hint.inferred(types) for hint in hints]
    for hint, found in zip(hints, inferred, strict=True):
        hint.write(found)
    objections.known.add(objections.of(proto))  # no hint is to blame for that
    likely = [
        (hint, found)
        for hint, found in zip(hints, inferred, strict=True)
        if hint.agrees(found, sizes, known) and hint.agrees(hint.initial(types), sizes, known)
    ]
    _write_sizes(proto, likely, sizes, objections)


def declare_sizes(proto: ModelProto) -> dict[str, Dims | None]:
    """Declare the sizes that inference finds of what is declared without, in place; returns what
    it found of the outputs. What it does not find itself is not taken for known."""
    plain = copied(proto)
    for _, values in _declarations(plain):
        for value in values:
            for shape in shapes_below(value.type):
                for dim in shape.dim:
                    dim.Clear()
    types = ValueTypes(plain)
    outputs: dict[str, Dims | None] = {}
    for scope, values in _declarations(proto):
        if scope.owner is proto.graph:
            outputs = {
                value.name: dims_of(types.within(scope, value.name)) for value in proto.graph.output
            }
            values = [*values, *proto.graph.output]
        for value in values:
            write_sizes(value.type, dims_of(types.within(scope, value.name)))
    return outputs


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


def _infer_again(proto: ModelProto) -> None:
    """Declare the sizes that inference finds, in place, instead of those that are declared, but
    for the signature."""
    sized = [
        (scope, _NamedDim(dim, "", value.name, position))
        for scope, values in _declarations(proto)
        for value in values
        if value.type.HasField("tensor_type")
        for position, dim in enumerate(value.type.tensor_type.shape.dim)
        if dim.HasField("dim_value")
    ]
    for _, named in sized:
        named.dim.Clear()
    types = ValueTypes(proto)
    for (_, named), found in [
        (one, one[1].of(types.within(one[0], one[1].value))) for one in sized
    ]:
        if isinstance(found, int):
            named.dim.dim_value = found


def _write_sizes(
    proto: ModelProto,
    hints: Sequence[tuple[_Hints, Sequence[Dim]]],
    sizes: Mapping[str, int],
    objections: _Objections,
) -> None:
    """Write the sizes where that contradicts nothing, elsewhere what was inferred; most often
    nothing is contradicted."""
    for hint, _ in hints:
        hint.write([sizes[dim.name] for dim in hint.dims])
    if not objections.new(proto):
        return
    for hint, found in hints:
        hint.write(found)
    for hint, found in hints:
        hint.write([sizes[dim.name] for dim in hint.dims])
        if objections.new(proto):
            hint.write(found)


@dataclass(frozen=True)
class _NamedDim:
    """A dim that is declared with a `name`: the one at `position` of a tensor `value`, if it is a
    tensor."""

    dim: TensorShapeProto.Dimension
    name: str
    value: str
    position: int

    def of(self, kind: TypeProto | None) -> Dim:
        """The dim at its position in another type."""
        dims = dims_of(kind) or ()
        return dims[self.position] if self.position < len(dims) else None


@dataclass(frozen=True)
class _Hints:
    """The declarations of a graph with dims that are to be fixed. `signature`: users see it; `fed`:
    for the states of a Loop, of which onnx infers no shape, their initial values in the scope
    around."""

    scope: Scope
    dims: Sequence[_NamedDim]
    signature: bool = False
    fed: Mapping[str, str] = field(default_factory=dict)

    def inferred(self, types: ValueTypes) -> list[Dim]:
        """Return the inferred value of each dim."""
        return [dim.of(types.within(self.scope, dim.value)) for dim in self.dims]

    def initial(self, types: ValueTypes) -> list[Dim]:
        """Return the value of each dim in the first iteration."""
        around, fed = self.scope.outer, self.fed
        return [
            dim.of(types.of(around, fed[dim.value])) if around and dim.value in fed else None
            for dim in self.dims
        ]

    def agrees(self, found: Sequence[Dim], sizes: Mapping[str, int], names: Container[str]) -> bool:
        """Return whether nothing else was found, such as another one of the `names` of dims."""
        pairs = zip(self.dims, found, strict=True)
        return all(
            named.name == dim or sizes[named.name] == dim
            for named, dim in pairs
            if isinstance(dim, int) or dim in names
        )

    def write(self, dims: Sequence[Dim]) -> None:
        """Declare these sizes; others are left open, but keep their names in a signature."""
        for own, known in zip(self.dims, dims, strict=True):
            own.dim.Clear()
            if isinstance(known, int):
                own.dim.dim_value = known
            elif self.signature:
                own.dim.dim_param = own.name


def _hints(proto: ModelProto, sizes: Mapping[str, int]) -> Iterator[_Hints]:
    """Yield the declarations with such dims beside the inputs: outputs and values of the main
    graph, each body, each function."""
    fed = {
        place.scope.inner(place.index)[0].key: place.node
        for place in scoping.walk_model(proto)
        if op_of(place.node) == "Loop"
    }
    for scope, values in _declarations(proto):
        if scope.owner is proto.graph:
            yield _Hints(scope, _named(proto.graph.output, sizes), signature=True)
        loop = fed.get(scope.key)
        initial = {} if loop is None else _initial_values(loop)
        yield _Hints(scope, _named(values, sizes), fed=initial)


def _declarations(proto: ModelProto) -> Iterator[tuple[Scope, list[ValueInfoProto]]]:
    """Yield the declared values of each graph and function, except the signature of the model."""
    for top in scoping.scopes(proto):
        for scope in every_scope(top):
            owner = scope.owner
            values = list(owner.value_info)
            if owner is not proto.graph and not isinstance(owner, FunctionProto):
                values += [*owner.input, *owner.output]
            yield scope, values


def _initial_values(loop: NodeProto) -> dict[str, str]:
    """By the states' names in the body."""
    ((_, body),) = scoping.subgraphs(loop)
    return dict(zip(scoping.input_names(body)[2:], loop.input[2:], strict=False))


def _named(values: Iterable[ValueInfoProto], names: Container[str]) -> list[_NamedDim]:
    """The dims with such names."""
    return [
        _NamedDim(dim, dim.dim_param, value.name, position)
        for value in values
        for shape in shapes_below(value.type)
        for position, dim in enumerate(shape.dim)
        if dim.dim_param and dim.dim_param in names
    ]


@dataclass
class _Objections:
    """The objections to a model's types; those that are `known`, or hold for the original, are
    ignored."""

    original: Model
    known: set[str] = field(default_factory=lambda: {""})

    @cached_property
    def _own(self) -> str:
        return self.of(self.original.proto)

    def new(self, proto: ModelProto) -> bool:
        found = self.of(proto)
        return found not in self.known and found != self._own

    def of(self, proto: ModelProto) -> str:
        try:
            check(Model(proto, self.original.path))
        except BadModel as error:
            return str(error)
        return full_objection(proto)
