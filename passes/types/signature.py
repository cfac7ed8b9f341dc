"""The signature of a model: what its users see, and no rewrite may change."""

from __future__ import annotations

from collections.abc import Callable

from onnx import GraphProto, ModelProto, TensorProto, TypeProto, ValueInfoProto, helper

from passes.ir import scope
from passes.ir.versions import FREE_INITIALIZERS

_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)


def inputs(graph: GraphProto) -> list[ValueInfoProto]:
    """The inputs that a caller must feed: those that name no initializer."""
    constant = scope.initializer_names(graph)
    return [value for value in graph.input if value.name not in constant]


def defaults(model: ModelProto) -> list[ValueInfoProto]:
    """The inputs that a caller may feed: from IR 4 on, those that name an initializer."""
    if model.ir_version < FREE_INITIALIZERS:
        return []
    constant = scope.initializer_names(model.graph)
    return [value for value in model.graph.input if value.name in constant]


def feedable(model: ModelProto) -> list[ValueInfoProto]:
    """Every input that a caller may feed, in the model's order."""
    names = {value.name for value in (*inputs(model.graph), *defaults(model))}
    return [value for value in model.graph.input if value.name in names]


def difference(
    before: ModelProto, after: ModelProto, check: str = "", *, any_float: bool = False
) -> str | None:
    """A sentence with both sides where the signatures differ, else None.

    Names, order and types (dtypes, dims, names of dims) of inputs, overridable defaults and
    outputs count; docs, denotations and metadata do not. `check` is one more output of `after`,
    its last, a bool. `any_float`: floats may be of another type.
    """
    outputs = list(before.graph.output)
    if check:
        outputs.append(helper.make_tensor_value_info(check, TensorProto.BOOL, []))
    pairs = (
        ("inputs", inputs(before.graph), inputs(after.graph)),
        ("outputs", outputs, list(after.graph.output)),
        ("overridable defaults", defaults(before), defaults(after)),
    )
    for what, old, new in pairs:
        named = _or_float if any_float else _dtype
        left, right = ([_described(value, named) for value in values] for values in (old, new))
        if left != right:
            left, right = [describe(value) for value in old], [describe(value) for value in new]
            return f"the {what} are ({', '.join(left)}) before and ({', '.join(right)}) after"
    return None


def describe(value: ValueInfoProto) -> str:
    """An input or output in the spelling of ONNX text: `float[N,3] x`."""
    return _described(value, _dtype)


def describe_type(type_: TypeProto) -> str:
    """Return a type in the notation of ONNX text; `?` is an unknown part."""
    return _type(type_, _dtype)


def _described(value: ValueInfoProto, named: Callable[[int], str]) -> str:
    return f"{_type(value.type, named)} {value.name}"


def _type(type_: TypeProto, named: Callable[[int], str]) -> str:
    """A type, with the names of element types as they are given."""
    match type_.WhichOneof("value"):
        case "tensor_type":
            return _tensor(type_.tensor_type, named)
        case "sparse_tensor_type":
            return f"sparse_tensor({_tensor(type_.sparse_tensor_type, named)})"
        case "sequence_type":
            return f"seq({_type(type_.sequence_type.elem_type, named)})"
        case "optional_type":
            return f"optional({_type(type_.optional_type.elem_type, named)})"
        case "map_type":
            key = named(type_.map_type.key_type)
            return f"map({key}, {_type(type_.map_type.value_type, named)})"
        case "opaque_type":
            return f"opaque({type_.opaque_type.domain}, {type_.opaque_type.name})"
    return "?"


def _tensor(type_: TypeProto.Tensor | TypeProto.SparseTensor, named: Callable[[int], str]) -> str:
    if not type_.HasField("shape"):
        return f"{named(type_.elem_type)}[...]"
    if not type_.shape.dim:
        return named(type_.elem_type)
    dims = (
        str(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or "?"
        for dim in type_.shape.dim
    )
    return f"{named(type_.elem_type)}[{','.join(map(_text, dims))}]"


def _text(name: str | bytes) -> str:
    """A name; protobuf hands out bytes where they are no UTF-8."""
    return name.decode(errors="replace") if isinstance(name, bytes) else name


def _dtype(elem_type: int) -> str:
    return str(TensorProto.DataType.Name(elem_type)).lower()


def _or_float(elem_type: int) -> str:
    """The name of an element type, one for all types of floats."""
    return "float" if elem_type in _FLOATS else _dtype(elem_type)
