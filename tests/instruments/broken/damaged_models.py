"""Models that protobuf reads well, and that are wrong: names, counts, types, sizes, nesting."""

from __future__ import annotations

import random
from collections.abc import Callable

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper

from passes.ir import scope as scoping

Damage = Callable[[random.Random, ModelProto], None]

_ATTRIBUTE_TYPES = (
    AttributeProto.UNDEFINED,
    AttributeProto.INT,
    AttributeProto.TENSOR,
    AttributeProto.GRAPHS,
    AttributeProto.STRINGS,
)
ABSURD = (-1, 0, 1 << 31, 1 << 62, -(1 << 62), (1 << 63) - 1)


def _node(rng: random.Random, model: ModelProto) -> NodeProto:
    return rng.choice([place.node for place in scoping.walk_model(model)])


def _graph(rng: random.Random, model: ModelProto) -> GraphProto:
    return rng.choice(
        [one for one in scoping.graphs_below(model.graph) if isinstance(one, GraphProto)]
    )


def _loop(rng: random.Random, model: ModelProto) -> NodeProto:
    nodes = [place.node for place in scoping.walk_model(model)]
    return rng.choice([node for node in nodes if node.op_type in ("Loop", "Scan", "If")] or nodes)


def undefined_name(rng: random.Random, model: ModelProto) -> None:
    node = _node(rng, model)
    del node.input[:1]
    node.input.insert(0, "nobody")


def cycle(rng: random.Random, model: ModelProto) -> None:
    owner = _graph(rng, model)
    first, last = owner.node[0], owner.node[-1]
    first.input.extend(last.output[:1])


def own_output(rng: random.Random, model: ModelProto) -> None:
    node = _node(rng, model)
    node.input.extend(node.output[:1])


def duplicate_name(rng: random.Random, model: ModelProto) -> None:
    owner = _graph(rng, model)
    node = rng.choice(owner.node)
    owner.node.append(node)


def output_hides_input(rng: random.Random, model: ModelProto) -> None:
    owner, node = _graph(rng, model), _node(rng, model)
    if node.output and owner.input:
        node.output[0] = owner.input[0].name


def fewer_inputs(rng: random.Random, model: ModelProto) -> None:
    del _node(rng, model).input[rng.randrange(2) :]


def more_inputs(rng: random.Random, model: ModelProto) -> None:
    node = _loop(rng, model)
    node.input.extend([*node.input, ""] * 3)


def other_outputs(rng: random.Random, model: ModelProto) -> None:
    node = _node(rng, model)
    if rng.random() < 0.5:
        node.ClearField("output")
    node.output.append("extra")


def body_lost(rng: random.Random, model: ModelProto) -> None:
    node = _loop(rng, model)
    if rng.random() < 0.5:
        node.ClearField("attribute")
    for attribute in node.attribute:
        attribute.g.Clear()


def body_arity(rng: random.Random, model: ModelProto) -> None:
    graph = _graph(rng, model)
    field = rng.choice((graph.input, graph.output))
    if field and rng.random() < 0.5:
        del field[rng.randrange(len(field))]
    else:
        field.add(name=rng.choice(("", "odd", field[0].name if field else "odd")))


def attribute_type(rng: random.Random, model: ModelProto) -> None:
    for attribute in _loop(rng, model).attribute:
        attribute.type = rng.choice(_ATTRIBUTE_TYPES)


def attribute_number(rng: random.Random, model: ModelProto) -> None:
    node = _loop(rng, model)
    for attribute in node.attribute:
        attribute.i = rng.choice(ABSURD)
        attribute.ints[:] = [rng.choice(ABSURD) for _ in attribute.ints]
    node.attribute.append(helper.make_attribute("scan_input_axes", [rng.choice(ABSURD)]))


def attribute_twice(rng: random.Random, model: ModelProto) -> None:
    node = _node(rng, model)
    node.attribute.extend(list(node.attribute) * 2)


def huge_attribute(rng: random.Random, model: ModelProto) -> None:
    name = rng.choice(("scan_input_axes", "directions", "axes", "nonsense"))
    _loop(rng, model).attribute.append(helper.make_attribute(name, [1] * 1_000_000))


