"""What an adapter can ask of a Conversion, and what it can make with it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, numpy_helper

from passes.converters.adapters.resize import upsample_9
from passes.converters.writing.conversion import Conversion
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.names import Names
from passes.rule import Refused, Site
from passes.types.value_types import dims_of, elem_type_of
from passes.writing import spelling

pytestmark = pytest.mark.sampled

MODEL = """
    <ir_version: 8, opset_import: ["": 8, "local": 1]>
    graph (float[N,3] x) => (float[N,3] y) <int64[2] fixed = {4, 5}>
        { y = local.Up<by = [1.0, 1.0]>(x) }
    <domain: "local", opset_import: ["": 8]>
    Up <by> (a) => (b) { b = Upsample<scales: floats = @by>(a) }
"""


def _at(path: str, target: int = 13, version: int = 9) -> Conversion:
    proto: ModelProto = onnx.parser.parse_model(MODEL)
    names = Names(scoping.all_names(owner for _, owner in scoping.owners(proto)))
    (place,) = (one for one in scoping.walk_model(proto) if one.path == path)
    return Conversion(Site(Model(proto), place, 8, target, names), version)


@pytest.fixture
def ctx() -> Conversion:
    """A node of the main graph."""
    return _at("main/up_0")


@pytest.fixture
def inside() -> Conversion:
    """A node of a function."""
    return _at("local.Up/upsample_0")


def test_types_and_constants_of_the_model(ctx: Conversion) -> None:
    assert ctx.dims_of("x") == ("N", 3)
    assert ctx.known_rank("x") == 2
    assert ctx.known_elem_type("x") == TensorProto.FLOAT
    np.testing.assert_array_equal(ctx.constant("fixed"), [4, 5])
    assert (ctx.type_of(""), ctx.constant(""), ctx.constant("x")) == (None, None, None)


def test_the_type_of_a_value_made_on_the_way_is_inferred(ctx: Conversion) -> None:
    flat = ctx.node("Flatten", ["x"], axis=0)
    shape = ctx.value(np.array([-1, 1, 3], np.int64), "shape")
    cube = ctx.node("Reshape", [flat.output[0], shape])
    assert ctx.known_rank(flat.output[0]) == 2
    assert ctx.dims_of(cube.output[0]) in {(None, 1, 3), ("N", 1, 3)}
    assert elem_type_of(ctx.type_of(shape)) == TensorProto.INT64
    np.testing.assert_array_equal(ctx.constant(shape), [-1, 1, 3])


def test_what_is_not_known_is_refused(ctx: Conversion) -> None:
    for ask, code in (
        (ctx.known_rank, "unknown-rank"),
        (ctx.known_elem_type, "unknown-type"),
    ):
        with pytest.raises(Refused) as refused:
            ask("nowhere")
        assert (refused.value.code, refused.value.culprits) == (code, ("main/up_0",))


def test_equal_values_of_a_graph_are_one_initializer(ctx: Conversion) -> None:
    one = ctx.value(np.array([1], np.int64), "one")
    assert ctx.value(np.array([1], np.int64), "axes") == one
    assert ctx.value(np.array(1, np.int64), "one") == "one_1"  # another shape
    assert ctx.value(np.array([1], np.int32), "one") == "one_2"  # another type
    assert ctx.value(np.array([-0.0]), "zero") != ctx.value(np.array([0.0]), "zero")
    assert list(ctx.made.initializers) == ["one", "one_1", "one_2", "zero", "zero_1"]


def test_a_value_in_a_function_is_a_constant_node(inside: Conversion) -> None:
    name = inside.value(np.array([1], np.int64), "one")
    assert inside.value(np.array([1], np.int64), "one") == name
    (node,) = inside.made.leading
    assert (node.op_type, list(node.output)) == ("Constant", [name])
    assert numpy_helper.to_array(node.attribute[0].t).tolist() == [1]
    assert inside.made.initializers == {}


def test_a_required_attribute_that_is_referred_to_becomes_a_referring_constant(
    inside: Conversion,
) -> None:
    (main,) = upsample_9(inside.site.node, inside)
    (constant,) = inside.made.leading
    (attribute,) = constant.attribute
    assert list(main.input) == ["a", *constant.output]
    assert (attribute.name, attribute.ref_attr_name) == ("value_floats", "by")
    assert dims_of(inside.type_of(main.input[1])) == (None,)
    assert inside.constant(main.input[1]) is None


def test_it_must_have_the_dtype_of_a_constant(inside: Conversion) -> None:
    with pytest.raises(Refused, match="attribute-reference"):
        inside.attribute_as_input(inside.site.node, "scales", np.int64)


def test_an_absent_attribute_takes_the_default_or_is_refused(ctx: Conversion) -> None:
    node = ctx.node("Clip", ["x"])
    low = ctx.attribute_as_input(node, "min", np.float32, default=-1)
    np.testing.assert_array_equal(ctx.constant(low), np.array(-1, np.float32), strict=True)
    with pytest.raises(Refused, match="invalid-node: Clip lacks its attribute 'max'"):
        ctx.attribute_as_input(node, "max", np.float32)


def test_a_changed_node_keeps_what_is_not_mentioned(ctx: Conversion) -> None:
    node = ctx.node("Upsample", ["x"], ["z"], mode="linear", scales=[1.0, 2.0], tag=5)
    node.name, node.doc_string = "up", "wider"
    changed = ctx.changed(node, op="Resize", inputs=["x", "s"], without=["scales"], mode="cubic")
    assert (changed.op_type, changed.name, changed.doc_string) == ("Resize", "up", "wider")
    assert (list(changed.input), list(changed.output)) == (["x", "s"], ["z"])
    assert ctx.attribute(changed, "mode") == "cubic"
    assert ctx.attribute(changed, "tag") == 5
    assert ctx.attribute(changed, "scales", "gone") == "gone"
    assert node.op_type == "Upsample"


def test_spelling_writes_for_the_opset_of_the_step(ctx: Conversion) -> None:
    spelling.squeeze(ctx, "x", 0)
    spelling.squeeze(ctx.later(13), "x", 0)
    older, newer = ctx.nodes
    assert (list(older.input), ctx.attribute(older, "axes")) == (["x"], [0])
    np.testing.assert_array_equal(ctx.constant(newer.input[1]), [0])
    assert not newer.attribute
    assert [ctx.made.version_of(node) for node in ctx.nodes] == [9, 13]


def test_a_size_is_computed_once_but_not_read_from_a_body(ctx: Conversion) -> None:
    size = spelling.size_of_axis(ctx, "x", 0)
    assert spelling.size_of_axis(ctx, "x", 0) == size
    assert [node.op_type for node in ctx.nodes] == ["Shape", "Gather"]
    body = ctx.inside()
    assert spelling.size_of_axis(body, "x", 0) != size
    assert len(body.nodes) == len(ctx.nodes) == 2


def test_the_node_written_last_takes_the_name_of_the_output(ctx: Conversion) -> None:
    node = ctx.node("Clip", ["x", "low"], ["y"])
    (same,) = ctx.named_last(node, "x")
    assert (same.op_type, list(same.input), list(same.output)) == ("Identity", ["x"], ["y"])
    (last,) = ctx.named_last(node, ctx.op("Max", "x", "low"))
    assert (last.op_type, list(last.output), ctx.nodes) == ("Max", ["y"], [])
