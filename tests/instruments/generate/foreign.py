"""Functions of another domain that bear the names of ONNX's operators and do something else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
from onnx import AttributeProto, FunctionProto, NodeProto, helper

from tests.instruments.generate.values import BOOL, FLOATS, INTS, Value, array_of

DOMAIN = "my"
SINCE_IR = 8
SINCE_OPSET = 13
#: Operators of two inputs: what the function does in their place; `-` stands before swapped inputs.
_PAIRS = {
    "Add": "Sub",
    "Sub": "-Sub",
    "Mul": "Max",
    "Max": "Min",
    "Min": "Max",
    "And": "Or",
    "Or": "And",
    "Xor": "And",
    "Equal": "Less",
    "Less": "-Less",
    "Greater": "-Greater",
    "LessOrEqual": "Less",
    "GreaterOrEqual": "Less",
}
#: Operators that take a negated tensor, with whatever other inputs and attributes they have.
_MOVES = (
    *("Transpose", "Unsqueeze", "Squeeze", "Reshape", "Slice", "Gather", "Expand", "Tile", "Cast"),
    *("Flatten", "CumSum", "ReduceSum"),
)
#: What a function makes of x where ONNX has an operator of another kind, or with a body.
PLAIN = ("Scan", "Loop", "If", "Relu", "Abs", "Softmax")


def function(node: NodeProto, inputs: Sequence[Value], opset: int) -> FunctionProto | None:
    """A function named as the operator of a node, of the same signature; None if there is none."""
    if not inputs or len(inputs) < len(node.input):
        return None
    body = _body(node, inputs, opset)
    if body is None:
        return None
    names = list(onnx.defs.get_schema(node.op_type, opset, "").attributes)
    taken = [f"i{number}" for number in range(len(inputs))]
    named = names if node.op_type in _MOVES else []
    return made(node.op_type, taken, body, opset, named, doc=str(inputs[0].elem))


def made(
    name: str,
    taken: Sequence[str],
    body: Sequence[NodeProto],
    opset: int,
    attributes: Sequence[str] = (),
    doc: str = "",
) -> FunctionProto:
    """A function of one output, `out`."""
    opsets = [helper.make_opsetid("", opset)]
    proto = helper.make_function(DOMAIN, name, taken, ["out"], body, opsets, list(attributes))
    proto.doc_string = doc
    return proto


def fits(known: FunctionProto, node: NodeProto, inputs: Sequence[Value]) -> bool:
    """Whether a function that is there can stand for this node, too: as many inputs, this type."""
    alike = len(known.input) == len(node.input) == len(inputs) > 0
    return alike and known.doc_string == str(inputs[0].elem)


def _body(node: NodeProto, inputs: Sequence[Value], opset: int) -> list[NodeProto] | None:
    op, elem = node.op_type, inputs[0].elem
    if op == "Identity":
        return _less_than_itself(elem)
    if op == "Not":
        return [helper.make_node("Identity", ["i0"], ["out"])]
    if op == "Where":
        return [helper.make_node("Where", ["i0", "i2", "i1"], ["out"])]
    if op in _PAIRS and len(inputs) == 2:
        other = _PAIRS[op]
        order = ["i1", "i0"] if other[0] == "-" else ["i0", "i1"]
        if op == "Equal" and elem == BOOL:
            other = "Xor"
        return [helper.make_node(other.lstrip("-"), order, ["out"])]
    if op in _MOVES and elem in FLOATS:
        return _of_negated(op, len(inputs), opset)
    return None


def _less_than_itself(elem: int) -> list[NodeProto] | None:
    if elem == BOOL:
        return [helper.make_node("Not", ["i0"], ["out"])]
    if elem not in (*FLOATS, *INTS):
        return None
    limit = onnx.numpy_helper.from_array(array_of(elem, (), [2]))
    return [
        helper.make_node("Constant", [], ["limit"], value=limit),
        helper.make_node("Min", ["i0", "limit"], ["out"]),
    ]


def _of_negated(op: str, count: int, opset: int) -> list[NodeProto]:
    node = helper.make_node(op, ["n", *(f"i{number}" for number in range(1, count))], ["out"])
    for name, attribute in onnx.defs.get_schema(op, opset, "").attributes.items():
        # the stubs want onnx's own enum, which is an int when it runs
        kind: Any = int(attribute.type.value)
        node.attribute.append(AttributeProto(name=name, type=kind, ref_attr_name=name))
    return [helper.make_node("Neg", ["i0"], ["n"]), node]


def may_be_estranged(op: str, value: Value) -> bool:
    """Whether what reads the result can take other numbers: no index and no size is computed so."""
    taken = value.elem in (*FLOATS, BOOL) or op in ("Less", "Greater", "Equal")
    return taken and not value.sequence
