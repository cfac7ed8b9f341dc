"""What rewrites write: nodes, constants and idioms, executed as each opset spells them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

from passes.ir.names import Names
from passes.verify.executor import ModelFailed
from passes.verify.installed import OnnxRuntimeExecutor
from passes.verify.reference import ReferenceExecutor
from passes.writing import guards, spelling
from passes.writing.author import Author
from tests.onnxruntime_at_hand import at_hand

Array = npt.NDArray[Any]
#: The opsets at which some spelling changes, and the oldest and a newest one.
OPSETS = (9, 10, 11, 12, 13, 16, 18, 21)
IR_VERSIONS = {9: 4, 10: 5, 11: 6, 12: 7, 13: 7, 16: 8, 18: 8, 21: 10}


@pytest.fixture(scope="module")
def ort() -> OnnxRuntimeExecutor:
    if not OnnxRuntimeExecutor.available():
        pytest.skip("onnxruntime is not installed")
    return at_hand()


def an_author(opset: int = 16, prefix: str = "") -> Author:
    return Author(opset, Names("xyc"), prefix)


def model_of(author: Author, result: str, dtype: int, **inputs: Array) -> ModelProto:
    """What the author wrote, as a model with the output `result`."""
    given = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), None)
        if value.dtype.kind not in "OU"
        else helper.make_tensor_value_info(name, TensorProto.STRING, None)
        for name, value in inputs.items()
    ]
    graph = author.graph("g", given, [helper.make_tensor_value_info(result, dtype, None)])
    return helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", author.opset)],
        ir_version=IR_VERSIONS[author.opset],
    )


def agreed(
    ort: OnnxRuntimeExecutor, author: Author, result: str, dtype: int, **inputs: Array
) -> Array:
    """The value of `result`, which both executors compute bit for bit alike."""
    model = model_of(author, result, dtype, **inputs)
    ours = ReferenceExecutor().run(model, inputs).outputs[result]
    theirs = ort.run(model, inputs).outputs[result]
    assert isinstance(ours, np.ndarray)
    assert isinstance(theirs, np.ndarray)
    assert (ours.dtype.kind, ours.shape) == (theirs.dtype.kind, theirs.shape)
    assert bits(ours) == bits(theirs)
    return ours


def bits(value: Array) -> Any:
    """What is equal only where the values are equal to the bit; NaN is equal to itself."""
    return value.tolist() if value.dtype.kind in "OUT" else value.tobytes()


# -- the author -------------------------------------------------------------------------------


def test_values_are_named_after_where_they_come_from() -> None:
    author = an_author(prefix="scan")
    assert author.op("Add", "x", "y") == "scan/add"
    assert author.op("Add", "x", "y") == "scan/add_1"
    assert author.op("Add", "x", "y", outputs=["mine"]) == "mine"
    assert author.fresh("x") == "scan/x"


def test_an_author_of_a_body_shares_the_names_but_not_the_nodes() -> None:
    outer = an_author()
    inner = outer.inside("body")
    inner.prefix = outer.prefix
    assert outer.op("Neg", "x") == "neg"
    assert inner.op("Neg", "x") == "neg_1"
    assert len(outer.nodes) == len(inner.nodes) == 1


def test_omitted_inputs_and_attributes() -> None:
    author = an_author()
    author.op("Clip", "x", "", "y", outputs=["z"], name="limit")
    author.op("Transpose", "z", perm=[1, 0])
    clip, transpose = author.nodes
    assert (list(clip.input), list(clip.output), clip.name) == (["x", "", "y"], ["z"], "limit")
    assert helper.get_node_attr_value(transpose, "perm") == [1, 0]


def test_existing_nodes_are_taken_as_they_are() -> None:
    node = helper.make_node("Neg", ["w"], ["z"], name="old", doc_string="by hand")
    node.metadata_props.add(key="origin", value="layer 3")
    weight = helper.make_tensor("w", TensorProto.FLOAT, [1], [2])
    author = an_author()
    author.op("Abs", "x")
    author.adopt([node], [weight])
    assert author.nodes[1].SerializeToString() == node.SerializeToString()
    assert author.constants == [weight]


def test_equal_constants_are_one() -> None:
    author = an_author()
    assert author.ints(1, 2) == author.ints(1, 2) == "ints"
    assert len({author.ints(1), author.int(1), author.value(np.array([1], np.int32))}) == 3
    assert author.value(np.array(["a", "b"], object)) == author.value(np.array(["a", "b"], object))
    one, other = np.array(["a\0b", "c"], object), np.array(["a", "b\0c"], object)
    assert author.value(one) != author.value(other)


def test_constants_of_other_types_are_others_even_where_the_bytes_are_the_same() -> None:
    author = an_author(21)
    types = [TensorProto.INT4, TensorProto.UINT4, TensorProto.FLOAT8E4M3FN, TensorProto.UINT8]
    for elem_type in types:
        author.value(np.zeros(2, helper.tensor_dtype_to_np_dtype(elem_type)))
    assert [tensor.data_type for tensor in author.constants] == types


def test_zero_and_minus_zero_are_two_constants() -> None:
    author = an_author()
    positive = author.value(np.array([0.0], np.float32))
    assert positive != author.value(np.array([-0.0], np.float32))


# -- the idioms -------------------------------------------------------------------------------


@pytest.mark.parametrize("opset", OPSETS)
def test_axes_of_size_one(ort: OnnxRuntimeExecutor, opset: int) -> None:
    author = an_author(opset)
    wide = spelling.unsqueeze(author, "x", 1)
    spelling.squeeze(author, wide, 1, outputs=["z"])
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert agreed(ort, author, wide, TensorProto.FLOAT, x=x).shape == (2, 1, 3)
    assert agreed(ort, author, "z", TensorProto.FLOAT, x=x).tolist() == x.tolist()


@pytest.mark.parametrize("opset", OPSETS)
def test_several_new_axes(ort: OnnxRuntimeExecutor, opset: int) -> None:
    author = an_author(opset)
    wide = spelling.unsqueeze_axes(author, "x", [0, 2])
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert agreed(ort, author, wide, TensorProto.FLOAT, x=x).shape == (1, 2, 1, 3)


@pytest.mark.parametrize("opset", OPSETS)
def test_rows_last_first(ort: OnnxRuntimeExecutor, opset: int) -> None:
    for size in (0, 1, 3):
        author = an_author(opset)
        result = spelling.reversed_rows(author, "x")
        x = np.arange(2 * size, dtype=np.float32).reshape(size, 2)
        backwards = agreed(ort, author, result, TensorProto.FLOAT, x=x)
        assert backwards.tolist() == x[::-1].tolist()


@pytest.mark.parametrize("opset", OPSETS)
def test_sizes_and_shapes(ort: OnnxRuntimeExecutor, opset: int) -> None:
    author = an_author(opset)
    size = spelling.size_of_axis(author, "x", 1)
    rest = spelling.rest_of_shape(author, "x", 1)
    nothing = spelling.rest_of_shape(author, "x", 3)
    x = np.zeros((2, 0, 3), np.float32)
    assert agreed(ort, author, size, TensorProto.INT64, x=x).tolist() == [0]
    assert agreed(ort, author, rest, TensorProto.INT64, x=x).tolist() == [0, 3]
    assert agreed(ort, author, nothing, TensorProto.INT64, x=x).tolist() == []


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("count", [0, 1, 4])
def test_counting(ort: OnnxRuntimeExecutor, opset: int, count: int) -> None:
    author = an_author(opset)
    result = spelling.arange(author, "x")
    x = np.array([count], np.int64)
    assert agreed(ort, author, result, TensorProto.INT64, x=x).tolist() == list(range(count))


@pytest.mark.parametrize("opset", OPSETS)
def test_total(ort: OnnxRuntimeExecutor, opset: int) -> None:
    author = an_author(opset)
    result = spelling.total(author, "x")
    x = np.array([[1, 2], [3, 4]], np.int64)
    assert agreed(ort, author, result, TensorProto.INT64, x=x).tolist() == 10


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "object"])
def test_a_prefix(ort: OnnxRuntimeExecutor, opset: int, dtype: str) -> None:
    x = np.arange(6).reshape(3, 2).astype("U2" if dtype == "object" else dtype).astype(dtype)
    elem_type = (
        TensorProto.STRING if dtype == "object" else helper.np_dtype_to_tensor_dtype(x.dtype)
    )
    for length in range(4):
        author = an_author(opset)
        result = spelling.prefix(author, "x", author.ints(length), elem_type)
        assert agreed(ort, author, result, elem_type, x=x).tolist() == x[:length].tolist()


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("dtype", ["float32", "object"])
def test_a_row(ort: OnnxRuntimeExecutor, opset: int, dtype: str) -> None:
    """Of strings, onnxruntime's Gather would copy only the first."""
    x = np.arange(6).reshape(3, 2).astype("U2" if dtype == "object" else dtype).astype(dtype)
    elem_type = TensorProto.STRING if dtype == "object" else TensorProto.FLOAT
    for index in range(3):
        author = an_author(opset)
        result = spelling.row(author, "x", author.int(index), elem_type)
        assert agreed(ort, author, result, elem_type, x=x).tolist() == x[index].tolist()


