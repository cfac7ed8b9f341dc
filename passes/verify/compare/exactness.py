"""Decides whether a model's arithmetic is exact on small dyadic inputs.

Where it is exact, a rewrite that regroups sums must still give the same numbers; where it is
not, only near ones.
"""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper

from passes.ir import scope
from passes.ir.attributes import attribute
from passes.ir.external_data import is_external, tensors
from passes.ir.operators import called_key, function_key, op_of
from passes.operators.cells import RECURRENT
from passes.operators.table import traits_of
from passes.operators.traits import Values
from passes.verify.executor import Outcome, Value
from passes.verify.inputs.arrays import is_float

_FLOATS = frozenset(
    kind
    for name, kind in TensorProto.DataType.items()
    if name.startswith(("FLOAT", "BFLOAT", "DOUBLE", "COMPLEX"))
)
#: Constants beyond this many elements are taken for rounding ones, unread.
_READ_AT_MOST = 1 << 20
#: What makes negative numbers of others.
_NEGATING = frozenset({"Neg", "Sub"})
#: What rounds, but makes no negative numbers of others.
_AVERAGING = frozenset({"AveragePool", "Div", "GlobalAveragePool", "Mean", "ReduceMean", "Sqrt"})


def rounds(model: ModelProto) -> bool:
    """Return whether any node may round on small dyadic inputs: because of its operator, or because
    a constant is no such number. Operators of other domains count as rounding unless the model
    defines them itself."""
    return not _holds_only(
        model, lambda node: traits_of(node).values in (Values.SIZES, Values.EXACT), _is_dyadic
    )


def cancels(model: ModelProto) -> bool:
    """Return whether numbers of both signs may meet although no input is negative. Where they do
    not, a sum in another order overflows only if the original overflows, too."""

    def keeps_signs(node: NodeProto) -> bool:
        known = traits_of(node).values in (Values.SIZES, Values.EXACT)
        return op_of(node) not in _NEGATING and (known or op_of(node) in _AVERAGING)

    return not _holds_only(model, keeps_signs, _is_positive)


def _holds_only(
    model: ModelProto, node_fits: Callable[[NodeProto], bool], values_fit: Callable[[object], bool]
) -> bool:
    """Return whether all nodes fit, but for calls of functions, and all floats of constants."""
    own = set(map(function_key, model.functions))
    for place in scope.walk_model(model):
        node = place.node
        if not node_fits(node) and called_key(node) not in own:
            return False
        if not all(values_fit([one.f, *one.floats]) for one in node.attribute):
            return False
    return all(_tensor_fits(tensor, values_fit) for tensor in tensors(model))


def recurs(model: ModelProto) -> bool:
    """Return whether a loop carries floats: they and their errors may grow with each iteration."""
    return any(_carries_floats(place.node) for place in scope.walk_model(model))


def _carries_floats(node: NodeProto) -> bool:
    """Return whether a node is a loop that carries floats, or values that may be floats."""
    op = op_of(node)
    if op in RECURRENT:
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


def _tensor_fits(tensor: TensorProto, values_fit: Callable[[object], bool]) -> bool:
    """Return whether a constant holds no floats, or few enough to read that fit."""
    if tensor.data_type not in _FLOATS:
        return True
    if is_external(tensor) or int(np.prod(tensor.dims)) > _READ_AT_MOST:
        return False
    return values_fit(numpy_helper.to_array(tensor))


def _is_positive(values: object) -> bool:
    """Return whether no number is negative; complex ones count as negative."""
    numbers = np.asarray(values)
    return numbers.dtype.kind != "c" and not bool((numbers.astype(np.float64) < 0).any())


def _is_dyadic(values: object) -> bool:
    numbers = np.asarray(values)
    if numbers.dtype.kind == "c":
        return False
    numbers = numbers.astype(np.float64)
    odd = ~np.isfinite(numbers)
    with np.errstate(invalid="ignore"):
        return bool(np.all(odd | ((numbers * 4 == np.round(numbers * 4)) & (np.abs(numbers) <= 8))))
