"""Proof of opset steps: a small model at its old opset and converted, both in onnxruntime."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import (
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)
from steps_taken import proved, recorded

from passes.converters import opset as rule
from passes.converters.stamp import ir_version_for, stamp
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.names import Names
from passes.ir.site import Memory
from passes.rule import Edit, NothingToDo, Site
from passes.types.value_types import dims_of

Feeds = Mapping[str, np.ndarray]
EVERYWHERE = ("main", "if", "loop", "function")


def parsed(graph: str, opset: int) -> ModelProto:
    """A model of a graph in ONNX text: `(float[2] x) => (float[2] y) { y = Relu(x) }`."""
    ir_version = max(4, ir_version_for(opset))
    head = f'<ir_version: {ir_version}, opset_import: ["": {opset}]> graph '
    return onnx.parser.parse_model(head + graph)


def converted(model: ModelProto, target: int) -> ModelProto:
    """A converted copy of a model; the rule `opset` at every site, then the stamp.

    Raises:
        Refused: as the rule does.
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    read, names = Model(model), Names(scoping.all_names(o for _, o in scoping.owners(model)))
    memory = Memory()
    edits: dict[scoping.Key, dict[int, Edit]] = {}
    for place in scoping.walk_model(model):
        *_, outermost = place.scope.chain()
        written = read.opset(outermost.owner)
        if rule.considers(place.node, written, target):
            site = Site(read, place, written, target, names, memory=memory)
            with suppress(NothingToDo):
                edits.setdefault(place.scope.key, {})[place.index] = rule.rewrite(site)
    for scope in scoping.scopes(copy):
        _apply(scope, edits)
    stamp(copy, target)
    return copy


def prove(
    graph: str,
    *,
    opset: int,
    target: int,
    feeds: Feeds | None = None,
    places: Iterable[str] = EVERYWHERE,
    rtol: float = 0.0,
) -> ModelProto:
    """Assert that a graph gives the same, before and after its conversion, wherever it stands.

    Args:
        graph: in ONNX text, without a header.
        opset: the opset it is written in.
        target: the opset it is converted to.
        feeds: values of its inputs; what is missing is drawn.
        places: where the nodes stand: `main`, or in the body of an `if`, a `loop`, a `function`.
        rtol: 0 where the numbers must be equal, as they are where the adapter is exact.

    Returns:
        The converted model, with the nodes in the main graph.
    """
    model = parsed(graph, opset)
    given = {**drawn(model), **(feeds or {})}
    for place in places:
        whole, more = placed(model, place)
        onnx.checker.check_model(whole, full_check=True)
        with recorded(whole, target) as taken:
            after = converted(whole, target)
        onnx.checker.check_model(after, full_check=True)
        assert list(after.graph.input) == list(whole.graph.input)
        assert list(after.graph.output) == list(whole.graph.output)
        names = [value.name for value in whole.graph.output]
        before_values, after_values = (run(m, {**given, **more}) for m in (whole, after))
        for name, expected, actual in zip(names, before_values, after_values, strict=True):
            _assert_same(f"{place}: {name}", expected, actual, rtol)
        proved(taken, "onnxruntime")
    return converted(model, target)


def ops(model: ModelProto) -> list[str]:
    """The ops of the main graph, in order."""
    return [node.op_type for node in model.graph.node]


def initializers(model: ModelProto) -> dict[str, Any]:
    """The values of the main graph's initializers as lists, by name."""
    return {one.name: numpy_helper.to_array(one).tolist() for one in model.graph.initializer}


