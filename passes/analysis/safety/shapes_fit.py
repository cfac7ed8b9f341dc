"""Whether the shapes at hand keep an op from failing where the original may not have run it.

A body that never runs, or a branch that is not taken, may hold ops that do not fit what they
would read. What is not proven to fit here may fail. That two sizes are declared with one symbol
is a proof for inputs of the model, and elsewhere where the user lets inputs be taken for valid.
"""

from __future__ import annotations

from collections.abc import Iterator

from onnx import NodeProto

from passes.analysis.safety.shape_checks import CHECKS, Reading
from passes.ir import scope as scoping
from passes.ir.operators import op_of

# fmt: off
_ELEMENTWISE = frozenset(
    {
        "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Cast",
        "CastLike", "Ceil", "Celu", "Constant", "Cos", "Cosh", "Elu", "Erf", "Exp", "Floor",
        "Gelu", "HardSigmoid", "HardSwish", "Identity", "IsInf", "IsNaN", "LeakyRelu", "Log",
        "Mish", "Neg", "Not", "Reciprocal", "Relu", "Round", "Selu", "Shape", "Sigmoid", "Sign",
        "Sin", "Sinh", "Size", "Softplus", "Softsign", "Sqrt", "Swish", "Tan", "Tanh",
        "ThresholdedRelu",
    }
)
_BROADCAST = frozenset(
    {
        "Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal",
        "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul",
        "Or", "Pow", "Sub", "Sum", "Where", "Xor",
    }
)
# fmt: on
_BROADCASTS_SINCE = {"Max": 8, "Mean": 8, "Min": 8, "Sum": 8}
_ALL_BROADCAST_SINCE = 7


def fits(node: NodeProto, reading: Reading) -> bool:
    """Whether a node of the standard domain is proven to fit the shapes that it reads."""
    if any(one.ref_attr_name for one in node.attribute):
        return op_of(node) == "Constant"
    if op_of(node) in _ELEMENTWISE:
        return True
    dims = reading.dims(node)
    if dims is None or reading.opset < _ALL_BROADCAST_SINCE:
        return False
    if op_of(node) in _BROADCAST:
        since = _BROADCASTS_SINCE.get(op_of(node), _ALL_BROADCAST_SINCE)
        return reading.opset >= since and reading.broadcast(dims) is not None
    check = CHECKS.get("Reduce" if op_of(node).startswith("Reduce") else op_of(node))
    return check is not None and check(node, dims, reading)


def goes_by_element(node: NodeProto) -> bool:
    """Whether an op of the standard domain gives an element for each element it reads."""
    return op_of(node) in _ELEMENTWISE or op_of(node) in _BROADCAST


def is_known_to_need(node: NodeProto, reading: Reading) -> bool:
    """Whether an op, of those in a node of which it is known what shapes they fit, is not proven
    to fit the ones that it reads."""
    return any(_is_checked(one) and not fits(one, reading) for one in leaves(node))


def _is_checked(node: NodeProto) -> bool:
    known = _ELEMENTWISE | _BROADCAST | CHECKS.keys()
    return op_of(node) in known or op_of(node).startswith("Reduce")


def leaves(node: NodeProto) -> Iterator[NodeProto]:
    """A node, or those in its bodies that have none themselves."""
    pending = [node]
    while pending:
        one = pending.pop()
        if scoping.holds_graphs(one):
            pending.extend(inner for _, graph in scoping.subgraphs(one) for inner in graph.node)
        else:
            yield one