FLOATS = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1.5, 3.4e38]
SELECTED: dict[int, list[Any]] = {
    TensorProto.FLOAT: FLOATS,
    TensorProto.DOUBLE: FLOATS,
    TensorProto.FLOAT16: [np.nan, np.inf, -np.inf, -0.0, 65504],
    TensorProto.BOOL: [True, False],
    TensorProto.STRING: ["", "a", "ü"],
    TensorProto.INT8: [-128, 127],
    TensorProto.INT16: [-32768, 32767],
    TensorProto.INT32: [-(1 << 31), (1 << 31) - 1],
    TensorProto.INT64: [-(1 << 63), (1 << 63) - 1],
    TensorProto.UINT8: [0, 255],
    TensorProto.UINT16: [0, 65535],
    TensorProto.UINT32: [0, (1 << 32) - 1],
    TensorProto.UINT64: [0, (1 << 64) - 1],
}


@pytest.mark.parametrize("opset", [9, 11, 13, 21])
@pytest.mark.parametrize("elem_type", SELECTED, ids=TensorProto.DataType.Name)
def test_select_is_bit_exact_and_lets_nothing_else_through(
    ort: OnnxRuntimeExecutor, opset: int, elem_type: int
) -> None:
    x = np.array(SELECTED[elem_type], helper.tensor_dtype_to_np_dtype(elem_type))
    y = x[::-1].copy()
    author = an_author(opset)
    result = spelling.select(author, "c", "x", "y", elem_type)
    for condition, expected in ((True, x), (False, y)):
        c = np.array(condition)
        assert bits(agreed(ort, author, result, elem_type, c=c, x=x, y=y)) == bits(expected)