def run(model: ModelProto, feeds: Feeds) -> list[Any]:
    """The outputs of a model in onnxruntime, every node as it is written."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return list(session.run(None, dict(feeds)))


def drawn(model: ModelProto) -> dict[str, np.ndarray]:
    """Values for the inputs of a model; symbolic dims are 2."""
    rng = np.random.default_rng(7)
    fixed = scoping.initializer_names(model.graph)
    return {
        value.name: _drawn(value, rng) for value in model.graph.input if value.name not in fixed
    }


def _drawn(value: ValueInfoProto, rng: np.random.Generator) -> np.ndarray:
    shape = [dim if isinstance(dim, int) else 2 for dim in dims_of(value.type) or ()]
    dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
    if dtype == np.dtype(object):
        return rng.integers(-9, 9, shape).astype(str).astype(object)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    if np.issubdtype(dtype, np.unsignedinteger):
        return rng.integers(0, 9, shape).astype(dtype)
    if np.issubdtype(dtype, np.integer):
        return rng.integers(-9, 9, shape).astype(dtype)
    return np.asarray(rng.normal(size=shape) * 3, dtype)


def _assert_same(what: str, expected: Any, actual: Any, rtol: float) -> None:
    if not isinstance(expected, np.ndarray):
        assert type(expected) is type(actual), what
        assert repr(expected) == repr(actual), what
        return
    assert (expected.dtype, expected.shape) == (actual.dtype, actual.shape), what
    if rtol:
        np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol, err_msg=what)
    else:
        np.testing.assert_array_equal(actual, expected, err_msg=what)


def _apply(scope: scoping.Scope, edits: Mapping[scoping.Key, Mapping[int, Edit]]) -> None:
    owner, here = scope.owner, edits.get(scope.key, {})
    nodes: list[NodeProto] = []
    for index, node in enumerate(owner.node):
        for inner in scope.inner(index):
            _apply(inner, edits)
        nodes.extend(here[index].nodes if index in here else [node])
    tensors = {one.name: one for edit in here.values() for one in edit.initializers}
    kept = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del owner.node[:]
    owner.node.extend(kept)
    if isinstance(owner, GraphProto):
        owner.initializer.extend(tensors.values())
    else:
        assert not tensors, "a function has no initializers"


# -- the same nodes in another place -------------------------------------------------------


def placed(model: ModelProto, place: str) -> tuple[ModelProto, dict[str, np.ndarray]]:
    """The model with its nodes in a body, and what else must be fed."""
    whole = ModelProto()
    whole.CopyFrom(model)
    if place == "main":
        return whole, {}
    nodes = list(model.graph.node)
    del whole.graph.node[:]
    return {"if": _in_if, "loop": _in_loop, "function": _in_function}[place](whole, nodes)


def _inner_output(value: ValueInfoProto) -> ValueInfoProto:
    inner = ValueInfoProto()
    inner.CopyFrom(value)
    inner.name = f"inner_{value.name}"
    return inner


def _renamed(nodes: list[NodeProto], graph: GraphProto) -> list[NodeProto]:
    """The nodes with outputs that are called other than those of the model."""
    mapping = {value.name: f"inner_{value.name}" for value in graph.output}
    copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    for node in copies:
        scoping.rename_free(node, mapping)
        for position, name in enumerate(node.output):
            node.output[position] = mapping.get(name, name)
    return copies


def _in_if(whole: ModelProto, nodes: list[NodeProto]) -> tuple[ModelProto, dict[str, np.ndarray]]:
    graph = whole.graph
    body = helper.make_graph(
        _renamed(nodes, graph), "branch", [], [_inner_output(value) for value in graph.output]
    )
    outputs = [value.name for value in graph.output]
    graph.node.append(
        helper.make_node("If", ["which"], outputs, then_branch=body, else_branch=body)
    )
    graph.input.append(helper.make_tensor_value_info("which", TensorProto.BOOL, []))
    return whole, {"which": np.array(True)}


def _in_loop(whole: ModelProto, nodes: list[NodeProto]) -> tuple[ModelProto, dict[str, np.ndarray]]:
    """Two iterations, every output collected; the carried value is there for Loop-1."""
    graph = whole.graph
    flag, scalar = (TensorProto.BOOL, []), (TensorProto.FLOAT, [])
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go_in"], ["go_out"]),
            helper.make_node("Identity", ["carried_in"], ["carried_out"]),
            *_renamed(nodes, graph),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go_in", *flag),
            helper.make_tensor_value_info("carried_in", *scalar),
        ],
        [
            helper.make_tensor_value_info("go_out", *flag),
            helper.make_tensor_value_info("carried_out", *scalar),
            *(_inner_output(value) for value in graph.output),
        ],
    )
    inputs = ["loop_times", "", "loop_start"]
    outputs = ["carried", *(value.name for value in graph.output)]
    graph.node.append(helper.make_node("Loop", inputs, outputs, body=body))
    graph.input.append(helper.make_tensor_value_info("loop_times", TensorProto.INT64, []))
    graph.input.append(helper.make_tensor_value_info("loop_start", *scalar))
    for value in graph.output:
        if value.type.tensor_type.HasField("shape"):
            dims = list(value.type.tensor_type.shape.dim)
            value.type.tensor_type.shape.ClearField("dim")
            value.type.tensor_type.shape.dim.add(dim_param="collected")
            value.type.tensor_type.shape.dim.extend(dims)
    return whole, {"loop_times": np.array(2), "loop_start": np.array(0, np.float32)}


def _in_function(
    whole: ModelProto, nodes: list[NodeProto]
) -> tuple[ModelProto, dict[str, np.ndarray]]:
    graph = whole.graph
    fixed = {tensor.name for tensor in graph.initializer}
    inputs = [value.name for value in graph.input if value.name not in fixed] + sorted(fixed)
    outputs = [value.name for value in graph.output]
    whole.functions.append(
        FunctionProto(
            domain="local",
            name="Wrapped",
            input=inputs,
            output=outputs,
            node=nodes,
            opset_import=whole.opset_import,
        )
    )
    graph.node.append(helper.make_node("Wrapped", inputs, outputs, domain="local"))
    whole.opset_import.append(helper.make_opsetid("local", 1))
    whole.ir_version = max(8, whole.ir_version)
    return whole, {}
