"""Purity and speculation: which nodes may be run again, or on values the original never saw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from onnx import GraphProto, NodeProto, TensorProto, TypeProto, numpy_helper

from passes.ir import scope as scoping
from passes.ir.constant_nodes import constant_tensor
from passes.ir.operators import is_onnx_domain, op_of
from passes.loops.form import LoopForm
from passes.types.value_types import dims_of, elem_type_of, has_elements

#: Ops whose result is drawn anew each time: never duplicated, dropped or reordered.
RANDOM = frozenset(
    {
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
        "Multinomial",
        "Bernoulli",
    }
)
_TRAINING = {"Dropout": 2}  # random where this input says so
_KNOWN_DOMAINS = frozenset({"", "ai.onnx", "ai.onnx.ml"})

#: Ops that cannot fail on any value of the right type and shape, and whose output size does not
#: depend on values: they may run on values that the original never saw.
# fmt: off
SPECULATABLE = frozenset(
    {
        "Abs", "Acos", "Acosh", "Add", "And", "Asin", "Asinh", "Atan", "Atanh", "AveragePool",
        "BatchNormalization", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor",
        "Cast", "CastLike", "Ceil", "Celu", "Clip", "Concat", "Constant", "Conv", "Cos", "Cosh",
        "Elu", "Equal", "Erf", "Exp", "Flatten", "Floor", "Gelu", "Gemm", "GlobalAveragePool",
        "GlobalLpPool", "GlobalMaxPool", "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish",
        "Hardmax", "Identity", "InstanceNormalization", "IsInf", "IsNaN", "LRN",
        "LayerNormalization", "LeakyRelu", "Less", "LessOrEqual", "Log", "LogSoftmax", "LpPool",
        "MatMul", "Max", "MaxPool", "Mean", "Min", "Mish", "Mul", "Neg", "Not", "Or", "PRelu",
        "Reciprocal", "Relu", "Round", "Selu", "Shape", "Sigmoid", "Sign", "Sin", "Sinh", "Size",
        "Softmax", "Softplus", "Softsign", "Sqrt", "Sub", "Sum", "Swish", "Tan", "Tanh",
        "ThresholdedRelu", "Transpose", "Where", "Xor",
    }
)
# fmt: on
#: Ops that cannot fail where these inputs (axes, sizes, lengths) are omitted, or fixed when the
#: model is rewritten.
_SPECULATABLE_IF_FIXED = {
    "CumSum": (1,),
    "Expand": (1,),
    "GRU": (4,),
    "LSTM": (4,),
    "Pad": (1, 3),
    "RNN": (4,),
    "ReduceL1": (1,),
    "ReduceL2": (1,),
    "ReduceLogSum": (1,),
    "ReduceLogSumExp": (1,),
    "ReduceMean": (1,),
    "ReduceProd": (1,),
    "ReduceSum": (1,),
    "ReduceSumSquare": (1,),
    "Reshape": (1,),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "Squeeze": (1,),
    "Tile": (1,),
    "Unsqueeze": (1,),
}


#: Ops that read sequences, and end onnxruntime's process where there is no row of them (GRU also
#: where there is no time step or feature).
NEEDS_SEQUENCES = frozenset({"GRU", "LSTM"})


def is_pure(node: NodeProto) -> bool:
    """Whether a node gives the same result each time, at every depth.

    Of functions and operators of other domains nothing is known, so they do not.
    """
    if op_of(node) in RANDOM or node.domain not in _KNOWN_DOMAINS:
        return False
    if op_of(node) in _TRAINING and len(node.input) > _TRAINING[op_of(node)]:
        return not node.input[_TRAINING[op_of(node)]]
    return all(is_pure(inner) for _, graph in scoping.subgraphs(node) for inner in graph.node)


def speculatable(
    body: GraphProto,
    fixed: Iterable[str] = (),
    types: Mapping[str, TypeProto] | None = None,
) -> list[NodeProto]:
    """The nodes of a body that must not run on values that the original never saw.

    Empty where the whole body may be speculated. `fixed` are names of values that are constant;
    `types` of names that are unique at every depth let floats be divided, bodies be run, and
    sequences be read that are there.
    That a value is a string, which a Cast may fail on, is taken from the body's declarations.
    """
    types = types or {}
    known = {"", *fixed} | scoping.initializer_names(body)
    texts = _declared_texts(body)
    texts |= {name for name, one in types.items() if elem_type_of(one) == TensorProto.STRING}
    culprits = []
    for node in body.node:
        reads_text = not texts.isdisjoint(node.input)
        if op_of(node) == "Constant":
            known.update(node.output)
        elif (reads_text and op_of(node) in _PARSERS) or not _may_run(node, known, types):
            culprits.append(node)
        if reads_text:  # by what it gives on: of ops on strings, most give strings
            texts.update(filter(None, node.output))
    return culprits


_PARSERS = ("Cast", "CastLike")


def _declared_texts(body: GraphProto) -> set[str]:
    values = (*body.input, *body.value_info, *body.output)
    texts = {one.name for one in values if elem_type_of(one.type) == TensorProto.STRING}
    return texts | {one.name for one in body.initializer if one.data_type == TensorProto.STRING}


def _may_run(node: NodeProto, known: set[str], types: Mapping[str, TypeProto]) -> bool:
    if not is_onnx_domain(node.domain):
        return False
    positions = _SPECULATABLE_IF_FIXED.get(op_of(node))
    if op_of(node) in NEEDS_SEQUENCES and not has_elements(types.get(node.input[0])):
        return False
    if positions is not None:
        return all(node.input[at] in known for at in positions if at < len(node.input))
    if op_of(node) in _FAIL_ON_INTEGERS:
        return elem_type_of(types.get(node.input[0])) in _FLOATS
    if op_of(node) in ("If", "Loop", "Scan"):
        return _ends_in_one_shape(node, known, types) and not any(
            speculatable(graph, known, types) for _, graph in scoping.subgraphs(node)
        )
    return op_of(node) in SPECULATABLE


_FAIL_ON_INTEGERS = ("Div", "Mod", "Pow")  # on 0, and on negative exponents
_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)


def _ends_in_one_shape(node: NodeProto, known: set[str], types: Mapping[str, TypeProto]) -> bool:
    """Whether a node with bodies ends, and its outputs have the same shapes, whatever it reads."""
    if op_of(node) == "If":
        shapes = [
            [dims_of(types.get(value.name)) for value in graph.output]
            for _, graph in scoping.subgraphs(node)
        ]
        fixed = all(dims is not None and None not in dims for dims in shapes[0])
        return fixed and all(one == shapes[0] for one in shapes)
    if op_of(node) == "Loop":
        trips, condition = node.input[:2]
        return bool(trips) and trips in known and not condition and _goes_on(node)
    return _scans_something(node, types)


def _goes_on(loop: NodeProto) -> bool:
    """Whether nothing that the body of a Loop computes ends it."""
    form = LoopForm.from_node(loop, opset=1)  # a Loop is read alike in all
    nodes = (constant_tensor(node) for node in form.body.node)
    fixed = {one.name: one for one in (*form.body.initializer, *filter(None, nodes))}
    return form.goes_on(lambda name: numpy_helper.to_array(fixed[name]) if name in fixed else None)


def _scans_something(node: NodeProto, types: Mapping[str, TypeProto]) -> bool:
    """Whether what a Scan scans has elements, and is of one length: onnxruntime fails on none."""
    if any(one.ref_attr_name for one in node.attribute):
        return False  # the caller of a function chooses what is scanned
    said = {one.name: one for one in node.attribute}
    count = said["num_scan_inputs"].i
    axes = said["scan_input_axes"].ints if "scan_input_axes" in said else [0] * count
    scanned = [types.get(name) for name in node.input[len(node.input) - count :]]
    if not all(map(has_elements, scanned)):
        return False
    shapes = [dims_of(one) or () for one in scanned]
    return len({dims[axis] for dims, axis in zip(shapes, axes, strict=True)}) <= 1
