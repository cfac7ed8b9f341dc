"""Operators without an entry: functions of all their inputs of which nothing is known but that
equal inputs give equal outputs, or make them fail alike."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TypeProto, checker, defs, helper, numpy_helper, shape_inference

from passes.analysis.safety.randomness import first_random
from passes.ir.operators import is_onnx_domain
from passes.proving.assumptions import ALIKE, DECLARED
from passes.proving.families import REDUCTIONS
from passes.proving.nodes import dtype_name, type_of
from passes.proving.operators.calls import called
from passes.proving.operators.newest import in_newest_version
from passes.proving.operators.stated_sizes import Sizes, stated_sizes
from passes.proving.symbolic_evaluator import OPAQUE, Application, operator
from passes.proving.terms.algebra import BOOL, INT64
from passes.proving.terms.arrays import Array, Indices, NotProvable, Stacked, Unranked
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
        NotProvable: it draws random numbers, or one of its bodies has a form that is not modelled.
    """
    node, algebra = call.node, call.algebra
    if first_random(call.evaluator.model, [node]) is not None:
        place = f"{call.evaluator.place()}: {call.op}"
        raise NotProvable("random", f"{place} draws random numbers")
    newest = in_newest_version(call)
    if newest is not None:
        return newest
    kinds = _types(call)
    call.evaluator.assumed.add(ALIKE)
    key, args = called(call, _whole)
    answers = algebra.opaque(BOOL, "answers", (*key, BOOL), args)
    call.evaluator.require(answers, f"{call.op} answers")
    outputs: list[Array] = []
    for number, kind in enumerate(kinds):
        if kind is None:
            term = algebra.opaque("", "output", (*key, number, ""), args)
            outputs.append(Unranked(algebra, term))
            continue
        dtype, dims = kind
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


def _whole(array: Array) -> list[Term]:
    """The element type, the sizes and the elements of an input."""
    if isinstance(array, Unranked):
        return [array.term]
    name = "kind of a sequence" if isinstance(array, Stacked) else "kind"
    kind = array.algebra.terms.make(name, (array.dtype, array.rank))
    return [kind, *array.shape, array.algebra.close(*array.generic())]


#: The element type and the sizes of an output, None where one is unknown.
Kind = tuple[str, Sizes]


def _types(call: Application) -> list[Kind | None]:
    """The types of the outputs; None for one that is unknown."""
    if not is_onnx_domain(call.node.domain):
        return [_declared(call, name) for name in call.node.output]
    inferred = _inferred(call)
    most = max((one.rank for one in call.inputs if one is not None), default=0) if inferred else 0
    found: list[Kind | None] = []
    for place, name in enumerate(call.node.output):
        dtype, rank = inferred.get(name, ("", 0))
        try:
            sizes = stated_sizes(call, place) if name else None
        except NotProvable:
            sizes = None
        # an operand of more axes than a result is one that executors may broadcast it to
        known = dtype and (sizes is not None or rank >= most or call.op in _MAY_HAVE_FEWER)
        found.append((dtype, sizes or (None,) * rank) if known else None)
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
        if isinstance(array, Unranked | Stacked):
            return {}
        types[name] = type_of(array)
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
    except (NotProvable, OverflowError):
        return None


def _declared(call: Application, name: str) -> Kind | None:
    """The type that the graph or function of the node declares for an output."""
    kind = call.declared.get(name)
    dims = None if kind is None else dims_of(kind)
    if kind is None or dims is None or not elem_type_of(kind):
        return None
    call.evaluator.assumed.add(DECLARED)
    return dtype_name(elem_type_of(kind)), (None,) * len(dims)
