"""Steps of reductions along axes."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto, TensorProto

from converters.attribute_inputs import ints_as_input
from converters.conversion import Conversion
from converters.steps import adapter, identical
from converters.through_float import through_float
from passes.types.value_types import elem_type_of

_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")


def reduce_axes(node: NodeProto, at: Conversion) -> Sequence[NodeProto]:
    """The attribute `axes` becomes the optional second input, int64 (n).

    Without axes all are reduced, as before: the new `noop_with_empty_axes` is 0 by default.
    """
    return ints_as_input(node, at, "axes")


def reduce_logarithm_28(node: NodeProto, at: Conversion) -> Sequence[NodeProto]:
    """Integers are no longer allowed: they are reduced in double and rounded towards zero.

    Input and output (any shape) of int32, int64, uint32 or uint64. A value of unknown type is
    taken to be a float; an integer would not pass the checker.
    """
    elem_type = elem_type_of(at.type_of(node.input[0]))
    if elem_type not in _NO_LOGARITHM_28:
        return [node]
    return through_float(node, at, TensorProto.DOUBLE)


_NO_LOGARITHM_28 = (
    TensorProto.INT32,
    TensorProto.INT64,
    TensorProto.UINT32,
    TensorProto.UINT64,
)

for _name in _REDUCTIONS:
    identical(f"Reduce{_name}", 11, 13)
    adapter(f"Reduce{_name}", 18)(reduce_axes)
for _name in ("Max", "Min"):
    identical(f"Reduce{_name}", 12, 20)
for _name in ("LogSum", "LogSumExp"):
    adapter(f"Reduce{_name}", 28, exact=False)(reduce_logarithm_28)
identical("ReduceSum", 11)
adapter("ReduceSum", 13)(reduce_axes)

for _op in ("ArgMax", "ArgMin"):
    identical(_op, 11, 13)
    identical(_op, 12, because="select_last_index is new; by default the first one wins, as ever")
identical("CumSum", 14)
