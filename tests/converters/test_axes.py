"""The steps of ops that add, drop, order or join axes, run at the old opset and converted."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.reference
import pytest
from calls import prove_call
from onnx import AttributeProto, helper, numpy_helper
from proving import converted, drawn, initializers, ops, parsed, prove, run

pytestmark = pytest.mark.sampled

# -- Squeeze and Unsqueeze -----------------------------------------------------------------


@pytest.mark.parametrize("target", [11, 13, 21, 26])
@pytest.mark.parametrize(
    ("attributes", "before", "after"),
    [
        ("<axes = [0]>", "1,2,1", "2,1"),
        ("<axes = [0, 2]>", "1,2,1", "2"),
        ("<axes = [0, 1]>", "1,1", ""),
        ("", "1,2,1", "2"),
        ("", "2,3", "2,3"),
        ("<axes = [0]>", "1,N,0", "N,0"),
    ],
)
def test_squeeze(attributes: str, before: str, after: str, target: int) -> None:
    graph = f"(float[{before}] x) => (float[{after}] y) {{ y = Squeeze{attributes}(x) }}"
    graph = graph.replace("[]", "")
    assert ops(prove(graph, opset=7, target=target)) == ["Squeeze"]


@pytest.mark.parametrize("axes", ["-1", "-1, 0", "-3, 2"])
def test_squeeze_of_negative_axes(axes: str) -> None:
    shape = {1: "1,2", 2: "2"}[len(axes.split(","))]
    graph = f"(float[1,2,1] x) => (float[{shape}] y) {{ y = Squeeze<axes = [{axes}]>(x) }}"
    after = prove(graph, opset=11, target=26)
    assert list(initializers(after).values()) == [[int(one) for one in axes.split(",")]]


@pytest.mark.parametrize("target", [11, 13, 26])
@pytest.mark.parametrize("kind", ["float", "string", "bool", "int64"])
@pytest.mark.parametrize(
    ("axes", "before", "after"),
    [("0", "2", "1,2"), ("3, 0", "2,3", "1,2,3,1"), ("0, 1", "", "1,1"), ("1", "N,0", "N,1,0")],
)
def test_unsqueeze(kind: str, axes: str, before: str, after: str, target: int) -> None:
    graph = (
        f"""({kind}[{before}] x) => ({kind}[{after}] y) {{ y = Unsqueeze<axes = [{axes}]>(x) }}"""
    )
    after_model = prove(graph.replace("[]", ""), opset=7, target=target)
    assert ops(after_model) == ["Unsqueeze"]


def test_unsqueeze_of_negative_axes() -> None:
    graph = "(float[2,3] x) => (float[1,2,3,1] y) { y = Unsqueeze<axes = [-1, -4]>(x) }"
    prove(graph, opset=11, target=26)


def _with_empty_axes(op: str, opset: int) -> onnx.ModelProto:
    """ONNX text cannot say an empty list."""
    model = parsed(f"(float[1,2,1] x) => (float[A,B,C] y) {{ y = {op}(x) }}", opset)
    model.graph.node[0].attribute.append(AttributeProto(name="axes", type=AttributeProto.INTS))
    if op == "Squeeze":
        del model.graph.output[0].type.tensor_type.shape.dim[1:]
    return model


@pytest.mark.parametrize("op", ["Squeeze", "Unsqueeze"])
def test_an_empty_list_of_axes(op: str) -> None:
    """It stays: onnxruntime's Squeeze takes it for no list, inference does not."""
    model = _with_empty_axes(op, 7)
    after = converted(model, 26)
    onnx.checker.check_model(after)
    assert initializers(after) == {"axes": []}
    feeds = drawn(model)
    np.testing.assert_array_equal(run(after, feeds)[0], run(model, feeds)[0])


@pytest.mark.parametrize(("op", "shape"), [("Squeeze", "2,1"), ("Unsqueeze", "1,1,2,1")])
def test_axes_that_a_call_gives(op: str, shape: str) -> None:
    model = f"(float[1,2,1] x) => (float[{shape}] y) {{ y = local.F<at = [0]>(x) }}"
    function = f"F <at> (x) => (y) {{ y = {op}<axes: ints = @at>(x) }}"
    assert prove_call(model, function, opset=7, target=26) == ["Constant", op]


