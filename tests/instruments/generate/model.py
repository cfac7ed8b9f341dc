"""A whole model: inputs, weights, some ops and loops, outputs, and one part to leave alone."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper

from tests.instruments.generate import (
    deep,
    foreign,
    functions,
    ifs,
    loops,
    ops_elementwise,
    ops_sequences,
    ops_shapes,
    ops_sums,
    scans,
)
from tests.instruments.generate.block import Block
from tests.instruments.generate.bodies import fill
from tests.instruments.generate.choices import Choices
from tests.instruments.generate.functions import DOMAIN, FUNCTIONS_SINCE_IR
from tests.instruments.generate.odd import KINDS, OPSETS, templates
from tests.instruments.generate.program import Program
from tests.instruments.generate.values import FLOAT, INNER, INT64, Value

#: By how often they are drawn. Above the last, onnxruntime runs nothing.
_OPSETS = (8, 8, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26)
_MOST_OUTPUTS = 8
_OVERRIDABLE_SINCE_IR = 4
#: The files that enter what a block may write. Add a new one here.
FAMILIES = (
    deep,
    functions,
    ifs,
    loops,
    ops_elementwise,
    ops_sequences,
    ops_shapes,
    ops_sums,
    scans,
)
LOOPS = (scans.scan, loops.counted, loops.conditional)


@dataclass(frozen=True)
class Generated:
    """A model, and what its inputs mean (see `Program`); `drawn` and `odd` make it again.

    `careless`: bodies return what is not theirs, which onnxruntime answers with whatever is there.
    """

    model: ModelProto
    roles: dict[str, str]
    drawn: list[int]
    odd: Collection[str] | None = None
    careless: bool = False


def generate(choices: Choices, odd: Collection[str] | None = None) -> Generated:
    """A model that onnx's checker accepts and that runs on inputs of `feeds.draw`.

    `odd`: the kinds of `odd.KINDS` that it is to have, drawn where that is None.
    """
    program = _program(choices, odd)
    main = Block(program)
    for _ in range(1 + choices.below(2)):
        main.input(FLOAT, choices.pick([("B", "T", 2), ("T", 2), (2, 3), ("B", 3)]))
    fill(main, choices.below(4))
    for _ in range(3):
        if main.attempt(choices.pick(LOOPS)):
            break
    for write in templates(program.odd):
        main.attempt(write)
    fill(main, choices.size(6))
    model = _assembled(main)
    return Generated(model, dict(program.roles), list(choices.drawn), odd, program.careless)


def _program(choices: Choices, odd: Collection[str] | None) -> Program:
    drawn = {kind for kind, count in KINDS.items() if choices.one_in(count)}
    kinds = drawn if odd is None else set(odd)
    opsets = [one for one in _OPSETS if all(one in OPSETS.get(kind, (one,)) for kind in kinds)]
    opset = choices.pick(opsets if opsets and choices.below(4) else _OPSETS)
    (smallest,) = {ir for _, ir, one, *_ in helper.VERSION_TABLE if one == opset} or {8}
    irs = (8, 10) if "foreign" in kinds else (4, 8, 10)
    ir = smallest if choices.one_in(2) else max(smallest, choices.pick(irs))
    return Program(
        choices,
        opset,
        ir,
        reuses_names=choices.one_in(2),
        careless=choices.one_in(8),
        budget=10 + choices.size(60),
        odd=frozenset(kinds),
    )


def _assembled(main: Block) -> ModelProto:
    program = main.program
    witness = _left_alone(main)
    outputs = [witness, *map(_outer, [main] * _MOST_OUTPUTS, _unread(main))]
    graph = helper.make_graph(
        main.nodes,
        "generated",
        [name.info() for name in program.inputs],
        [output.info() for output in outputs],
        [*program.initializers, *main.initializers],
        doc_string="a random model",
    )
    _drop_unread(graph)
    if program.ir < _OVERRIDABLE_SINCE_IR or program.choices.one_in(8):
        for tensor in graph.initializer:
            graph.input.append(
                helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            )
    if program.choices.one_in(3):
        names = {output.name for output in outputs}
        known = {name for node in main.nodes for name in node.output} - names
        graph.value_info.extend(one.info() for one in main.visible if one.name in known)
    return _model(program, graph)


def _model(program: Program, graph: onnx.GraphProto) -> ModelProto:
    opsets = [helper.make_opsetid("", program.opset)]
    if program.functions and program.ir >= FUNCTIONS_SINCE_IR:
        opsets.append(helper.make_opsetid(DOMAIN, 1))
    if program.foreign:
        opsets.append(helper.make_opsetid(foreign.DOMAIN, 1))
    model = helper.make_model(
        graph,
        opset_imports=opsets,
        ir_version=program.ir,
        producer_name="tests.instruments.generate",
        functions=[*(function.proto for function in program.functions), *program.foreign.values()],
    )
    model.metadata_props.add(key="kept", value="as it is")
    return model


def _outer(main: Block, value: Value) -> Value:
    """A value as an output of the main graph: of a type that executors give."""
    if value.elem not in INNER:
        return value
    if value.sequence:
        value = main.op("ConcatFromSequence", value, axis=0, new_axis=1)
    return main.op("Cast", value, to=FLOAT)


def _left_alone(main: Block) -> Value:
    """A node beside all else, which no rewrite of control flow may touch."""
    value = main.program.input(INT64, ("B",))
    made = Value("left_alone", INT64, ("B",))
    node = helper.make_node("Identity", [value.name], [made.name], name="witness")
    node.doc_string = "to be left as it is"
    main.nodes.append(node)
    return made


def _unread(main: Block) -> list[Value]:
    """The outputs: what nothing reads, the last first."""
    read = {name for node in main.nodes for name in _reads(node)}
    made = {name for node in main.nodes for name in node.output}
    ends = [one for one in main.visible if one.name in made and one.name not in read]
    return ends[::-1][:_MOST_OUTPUTS]


def _reads(node: NodeProto) -> set[str]:
    """Every name that a node or its bodies read."""
    names = set(node.input)
    for attribute in node.attribute:
        for inner in attribute.g.node:
            names |= _reads(inner)
        names.update(value.name for value in attribute.g.output)
    return names


def _drop_unread(graph: onnx.GraphProto) -> None:
    """Drop inputs and weights of statements that were given up."""
    read = {name for node in graph.node for name in _reads(node)}
    inputs = [value for value in graph.input if value.name in read]
    weights: list[TensorProto] = [tensor for tensor in graph.initializer if tensor.name in read]
    del graph.input[:], graph.initializer[:]
    graph.input.extend(inputs)
    graph.initializer.extend(weights)