def test_select_of_a_scalar(ort: OnnxRuntimeExecutor) -> None:
    author = an_author(13)
    result = spelling.select(author, "c", "x", "y", TensorProto.FLOAT)
    x, y = np.array(-0.0, np.float32), np.array(np.nan, np.float32)
    chosen = agreed(ort, author, result, TensorProto.FLOAT, c=np.array(True), x=x, y=y)
    assert (chosen.shape, bits(chosen)) == ((), bits(x))


@pytest.mark.parametrize("opset", [9, 13, 21])
@pytest.mark.parametrize(
    "elem_type", [*SELECTED, TensorProto.BFLOAT16], ids=TensorProto.DataType.Name
)
@pytest.mark.parametrize("shape", [(2, 3), (0, 2), ()])
def test_zeros_of_every_type(
    ort: OnnxRuntimeExecutor, opset: int, elem_type: int, shape: tuple[int, ...]
) -> None:
    if elem_type == TensorProto.BFLOAT16 and opset < 13:
        pytest.skip("Gather knows no bfloat16 there")
    author = an_author(opset)
    result = spelling.zeros(author, "x", elem_type)
    if elem_type == TensorProto.BFLOAT16:  # which executors do not hand out
        result = author.op("Cast", result, to=TensorProto.FLOAT)
        elem_type = TensorProto.FLOAT
    zero = agreed(ort, author, result, elem_type, x=np.array(shape, np.int64))
    assert zero.shape == shape
    assert all(not element for element in zero.ravel().tolist())


@pytest.mark.parametrize("opset", [9, 13, 21])
@pytest.mark.parametrize("shape", [(3,), (2, 3), (0,), (0, 3), (1,)])
@pytest.mark.parametrize("which", ["reference", "onnxruntime"])
def test_must(ort: OnnxRuntimeExecutor, opset: int, shape: tuple[int, ...], which: str) -> None:
    author = an_author(opset)
    result = guards.must(author, "x", "c")
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    model = model_of(author, result, TensorProto.FLOAT, x=x, c=np.array(True))
    run: Callable[..., Any] = ort.run if which == "onnxruntime" else ReferenceExecutor().run
    passed = run(model, {"x": x, "c": np.array(True)}).outputs[result]
    assert (passed.shape, bits(passed)) == (shape, bits(x))
    with pytest.raises(ModelFailed):
        run(model, {"x": x, "c": np.array(False)})


def test_both(ort: OnnxRuntimeExecutor) -> None:
    for values in ([True], [True, False], [True, True, True], [False, True]):
        author = an_author()
        names = [author.value(np.array(value)) for value in values]
        result = author.op("Identity", spelling.both(author, names))
        assert agreed(ort, author, result, TensorProto.BOOL).tolist() is all(values)


def test_what_is_measured_is_measured_once() -> None:
    author = an_author(18)
    first = spelling.size_of_axis(author, "x", 0)
    assert spelling.size_of_axis(author, "x", 0) == first
    assert spelling.size_of_axis(author, "x", 1) != first
    assert spelling.arange(author, first) == spelling.arange(author, first)
    found = [node.op_type for node in author.nodes]
    assert found == ["Shape", "Gather", "Gather", "ConstantOfShape", "NonZero", "Squeeze"]


def test_what_nobody_reads_is_not_in_a_body() -> None:
    author = an_author(18)
    author.op("Neg", "x")
    half = author.op("Abs", "x")
    author.op("Sqrt", half, outputs=["named"])
    author.adopt([NodeProto(op_type="Exp", input=["x"], output=["taken"])])
    author.op("Floor", "x", outputs=["y"])
    kept = author.graph("b", [], [helper.make_empty_tensor_value_info("y")]).node
    assert [node.op_type for node in kept] == ["Abs", "Sqrt", "Exp", "Floor"]