def test_an_attribute_that_becomes_an_input_in_a_graph_and_in_a_body() -> None:
    """The C++ version converter gives both inputs one name."""
    graph = """(bool go, float[1,2,1] x) => (float[2] y) {
        s = Squeeze<axes = [0]>(x)
        y = If(go) <
            then_branch = yes () => (float[2] a) { a = Squeeze<axes = [1]>(s) },
            else_branch = no () => (float[2] b) { t = Squeeze<axes = [0]>(x) b = Squeeze(t) }
        >
    }"""
    for go in (True, False):
        feeds = {"go": np.array(go)}
        after = prove(graph, opset=8, target=26, feeds=feeds, places=["main", "loop", "function"])
    branches = [attribute.g for attribute in after.graph.node[1].attribute]
    names = [one.name for graph in (after.graph, *branches) for one in graph.initializer]
    assert len(names) == len(set(names)) == 3


def test_an_input_that_is_a_sparse_initializer() -> None:
    """The C++ version converter finds it undefined; onnx has no inference for it."""
    model = parsed("(float[2] x) => (float[2] y) { s = Squeeze<axes = [0]>(w) y = Add(x, s) }", 11)
    values = numpy_helper.from_array(np.array([2.5], np.float32), "w")
    places = numpy_helper.from_array(np.array([[0, 1]]), "w_places")
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [1, 2]))
    after = converted(model, 26)
    onnx.checker.check_model(after)
    assert after.graph.sparse_initializer == model.graph.sparse_initializer
    feeds = {"x": np.zeros(2, np.float32)}
    np.testing.assert_array_equal(run(after, feeds)[0], run(model, feeds)[0])
    np.testing.assert_array_equal(run(after, feeds)[0], [0, 2.5])


# -- identical steps -----------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("kind", ["float", "string", "int8", "bool"])
def test_concat(kind: str, axis: int) -> None:
    shape = ",".join("4" if one == axis else "2" for one in range(3))
    graph = f"""({kind}[2,2,2] x, {kind}[2,2,2] z) => ({kind}[{shape}] y)
        {{ y = Concat<axis = {axis}>(x, z) }}"""
    prove(graph, opset=7, target=26)


@pytest.mark.parametrize("axis", [-3, -1])
def test_concat_along_a_negative_axis(axis: int) -> None:
    shape = ",".join("4" if one == axis + 3 else "2" for one in range(3))
    graph = f"(float[2,2,2] x) => (float[{shape}] y) {{ y = Concat<axis = {axis}>(x, x) }}"
    prove(graph, opset=11, target=26)


@pytest.mark.parametrize(
    ("sizes", "shape"), [([2, 3], "2,3"), ([1, 1], "2,3"), ([4, 1, 1], "4,2,3")]
)
def test_expand(sizes: list[int], shape: str) -> None:
    graph = f"(float[2,3] x, int64[{len(sizes)}] s) => (float[{shape}] y) {{ y = Expand(x, s) }}"
    prove(graph, opset=8, target=26, feeds={"s": np.array(sizes)})


@pytest.mark.parametrize(
    ("opset", "attributes", "shape"),
    [
        (7, "", "2,12"),
        (7, "<axis = 0>", "1,24"),
        (7, "<axis = 3>", "24,1"),
        (11, "<axis = -1>", "6,4"),
    ],
)
@pytest.mark.parametrize("kind", ["float", "int64"])
def test_flatten(kind: str, opset: int, attributes: str, shape: str) -> None:
    if kind == "int64":
        opset = max(9, opset)
    graph = f"({kind}[2,3,4] x) => ({kind}[{shape}] y) {{ y = Flatten{attributes}(x) }}"
    prove(graph, opset=opset, target=26)


@pytest.mark.parametrize(
    ("before", "sizes", "after"),
    [
        ("2,3", [3, 2], "3,2"),
        ("2,3", [-1], "6"),
        ("2,3,4", [0, -1], "2,12"),
        ("0,3", [0, 3], "0,3"),
        ("2,0", [2, 0, 1], "2,0,1"),
    ],
)
def test_reshape_copies_a_dim_where_the_shape_has_0(
    before: str, sizes: list[int], after: str
) -> None:
    graph = f"""(float[{before}] x, int64[{len(sizes)}] s) => (float[{after}] y)
        {{ y = Reshape(x, s) }}"""
    prove(
        graph, opset=7, target=26, feeds={"s": np.array(sizes)}, places=["main", "if", "function"]
    )


