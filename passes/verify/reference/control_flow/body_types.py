"""The types of a body's outputs: as declared, completed by what shape inference finds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    TypeProto,
    ValueInfoProto,
    helper,
    numpy_helper,
    shape_inference,
)

from passes.ir.operators import op_of
from passes.types.shape_inference import infer_shapes
from passes.verify.executor import Array, Value
from passes.verify.reference.control_flow.static_sizes import Sizes
from passes.verify.reference.evaluator import Evaluator
from passes.verify.reference.value_types import known_dtype, known_shape, type_of

#: Captured integers and initializers up to this size take part with their values (they may be
#: the shape of a Reshape); larger ones only with their types.
_SMALL = 64


@dataclass(frozen=True)
class Found:
    """The inferred types of a body's outputs. `odd`: a Loop in it receives other sizes than its
    body declares."""

    types: Sequence[TypeProto]
    odd: bool = False


def output_types(
    body: Evaluator,
    inputs: dict[str, TypeProto],
    captured: Mapping[str, Value],
    known: dict[Any, Found],
    *,
    by_type: Collection[str] = (),
) -> list[TypeProto]:
    """Return the types of the outputs of `body` when it receives `inputs` and captures `captured`.

    What the body declares comes first; shape inference fills in the rest. Of the captured values
    in `by_type` it sees no elements. `known` caches the results.
    """
    found = inferred_types(body, inputs, captured, known, by_type=by_type).types
    declared = [value.type for value in body.proto_.output]
    return [_merged(own, other) for own, other in zip(declared, found, strict=True)]


def inferred_types(
    body: Evaluator,
    inputs: dict[str, TypeProto],
    captured: Mapping[str, Value],
    known: dict[Any, Found],
    *,
    by_type: Collection[str] = (),
) -> Found:
    """The same without what the body declares of its outputs."""
    key = (
        tuple((name, kind.SerializeToString()) for name, kind in inputs.items()),
        tuple((name, _form_of(value, name in by_type)) for name, value in captured.items()),
    )
    if key not in known:
        model = _as_model(body, inputs, captured, by_type)
        known[key] = _inferred(model, len(body.proto_.output))
    return known[key]


def computed(around: Evaluator | None, names: Iterable[str]) -> frozenset[str]:
    """Those of the names, as a graph sees them, whose elements the model does not fix."""
    return frozenset(name for name in names if not _is_fixed(around, name))


def _is_fixed(around: Evaluator | None, name: str) -> bool:
    while around is not None:
        if name in around.fixes:
            return around.fixes[name]
        around = around.around
    return False


def _as_model(
    body: Evaluator,
    inputs: dict[str, TypeProto],
    captured: Mapping[str, Value],
    by_type: Collection[str],
) -> ModelProto:
    """The body as a model: inputs with the types they have now, captured values as inputs."""
    graph = GraphProto(name="body")
    graph.node.extend(body.proto_.node)
    graph.value_info.extend(body.proto_.value_info)
    declared = {value.name: value.type for value in body.proto_.input}
    for name, kind in inputs.items():
        merged = _merged(kind, declared.get(name, TypeProto()))
        graph.input.append(ValueInfoProto(name=name, type=merged))
    constants = {name: value for name, value in body.rt_inits_.items() if name not in inputs}
    for name, value in {**captured, **constants}.items():
        _declare(graph, name, value, by_type=name in by_type and name not in constants)
    for value in body.proto_.output:
        graph.output.append(ValueInfoProto(name=value.name))
    imports = {domain: version for domain, version in body.versions.items() if domain != "ai.onnx"}
    return helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid(domain, version) for domain, version in imports.items()],
        functions=body.machine.library.all(),
    )


def _declare(graph: GraphProto, name: str, value: Value, *, by_type: bool) -> None:
    if not by_type and _is_small(value):
        graph.initializer.append(numpy_helper.from_array(value, name))
    else:
        graph.input.append(ValueInfoProto(name=name, type=type_of(value)))


def _form_of(value: Value, by_type: bool) -> tuple[Any, ...]:
    """Return a key for a captured value, as far as inference uses it."""
    if not by_type and _is_small(value):
        return value.dtype, value.shape, value.tobytes()
    return (type_of(value).SerializeToString(),)


def _is_small(value: Value) -> TypeGuard[Array]:
    return isinstance(value, np.ndarray) and value.size <= _SMALL and value.dtype.kind in "iub"


def _inferred(model: ModelProto, count: int) -> Found:
    """Return the inferred types of the outputs; none if inference gives up."""
    try:
        found = infer_shapes(model)
        if _declare_states(found.graph):
            found = infer_shapes(found)
    except (shape_inference.InferenceError, RuntimeError, ValueError):
        return Found([TypeProto()] * count)
    types = _types(found.graph)
    return Found(
        [types.get(value.name, TypeProto()) for value in found.graph.output],
        any(_is_misfed(node, types) for node in found.graph.node if op_of(node) == "Loop"),
    )


def _is_misfed(loop: NodeProto, types: Mapping[str, TypeProto]) -> bool:
    """Return whether the first states of a Loop have other sizes than its body declares."""
    (body,) = (attribute.g for attribute in loop.attribute if attribute.name == "body")
    pairs = zip(loop.input[2:], body.input[2:], strict=False)
    return any(
        at_odds(types.get(name, TypeProto()), known_shape(value.type)) for name, value in pairs
    )


def at_odds(kind: TypeProto, sizes: Sizes) -> bool:
    """Return whether a size of the type differs from one that is known otherwise."""
    pairs = zip(known_shape(kind) or [], sizes or [], strict=False)
    return any(None not in pair and pair[0] != pair[1] for pair in pairs)


def _types(graph: GraphProto) -> dict[str, TypeProto]:
    types = {value.name: value.type for value in (*graph.input, *graph.value_info, *graph.output)}
    for tensor in graph.initializer:
        types[tensor.name] = helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
    return types


def _declare_states(graph: GraphProto) -> bool:
    """Declare, in place, the final states of Loops whose body keeps the sizes of the initial ones,
    and return whether there are any. Inference leaves them open, since a Loop may change them."""
    types, found = _types(graph), {}
    for node in graph.node:
        if op_of(node) != "Loop":
            continue
        (body,) = (attribute.g for attribute in node.attribute if attribute.name == "body")
        states = zip(node.input[2:], body.output[1:], node.output, strict=False)
        for initial, last, name in states:
            elem_type = types.get(name, TypeProto()).tensor_type.elem_type
            sizes = known_shape(types.get(initial, TypeProto()))
            if elem_type and sizes and sizes == known_shape(last.type):
                found[name] = helper.make_tensor_type_proto(elem_type, sizes)
    for value in graph.value_info:
        if value.name in found and known_shape(value.type) is None:
            value.type.CopyFrom(found[value.name])
    return bool(found)


def _merged(first: TypeProto, second: TypeProto) -> TypeProto:
    """`first`, with what it leaves open taken from `second`; for tensors only."""
    if not first.HasField("tensor_type"):
        return second if first.WhichOneof("value") is None else first
    dtype = known_dtype(first) or known_dtype(second)
    if dtype is None:
        return first
    shape, other = known_shape(first), known_shape(second)
    if shape is None:
        shape = other
    elif other is not None and len(other) == len(shape):
        shape = [b if a is None else a for a, b in zip(shape, other, strict=True)]
    return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(dtype), shape)
