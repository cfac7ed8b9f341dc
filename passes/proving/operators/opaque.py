"""Operators without an entry: functions of all their inputs of which nothing is known but that
equal inputs give equal outputs, or make them fail alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import (
    NodeProto,
    TensorProto,
    TypeProto,
    checker,
    defs,
    helper,
    numpy_helper,
    shape_inference,
)

from passes.analysis.safety.randomness import first_random
from passes.converters.steps import Identical
from passes.converters.table import steps
from passes.ir.operators import is_onnx_domain, op_of, plain_domain
from passes.proving.assumptions import ALIKE, DECLARED
from passes.proving.families import REDUCTIONS
from passes.proving.operators.elementwise import exact
from passes.proving.operators.stated_sizes import Sizes, stated_sizes
from passes.proving.symbolic_evaluator import (
    OPAQUE,
    Application,
    attributes_of,
    dtype_name,
    operator,
)
from passes.proving.terms.algebra import BOOL, INT64
from passes.proving.terms.arrays import Array, Indices, NotProvable
from passes.proving.terms.term import Term
from passes.types.value_types import dims_of, elem_type_of

#: Operators whose results have fewer axes than an operand, by their documents.
_FEWER_AXES = (
    "ArgMax ArgMin BatchNormalization Compress Det DynamicQuantizeLinear Einsum Gather GatherND"
    " MatMulInteger NegativeLogLikelihoodLoss NonMaxSuppression QLinearMatMul"
    " SoftmaxCrossEntropyLoss TfIdfVectorizer Unique"
)
_MAY_HAVE_FEWER = frozenset((*REDUCTIONS, *_FEWER_AXES.split()))
_FAILURES = (shape_inference.InferenceError, checker.ValidationError, RuntimeError, ValueError)


@operator(OPAQUE)
def opaque(call: Application) -> list[Array]:
    """The outputs of an operator of which nothing is known.

    Raises:
        NotProvable: it draws random numbers, has bodies, or a type of an output is unknown.
    """
    node, algebra = call.node, call.algebra
    place = f"{call.evaluator.place()}: {call.op}"
    if first_random(call.evaluator.model, [node]) is not None:
        raise NotProvable("random", f"{place} draws random numbers")
    if any(one.g.node or one.graphs for one in node.attribute):
        raise NotProvable("operator", f"{place} has bodies and is not modelled")
    types = _types(call)
    call.evaluator.assumed.add(ALIKE)
    args, kinds = _arguments(call)
    key = (plain_domain(node.domain), call.op, *meaning(node, call.opsets), kinds)
    answers = algebra.opaque(BOOL, "answers", (*key, BOOL), args)
    call.evaluator.require(answers, f"{call.op} answers")
    outputs = []
    for number, name in enumerate(node.output):
        dtype, dims = types.get(name, (BOOL, ()))
        shape = tuple(
            algebra.lift(algebra.terms.make("size", (*key, number, axis, INT64), args))
            if dim is None
            else dim
            for axis, dim in enumerate(dims)
        )
        outputs.append(_output(call, dtype, shape, (*key, number, dtype), args))
    return outputs


def _output(call: Application, dtype: str, shape: Indices, data: object, args: list[Term]) -> Array:
    algebra = call.algebra

    def get(indices: Indices) -> Term:
        return algebra.opaque(dtype, "output", data, (*args, *indices))

    return Array(algebra, dtype, shape, get)


def _arguments(call: Application) -> tuple[list[Term], tuple[object, ...]]:
    """The sizes and elements of all inputs, and the element type and rank of each."""
    args: list[Term] = []
    kinds: list[object] = []
    for array in call.inputs:
        kinds.append(None if array is None else (array.dtype, array.rank))
        if array is not None:
            args += [*array.shape, call.algebra.close(*array.generic())]
    while kinds and kinds[-1] is None:
        kinds.pop()
    return args, tuple(kinds)


def meaning(node: NodeProto, opsets: Mapping[str, int]) -> tuple[int, tuple[object, ...]]:
    """The newest version in which a node means the same, and its attributes there."""
    if not is_onnx_domain(node.domain):
        given = helper.get_attribute_value
        found = {one.name: given(one) for one in node.attribute}
        return opsets.get(node.domain, 0), _described(found)
    version = defs.get_schema(op_of(node), opsets[""], "").since_version
    for step in steps(op_of(node), opsets[""], defs.onnx_opset_version()):
        if not isinstance(step, Identical):
            break
        version = step.version
    attributes = attributes_of(node, version)
    if op_of(node) == "BatchNormalization" and version < 14:  # its outputs tell it
        attributes["training_mode"] = int(len(node.output) > 1)
    return version, _described(attributes)


def _described(attributes: Mapping[str, Any]) -> tuple[object, ...]:
    """Attributes as a part of a term."""
    return tuple((n, _exact(v)) for n, v in sorted(attributes.items()) if v is not None)


def _exact(value: Any) -> object:
    if isinstance(value, (list, tuple)):
        return tuple(map(_exact, value))
    if isinstance(value, TensorProto):
        value = numpy_helper.to_array(value)
    if hasattr(value, "SerializeToString"):
        return type(value).__name__, value.SerializeToString(deterministic=True)
    if isinstance(value, np.ndarray):
        items = value.tolist() if value.dtype == object else value.tobytes()
        return ("tensor", str(value.dtype), value.shape, repr(items))
    return exact(value)


#: The element type and the sizes of an output, None where one is unknown.
Kind = tuple[str, Sizes]


def _types(call: Application) -> dict[str, Kind]:
    """The types of the outputs that have a name.

    Raises:
        NotProvable: one is unknown.
    """
    names = [name for name in call.node.output if name]
    if not is_onnx_domain(call.node.domain):
        return {name: _declared(call, name) for name in names}
    inferred, most = _inferred(call), max((one.rank for one in call.inputs if one), default=0)
    found: dict[str, Kind] = {}
    for place, name in enumerate(call.node.output):
        if not name:
            continue
        dtype, rank = inferred.get(name, ("", 0))
        sizes = stated_sizes(call, place)
        # an operand of more axes than a result is one that executors may broadcast it to
        if not dtype or (sizes is None and rank < most and call.op not in _MAY_HAVE_FEWER):
            raise call.cannot("operator", f"{call.op} is not modelled, and neither is its shape")
        found[name] = dtype, sizes or (None,) * rank
    return found


def _inferred(call: Application) -> dict[str, tuple[str, int]]:
    """The element type and the rank of each output, as onnx infers them. Sizes that it infers are
    none on which executors agree: it does not broadcast, and rounds otherwise."""
    node = call.node
    types: dict[str, TypeProto] = {}
    values = {}
    for name, array in zip(node.input, call.inputs, strict=True):
        if array is None:
            continue
        element = helper.np_dtype_to_tensor_dtype(np.dtype(array.dtype.replace("string", "O")))
        sizes = [call.algebra.number(size) for size in array.shape]
        types[name] = helper.make_tensor_type_proto(element, sizes)
        known_numbers = _numbers(array)
        if known_numbers is not None:
            values[name] = numpy_helper.from_array(known_numbers, name)
    try:
        schema = defs.get_schema(call.op, call.opset, "")
        imports = [helper.make_opsetid("", call.opset)]
        found = shape_inference.infer_node_outputs(
            schema, node, types, input_data=values, opset_imports=imports
        )
    except _FAILURES:
        return {}
    return {
        name: (dtype_name(elem_type_of(kind)), len(dims))
        for name, kind in found.items()
        if elem_type_of(kind) and (dims := dims_of(kind)) is not None
    }


def _numbers(array: Array) -> Any:
    """The elements of a short int64 vector that is known; else None."""
    try:
        return np.array(array.numbers(), np.int64)
    except NotProvable:
        return None


def _declared(call: Application, name: str) -> Kind:
    """The type that the graph or function of the node declares for an output.

    Raises:
        NotProvable: it is unknown.
    """
    kind = call.declared.get(name)
    dims = None if kind is None else dims_of(kind)
    if kind is None or dims is None or not elem_type_of(kind):
        what = f"{call.op} is not modelled, and the type of {name!r} is unknown"
        raise call.cannot("operator", what)
    call.evaluator.assumed.add(DECLARED)
    return dtype_name(elem_type_of(kind)), (None,) * len(dims)
