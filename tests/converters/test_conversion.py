"""What an adapter can ask of a Conversion, and what it can make with it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, numpy_helper

from converters.adapters.resize import upsample_9
from converters.conversion import Conversion
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.names import Names
from passes.rule import Refused, Site
from passes.types.inference import ValueTypes
from passes.types.value_types import dims_of, elem_type_of

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
    return Conversion(Site(Model(proto), place, 8, target, names, ValueTypes(proto)), version)


@pytest.fixture
def at() -> Conversion:
    """A node of the main graph."""
    return _at("main/up_0")


@pytest.fixture
def inside() -> Conversion:
    """A node of a function."""
    return _at("local.Up/upsample_0")


def test_types_and_constants_of_the_model(at: Conversion) -> None:
    assert at.dims_of("x") == ("N", 3)
    assert at.known_rank("x") == 2
    assert at.known_elem_type("x") == TensorProto.FLOAT
    assert at.known_constant("fixed").tolist() == [4, 5]
    assert (at.type_of(""), at.constant(""), at.constant("x")) == (None, None, None)


def test_the_type_of_a_value_made_on_the_way_is_inferred(at: Conversion) -> None:
    flat = at.node("Flatten", ["x"], axis=0)
    shape = at.value(np.array([-1, 1, 3], np.int64), "shape")
    cube = at.node("Reshape", [flat.output[0], shape])
    assert at.known_rank(flat.output[0]) == 2
    assert at.dims_of(cube.output[0]) in {(None, 1, 3), ("N", 1, 3)}
    assert elem_type_of(at.type_of(shape)) == TensorProto.INT64
    assert at.known_constant(shape).tolist() == [-1, 1, 3]


def test_what_is_not_known_is_refused(at: Conversion) -> None:
    for ask, code in (
        (at.known_rank, "unknown-rank"),
        (at.known_elem_type, "unknown-type"),
        (at.known_constant, "not-constant"),
    ):
        with pytest.raises(Refused) as refused:
            ask("nowhere")
        assert (refused.value.code, refused.value.culprits) == (code, ("main/up_0",))


def test_equal_values_of_a_graph_are_one_initializer(at: Conversion) -> None:
    one = at.value(np.array([1], np.int64), "one")
    assert at.value(np.array([1], np.int64), "axes") == one
    assert at.value(np.array(1, np.int64), "one") == "one_1"  # another shape
    assert at.value(np.array([1], np.int32), "one") == "one_2"  # another type
    assert at.value(np.array([-0.0]), "zero") != at.value(np.array([0.0]), "zero")
    assert list(at.made.initializers) == ["one", "one_1", "one_2", "zero", "zero_1"]


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


def test_an_absent_attribute_takes_the_default_or_is_refused(at: Conversion) -> None:
    node = at.node("Clip", ["x"])
    low = at.attribute_as_input(node, "min", np.float32, default=-1)
    assert at.known_constant(low).dtype == np.float32
    with pytest.raises(Refused, match="invalid-node: Clip lacks its attribute 'max'"):
        at.attribute_as_input(node, "max", np.float32)


def test_a_changed_node_keeps_what_is_not_mentioned(at: Conversion) -> None:
    node = at.node("Upsample", ["x"], ["z"], mode="linear", scales=[1.0, 2.0], tag=5)
    node.name, node.doc_string = "up", "wider"
    changed = at.changed(node, op="Resize", inputs=["x", "s"], without=["scales"], mode="cubic")
    assert (changed.op_type, changed.name, changed.doc_string) == ("Resize", "up", "wider")
    assert (list(changed.input), list(changed.output)) == (["x", "s"], ["z"])
    assert at.attribute(changed, "mode") == "cubic"
    assert at.attribute(changed, "tag") == 5
    assert at.attribute(changed, "scales", "gone") == "gone"
    assert node.op_type == "Upsample"