def absurd_dim(rng: random.Random, model: ModelProto) -> None:
    graph = _graph(rng, model)
    for value in (*graph.input, *graph.output, *graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if rng.random() < 0.5:
                dim.dim_value = rng.choice(ABSURD)


def absurd_tensor(rng: random.Random, model: ModelProto) -> None:
    graph = model.graph
    shape = [rng.choice(ABSURD) for _ in range(rng.randrange(1, 4))]
    tensor = TensorProto(name="absurd", dims=shape, data_type=rng.choice((1, 7, 8, 999)))
    tensor.raw_data = bytes(rng.choice((0, 3, 8)))
    graph.initializer.append(tensor)
    _node(rng, model).input.append("absurd")


def weights_damaged(rng: random.Random, model: ModelProto) -> None:
    for tensor in model.graph.initializer:
        tensor.data_type = rng.choice((0, 1, 7, 8, 999, tensor.data_type))
        tensor.raw_data = tensor.raw_data[: rng.randrange(9)]
    for place in scoping.walk_model(model):
        for attribute in place.node.attribute:
            if attribute.name == "value":
                attribute.t.dims.append(rng.choice(ABSURD))


def absurd_trips(rng: random.Random, model: ModelProto) -> None:
    count = helper.make_tensor("trips", TensorProto.INT64, [], [rng.choice(ABSURD)])
    model.graph.initializer.append(count)
    for place in scoping.walk_model(model):
        if place.node.op_type == "Loop" and place.node.input:
            place.node.input[0] = "trips"


def opsets(rng: random.Random, model: ModelProto) -> None:
    if rng.random() < 0.3:
        model.ClearField("opset_import")
    for entry in model.opset_import:
        entry.version = rng.choice((*ABSURD, 1, 5, 27, 99))
    if rng.random() < 0.3:
        model.opset_import.extend(list(model.opset_import))


def ir_version(rng: random.Random, model: ModelProto) -> None:
    model.ir_version = rng.choice((*ABSURD, 1, 2, 99))


def unknown_op(rng: random.Random, model: ModelProto) -> None:
    node = _node(rng, model)
    node.op_type, node.domain = rng.choice((("", ""), ("Nonsense", ""), ("Loop", "elsewhere")))


def no_graph(rng: random.Random, model: ModelProto) -> None:
    if rng.random() < 0.5:
        model.ClearField("graph")
    model.graph.ClearField("name")


def element_type(rng: random.Random, model: ModelProto) -> None:
    graph = _graph(rng, model)
    for value in (*graph.input, *graph.output):
        value.type.tensor_type.elem_type = rng.choice((0, 3, 8, 9, 999, -5))


def no_types(rng: random.Random, model: ModelProto) -> None:
    graph = _graph(rng, model)
    for value in (*graph.input, *graph.output):
        value.ClearField("type")


def endless_function(rng: random.Random, model: ModelProto) -> None:
    """A function that calls itself, and is called."""
    call = helper.make_node("f", [], ["y"], domain="local")
    opset = helper.make_opsetid("", max(1, model.opset_import[0].version))
    own = helper.make_opsetid("local", 1)
    model.functions.append(helper.make_function("local", "f", [], ["y"], [call], [opset, own]))
    model.opset_import.append(own)
    model.ir_version = 10
    model.graph.node.append(helper.make_node("f", [], ["called"], domain="local"))


DAMAGES: tuple[Damage, ...] = (
    *(undefined_name, cycle, own_output, duplicate_name, output_hides_input, fewer_inputs),
    *(more_inputs, other_outputs, body_lost, body_arity, attribute_type, attribute_number),
    *(attribute_twice, huge_attribute, absurd_dim, absurd_tensor, weights_damaged, absurd_trips),
    *(opsets, ir_version, unknown_op, no_graph, element_type, no_types, endless_function),
)


def damaged(rng: random.Random, model: ModelProto) -> tuple[str, bytes]:
    """What was done, and the bytes; sometimes two things at once."""
    copy, names = ModelProto(), []
    copy.CopyFrom(model)
    for _ in range(rng.choice((1, 1, 1, 2))):
        damage = rng.choice(DAMAGES)
        if copy.graph.node and copy.opset_import:
            damage(rng, copy)
            names.append(damage.__name__)
    return "+".join(names), copy.SerializeToString()
