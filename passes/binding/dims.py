"""Fixes symbolic dims of inputs: the one change of its signature that a user may ask for."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass

from onnx import (
    FunctionProto,
    ModelProto,
    TensorShapeProto,
    TypeProto,
    ValueInfoProto,
)

from passes.analysis.bodies.kept_sizes import with_kept_sizes
from passes.analysis.integers.integers import Integers
from passes.engine.full_check import full_objection
from passes.errors import DoesNotFit
from passes.ir.model import Model
from passes.ir.scope import output_names, scopes
from passes.ir.site import Site
from passes.types.inference import ValueTypes, declarations, without_sizes, write_sizes
from passes.types.value_types import Dim, Dims, dims_of, shapes_below


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


def unite(
    proto: ModelProto, dims: Mapping[str, int | str]
) -> tuple[dict[str, str], dict[str, int]]:
    """Give dims of inputs that are equal to other ones the names of those, in place.

    Returns:
        The name of each, and the sizes of these, as far as they have one.

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
    for named in _named(proto.graph.input, names):
        named.write(names[named.name])
    return names, sizes


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


def fix(model: Model, proto: ModelProto, sizes: Mapping[str, int | str]) -> None:
    """Give these symbolic dims of the inputs their sizes, or other names, in place, and what
    follows from that: `proto` is a copy of the model, whose inputs may have been changed.

    What is declared elsewhere by the same names is no proof, for exporters mistake dims in bodies:
    it is inferred anew, or left open, but for the names in the outputs of the model. If the sizes
    contradict what is declared inside, all of that is inferred anew.
    """
    for named in _named(proto.graph.input, sizes):
        named.write(sizes[named.name])
    outputs = _named(proto.graph.output, sizes)
    declared = [(scope, _named(values, sizes)) for scope, values in declarations(proto)]
    declared.insert(0, (declared[0][0], outputs))
    for named in (one for _, dims in declared for one in dims):
        named.dim.Clear()
    wrong = full_objection(Model(proto))
    if wrong and wrong != full_objection(model):
        _infer_again(proto)
    known = with_kept_sizes(proto)
    symbols = dims_of_inputs(known)
    scopes_known = [scope for scope, _ in declarations(known.proto)]
    for scope, (_, dims) in zip([scopes_known[0], *scopes_known], declared, strict=True):
        if dims and not isinstance(scope.outermost.owner, FunctionProto):
            integers = Integers(Site.of_graph(known, scope))
            for named in dims:
                symbol = named.of(known.types.within(scope, named.value))
                size = integers.fixed_size(named.value, named.position)
                if size is not None:
                    named.write(size)
                elif isinstance(symbol, str) and symbol in symbols:
                    named.write(symbol)
    for named in outputs:
        if named.dim.WhichOneof("value") is None:
            named.write(named.name)


def declare_sizes(proto: ModelProto) -> dict[str, Dims | None]:
    """Declare the sizes that inference finds of what is declared without, in place; returns what
    it found of the outputs. What it does not find itself is not taken for known."""
    types = ValueTypes(without_sizes(proto))
    for scope, values in declarations(proto, outputs=True):
        for value in values:
            write_sizes(value.type, dims_of(types.within(scope, value.name)))
    main = next(scopes(proto))
    return {name: dims_of(types.within(main, name)) for name in output_names(proto.graph)}


def _infer_again(proto: ModelProto) -> None:
    """Declare the sizes that inference finds, in place, instead of those that are declared, but
    for the signature."""
    sized = [
        (scope, _NamedDim(dim, "", value.name, position))
        for scope, values in declarations(proto)
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

    def write(self, dim: int | str) -> None:
        """Declare a size, or a name."""
        self.dim.Clear()
        if isinstance(dim, int):
            self.dim.dim_value = dim
        else:
            self.dim.dim_param = dim


def _named(values: Iterable[ValueInfoProto], names: Container[str]) -> list[_NamedDim]:
    """The dims with such names."""
    return [
        _NamedDim(dim, dim.dim_param, value.name, position)
        for value in values
        for shape in shapes_below(value.type)
        for position, dim in enumerate(shape.dim)
        if dim.dim_param and dim.dim_param in names
    ]
