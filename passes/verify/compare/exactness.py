"""Decides whether a model's arithmetic is exact on small dyadic inputs.

Where it is exact, a rewrite that regroups sums must still give the same numbers; where it is
not, only near ones.
"""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, numpy_helper

from passes.ir import scope
from passes.ir.attributes import attribute
from passes.ir.operator_traits import Values, traits_of
from passes.ir.operators import called_key, function_key, op_of
from passes.verify.executor import Outcome, Value
from passes.verify.inputs.arrays import is_float

_FLOATS = frozenset(
    kind
    for name, kind in TensorProto.DataType.items()
    if name.startswith(("FLOAT", "BFLOAT", "DOUBLE", "COMPLEX"))
)
#: Constants beyond this many elements are taken for rounding ones, unread.
_READ_AT_MOST = 1 << 20


def rounds(model: ModelProto) -> bool:
    """Return whether any node may round on small dyadic inputs: because of its operator, or because
    a constant is no such number. Operators of other domains count as rounding unless the model
    defines them itself."""
    own = set(map(function_key, model.functions))
    for place in scope.walk_model(model):
        node = place.node
        known = traits_of(node).values in (Values.SIZES, Values.EXACT)
        if not known and called_key(node) not in own:
            return True
        if any(_attribute_rounds(attribute) for attribute in node.attribute):
            return True
    graphs = (graph for _, owner in scope.owners(model) for graph in scope.graphs_below(owner))
    return any(_is_rough(tensor) for graph in graphs for tensor in _constants(graph))


def recurs(model: ModelProto) -> bool:
    """Return whether a loop carries floats: they and their errors may grow with each iteration."""
    return any(_carries_floats(place.node) for place in scope.walk_model(model))


def _carries_floats(node: NodeProto) -> bool:
    """Return whether a node is a loop that carries floats, or values that may be floats."""
    op = op_of(node)
    if op in ("LSTM", "GRU", "RNN"):
        return True
    if op not in ("Scan", "Loop"):
        return False
    scanned = attribute(node, "num_scan_inputs", 1)
    parts = slice(2, None) if op == "Loop" else slice(-scanned)
    carried = [value for _, body in scope.subgraphs(node) for value in body.input[parts]]
    kinds = {value.type.tensor_type.elem_type for value in carried}
    return bool(kinds & (_FLOATS | {TensorProto.UNDEFINED}))


def small_enough(outcome: Outcome) -> bool:
    """Return whether every float is small enough that its last bits were not rounded away: exact
    draws grow in loops. The bound is half of the bits of each dtype."""
    return all(_is_small(value) for value in outcome.outputs.values())


def _is_small(value: Value) -> bool:
    if isinstance(value, list):
        return all(_is_small(item) for item in value)
    if value is None or value.dtype.kind == "c" or not is_float(value.dtype):
        return True
    bound = 2.0 ** (ml_dtypes.finfo(value.dtype).nmant // 2)
    finite = value[np.isfinite(value)].astype(np.float64)
    return bool(np.abs(finite).max(initial=0.0) <= bound)


def _attribute_rounds(attribute: AttributeProto) -> bool:
    if attribute.type in (AttributeProto.FLOAT, AttributeProto.FLOATS):
        return not all(_is_dyadic(value) for value in (attribute.f, *attribute.floats))
    return attribute.type == AttributeProto.TENSOR and _is_rough(attribute.t)


def _constants(owner: scope.Owner) -> Iterator[TensorProto]:
    if isinstance(owner, GraphProto):
        yield from owner.initializer
        yield from (sparse.values for sparse in owner.sparse_initializer)


def _is_rough(tensor: TensorProto) -> bool:
    """Return whether a constant holds floats other than small dyadic numbers, or too many to
    read."""
    if tensor.data_type not in _FLOATS:
        return False
    if tensor.data_location == TensorProto.EXTERNAL or int(np.prod(tensor.dims)) > _READ_AT_MOST:
        return True
    return not _is_dyadic(numpy_helper.to_array(tensor))


def _is_dyadic(values: object) -> bool:
    numbers = np.asarray(values)
    if numbers.dtype.kind == "c":
        return False
    numbers = numbers.astype(np.float64)
    odd = ~np.isfinite(numbers)
    with np.errstate(invalid="ignore"):
        return bool(np.all(odd | ((numbers * 4 == np.round(numbers * 4)) & (np.abs(numbers) <= 8))))
