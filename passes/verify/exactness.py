"""Whether a model's arithmetic is exact on small dyadic inputs, and what depends on rounding.

Where it is exact, a rewrite that regroups sums must still give the same numbers; where it is
not, only near ones.
"""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, TensorProto, helper, numpy_helper

from passes import scope
from passes.operators import called_key, function_key, op_of
from passes.verify.draw_arrays import is_float
from passes.verify.executor import Outcome, Value

_FLOATS = frozenset(
    kind
    for name, kind in TensorProto.DataType.items()
    if name.startswith(("FLOAT", "BFLOAT", "DOUBLE", "COMPLEX"))
)
#: Float arithmetic that does not round small dyadic numbers; everything that only moves,
#: selects or compares is in `_MOVES`.
_EXACT = (
    "Abs Add Conv CumSum Einsum Gemm MatMul Mul Neg ReduceL1 ReduceProd ReduceSum "
    "ReduceSumSquare Relu Sub Sum"
)
_MOVES = (
    "And ArgMax ArgMin Ceil Clip Compress Concat ConcatFromSequence Constant ConstantOfShape "
    "DepthToSpace Equal Expand EyeLike Flatten Floor Gather GatherElements GatherND Greater "
    "GreaterOrEqual Hardmax Identity If IsInf IsNaN Less LessOrEqual Loop Max MaxPool Min "
    "NonZero Not OneHot Optional OptionalGetElement OptionalHasElement Or Pad Range ReduceMax "
    "ReduceMin Reshape ReverseSequence Round Scan Scatter ScatterElements ScatterND SequenceAt "
    "SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength SequenceMap "
    "Shape Sign Size Slice SpaceToDepth Split SplitToSequence Squeeze Tile TopK Transpose Trilu "
    "Unique Unsqueeze Where Xor Cast CastLike"
)
_KNOWN = frozenset(f"{_EXACT} {_MOVES}".split())
#: Constants beyond this many elements are taken for rounding ones, unread.
_READ_AT_MOST = 1 << 20


def rounds(model: ModelProto) -> bool:
    """Whether any node may round on small dyadic inputs: its op does, or a constant is no such
    number. Ops of other domains are taken to round, unless the model defines them itself."""
    own = set(map(function_key, model.functions))
    for place in scope.walk_model(model):
        node = place.node
        known = op_of(node) in _KNOWN
        if not known and called_key(node) not in own:
            return True
        if any(_attribute_rounds(attribute) for attribute in node.attribute):
            return True
    graphs = (graph for _, owner in scope.owners(model) for graph in scope.graphs_below(owner))
    return any(_is_rough(tensor) for graph in graphs for tensor in _constants(graph))


def rounded_outputs(model: ModelProto) -> frozenset[str]:
    """The outputs that depend on a float: where they are integers, rounding may decide them."""
    graph = model.graph
    tainted = {
        value.name
        for value in graph.input
        if value.type.WhichOneof("value") != "tensor_type"
        or value.type.tensor_type.elem_type in _FLOATS
    }
    tainted |= {tensor.name for tensor in graph.initializer if tensor.data_type in _FLOATS}
    tainted |= {sparse.values.name for sparse in graph.sparse_initializer}
    for node in graph.node:
        if op_of(node) == "Cast" or any(name in tainted for name in scope.free_names(node)):
            tainted.update(node.output)
    return frozenset(value.name for value in graph.output if value.name in tainted)


def small_enough(outcome: Outcome) -> bool:
    """Whether no float is so large that its last bits may have been rounded away: exact draws
    grow in loops. The bound is half of the bits of each dtype."""
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
    """Whether a constant holds floats that are no small dyadic numbers, or too many to read."""
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


def coarsest_epsilon(model: ModelProto) -> float:
    """The epsilon of the coarsest float type that a value of the model is declared or cast to.

    Executors compute a sigmoid in float each in its own way; cast to double, the difference is
    still one of floats. 0 where there is no float.
    """
    kinds: set[int] = set()
    tops: list[scope.Owner] = [model.graph, *model.functions]
    for top in tops:
        for owner in scope.graphs_below(top):
            kinds.update(_declared_kinds(owner))
            for node in owner.node:
                kinds.update(one.i for one in node.attribute if one.name == "to")
    floats = [helper.tensor_dtype_to_np_dtype(kind) for kind in kinds & _REAL]
    epsilons = [float(ml_dtypes.finfo(one).eps) for one in floats]
    return max(epsilons, default=0.0)


_REAL = frozenset(
    {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16}
)


def _declared_kinds(owner: scope.Owner) -> set[int]:
    values = list(owner.value_info)
    if isinstance(owner, GraphProto):
        values += [*owner.input, *owner.output]
        return {one.type.tensor_type.elem_type for one in values} | {
            one.data_type for one in owner.initializer
        }
    return {one.type.tensor_type.elem_type for one in values}
