"""Functions of the model: written once, called from several places, from each other too."""

from __future__ import annotations

from dataclasses import replace

from onnx import NodeProto, helper

from tests.instruments.generate import foreign
from tests.instruments.generate.block import Block, NotHere
from tests.instruments.generate.bodies import dtype, fill, made_by, nested, op_count
from tests.instruments.generate.odd import odd
from tests.instruments.generate.program import Signature
from tests.instruments.generate.templates import some_float
from tests.instruments.generate.values import FLOAT, INT64, Value

DOMAIN = "local"
FUNCTIONS_SINCE_IR = 8


@nested
def call(b: Block) -> None:
    """Call a function there is, or a new one. Before opset 9 it could hold no whole numbers."""
    program = b.program
    if program.ir < FUNCTIONS_SINCE_IR or program.opset < 9 or b.function:
        raise NotHere
    if not program.functions or (len(program.functions) < 3 and b.choices.one_in(3)):
        program.functions.append(_written(b))
    _call(b, b.choices.pick(program.functions))


def _call(b: Block, signature: Signature) -> None:
    fed = [b.want(name.elem, name.shape) for name in signature.inputs]
    rough = any(one.rough for one in fed)
    results = [
        replace(output, name=b.name(), rough=rough or output.rough) for output in signature.outputs
    ]
    names = [result.name for result in fed], [result.name for result in results]
    node = helper.make_node(signature.proto.name, *names, domain=DOMAIN)
    if signature.attributes:
        node.attribute.append(helper.make_attribute("alpha", 0.25 * b.choices.below(4)))
    b.add(node, results)


def _written(b: Block) -> Signature:
    """A function of fixed shapes, whose slope its callers choose at times."""
    program, choices = b.program, b.choices
    block = Block(program, depth=1, function=True)
    inputs = [Value(block.name(), FLOAT if not n else dtype(b), (2, 3)) for n in range(2)]
    block.visible.extend(inputs)
    chosen = choices.one_in(2)
    if chosen:
        result = replace(inputs[0], name=block.name())
        block.add(_with_slope(inputs[0], result), [result])
    if program.functions and choices.one_in(2):
        block.attempt(lambda inner: _call(inner, choices.pick(program.functions)))
    fill(block, op_count(b))
    ends = [one for one in made_by(block) if not one.sequence and all(map(_fixed, one.shape))]
    if not ends:
        raise NotHere
    outputs = [block.op("Identity", one) for one in ends[-2:]]
    proto = helper.make_function(
        DOMAIN,
        f"f{len(program.functions)}",
        [name.name for name in inputs],
        [output.name for output in outputs],
        block.nodes,
        [
            helper.make_opsetid(*one)
            for one in (("", program.opset), (DOMAIN, 1), (foreign.DOMAIN, 1))
        ],
        ["alpha"] if chosen else [],
    )
    return Signature(proto, inputs, outputs, {"alpha": 0.5} if chosen else {})


def _with_slope(value: Value, result: Value) -> NodeProto:
    node = helper.make_node("LeakyRelu", [value.name], [result.name])
    node.attribute.add(name="alpha", type=1, ref_attr_name="alpha")
    return node


def _fixed(dim: object) -> bool:
    return isinstance(dim, int)


@odd("foreign")
def call_of_a_known_name(b: Block) -> None:
    """A function named as an operator with a body, or as one whose output is nothing alike."""
    program = b.program
    if program.ir < foreign.SINCE_IR or program.opset < foreign.SINCE_OPSET:
        raise NotHere
    x = some_float(b)
    name = b.choices.pick(("Shape", *foreign.PLAIN))
    body = [helper.make_node("Neg", ["x"], ["out"])]
    if name == "Shape":
        body = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Neg", ["s"], ["out"])]
    if name not in program.foreign:
        program.foreign[name] = foreign.made(name, ["x"], body, program.opset)
    made = replace(x, name=b.name(), data=None)
    if name == "Shape":
        made = Value(made.name, INT64, (x.rank,))
    b.add(helper.make_node(name, [x.name], [made.name], domain=foreign.DOMAIN), [made])