def test_reshape_with_allowzero() -> None:
    graph = """(float[0,3] x, int64[2] s) => (float[3,0] y) { y = Reshape<allowzero = 1>(x, s) }"""
    prove(graph, opset=14, target=26, feeds={"s": np.array([3, 0])}, places=["main", "if"])


@pytest.mark.parametrize("kind", ["float", "int32", "bool", "string"])
def test_tile(kind: str) -> None:
    graph = f"({kind}[2,3] x, int64[2] r) => ({kind}[4,3] y) {{ y = Tile(x, r) }}"
    prove(graph, opset=7, target=26, feeds={"r": np.array([2, 1])})


@pytest.mark.parametrize(("attributes", "shape"), [("", "4,3,2"), ("<perm = [1, 0, 2]>", "3,2,4")])
@pytest.mark.parametrize("kind", ["float", "string", "uint16"])
def test_transpose(kind: str, attributes: str, shape: str) -> None:
    graph = f"({kind}[2,3,4] x) => ({kind}[{shape}] y) {{ y = Transpose{attributes}(x) }}"
    prove(graph, opset=7, target=26)


def test_depth_to_space_1_orders_depth_column_row() -> None:
    graph = "(float[1,8,2,3] x) => (float[1,2,4,6] y) { y = DepthToSpace<blocksize = 2>(x) }"
    prove(graph, opset=7, target=26)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space_11(mode: str) -> None:
    graph = f"""(float[1,8,2,3] x) => (float[1,2,4,6] y)
        {{ y = DepthToSpace<blocksize = 2, mode = "{mode}">(x) }}"""
    prove(graph, opset=11, target=26)


def test_space_to_depth() -> None:
    graph = "(float[1,2,4,6] x) => (float[1,8,2,3] y) { y = SpaceToDepth<blocksize = 2>(x) }"
    prove(graph, opset=7, target=26)


def test_space_to_depth_28_orders_as_13_did() -> None:
    """onnxruntime has no opset 28; the reference runs it."""
    graph = "(float[1,2,4,6] x) => (float[1,8,2,3] y) { y = SpaceToDepth<blocksize = 2>(x) }"
    model = parsed(graph, 13)
    feeds = drawn(model)
    (actual,) = onnx.reference.ReferenceEvaluator(converted(model, 28)).run(None, feeds)
    np.testing.assert_array_equal(actual, run(model, feeds)[0])


@pytest.mark.parametrize("kind", ["float", "string", "bool"])
@pytest.mark.parametrize("shape", ["2,3,4", "0,3", "N,2"])
def test_shape_and_size(kind: str, shape: str) -> None:
    graph = f"""({kind}[{shape}] x) => (int64[{len(shape.split(","))}] y, int64 n)
        {{ y = Shape(x) n = Size(x) }}"""
    prove(graph, opset=7, target=26)


def test_a_part_of_a_shape() -> None:
    graph = "(float[2,3,4] x) => (int64[1] y) { y = Shape<start = -2, end = 2>(x) }"
    prove(graph, opset=15, target=26)


def test_a_scalar_has_an_empty_shape() -> None:
    prove("(float x) => (int64[0] y, int64 n) { y = Shape(x) n = Size(x) }", opset=7, target=26)


@pytest.mark.parametrize(
    "name", ["Squeeze", "Unsqueeze", "Reshape", "Transpose", "Flatten", "Shape", "Size"]
)
def test_what_only_types_changed_from_13_on_stays_as_it_is(name: str) -> None:
    node = helper.make_node(name, ["x", "s"][: onnx.defs.get_schema(name).min_input], ["y"])
    graph = helper.make_graph(
        [node],
        "g",
        [
            helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1]),
            helper.make_tensor_value_info("s", onnx.TensorProto.INT64, [1]),
        ],
        [onnx.ValueInfoProto(name="y")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)])
    assert list(converted(model, 25).graph.node) == [node]
