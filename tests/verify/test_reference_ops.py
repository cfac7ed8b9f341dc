"""Every operator at every opset at which it means something else, against onnxruntime."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy as np
import pytest
from edge_op_cases import edges
from old_op_cases import Entry, cases, model_of
from onnx import parser
from ort_process import OrtProcess, OrtRefused, difference, ort_process
from refused_op_cases import refused

from passes.verify.executor import CannotRun, ModelFailed
from passes.verify.reference import ReferenceExecutor
from tests.written import changed

pytestmark = pytest.mark.sampled

RUN = ReferenceExecutor().run


@pytest.fixture(scope="module")
def ort() -> Iterator[OrtProcess]:
    with ort_process() as process:
        yield process


def by_operator(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    table: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        found = re.search(r"= *(\w+)", entry[1])
        assert found, entry[1]
        table[found[1]].append(entry)
    return dict(table)


def disagreements(ort: OrtProcess, entries: list[Entry]) -> list[str]:
    """What onnxruntime gives otherwise, or refuses."""
    found = []
    for opset, node, feeds in entries:
        model = model_of(opset, node, feeds)
        expected = ort.run(model, feeds)
        try:
            outputs = RUN(model, feeds).outputs
        except (ModelFailed, CannotRun) as error:
            found.append(f"{node} at {opset}: {error}")
            continue
        if isinstance(expected, OrtRefused):
            found.append(f"{node} at {opset}: onnxruntime refuses: {expected.sentence}")
            continue
        for got, wanted in zip(outputs.values(), expected, strict=True):
            words = difference(got, wanted, atol=1e-6)
            found += [f"{node} at {opset}: {words}"] if words else []
    return found


CASES = by_operator(cases())
EDGES = by_operator(edges())


@pytest.mark.parametrize("operator", CASES)
def test_an_operator_agrees_with_onnxruntime_at_its_old_versions(
    ort: OrtProcess, operator: str
) -> None:
    assert disagreements(ort, CASES[operator]) == []


@pytest.mark.parametrize("operator", EDGES)
def test_an_operator_agrees_with_onnxruntime_on_nothing_and_nan(
    ort: OrtProcess, operator: str
) -> None:
    assert disagreements(ort, EDGES[operator]) == []


@pytest.mark.parametrize(
    ("opset", "node", "feeds"), [pytest.param(*entry, id=entry[1]) for entry in refused()]
)
def test_operands_that_do_not_fit_make_the_model_fail(
    ort: OrtProcess, opset: int, node: str, feeds: dict[str, object]
) -> None:
    model = model_of(opset, node, feeds)
    for value in model.graph.input:
        # Without static shapes onnxruntime too finds out when it runs.
        for place, dim in enumerate(value.type.tensor_type.shape.dim):
            dim.dim_param = f"{value.name}{place}"
    assert isinstance(ort.run(model, feeds), OrtRefused)
    with pytest.raises(ModelFailed) as caught:
        RUN(model, feeds)
    assert str(caught.value).count("\n") == 0


def test_sampling_an_image_takes_no_seconds() -> None:
    """onnx's kernels of both go pixel by pixel: some 7 s."""
    text = """<ir_version: 8, opset_import: ["" : 16]>
        g (float[1,32,28,28] x, float[1,28,28,2] places) => (float[?,?,?,?] y) {
        z = GridSample(x, places)  y = AveragePool<kernel_shape = [3, 3]>(z) }"""
    feeds = {"x": np.ones((1, 32, 28, 28), np.float32)}
    feeds["places"] = np.zeros((1, 28, 28, 2), np.float32)
    began = time.process_time()
    (y,) = RUN(parser.parse_model(text), feeds).outputs.values()
    assert time.process_time() - began < 2
    assert np.array_equal(np.asarray(y), np.ones((1, 32, 26, 26)))


def test_the_boxes_of_a_detector_take_no_seconds() -> None:
    """onnx's kernels take them number by number: some 4 s."""
    text = """<ir_version: 8, opset_import: ["" : 16]>
        g (float[1,64,24,24] x, float[800,4] boxes, float[1,1,800] scores) => (float[?,?] y) {
        most = Constant<value_ints = [800]>()  zero = Constant<value_ints = [0]>()
        overlap = Constant<value_floats = [0.9]>()  flat = Constant<value_ints = [200, -1]>()
        first = Constant<value_ints = [200]>()
        batched = Unsqueeze(boxes, zero)
        kept = NonMaxSuppression(batched, scores, most, overlap)
        some = Slice(boxes, zero, first)  images = ConstantOfShape<value = int64 {0}>(first)
        crops = RoiAlign<output_height = 7, output_width = 7, sampling_ratio = 2>(x, some, images)
        rows = Reshape(crops, flat)  sizes = Shape(rows)
        nothing = ConstantOfShape(sizes)  places = ConstantOfShape<value = int64 {7}>(sizes)
        y = ScatterElements(nothing, places, rows) }"""
    corners = np.random.default_rng(0).random((2, 800, 2), np.float32) * 20
    feeds = {
        "x": np.ones((1, 64, 24, 24), np.float32),
        "boxes": np.concatenate([corners.min(0), corners.max(0)], 1),
        "scores": np.arange(800, dtype=np.float32).reshape(1, 1, -1),
    }
    began = time.process_time()
    (y,) = RUN(parser.parse_model(text), feeds).outputs.values()
    assert time.process_time() - began < 3
    assert np.asarray(y)[7] == pytest.approx(1)


def test_a_matmul_of_infinities_repeats_nothing() -> None:
    model = parser.parse_model("""<ir_version: 10, opset_import: ["" : 21]>
        g (float[1,1] a, float[3,2] b) => (float[1,2] y) { y = MatMul (a, b) }""")
    feeds = {"a": np.full((1, 1), np.inf, np.float32), "b": np.ones((3, 2), np.float32)}
    with pytest.raises(ModelFailed):
        ReferenceExecutor().run(model, feeds)


@pytest.mark.parametrize("op", ["QLinearMatMul", "QLinearConv"])
def test_a_product_that_is_nan_before_it_is_quantized_is_no_answer(op: str) -> None:
    """onnx's kernel gives 0 for it, onnxruntime the smallest number; infinities saturate."""
    text = """
        <ir_version: 10, opset_import: ["" : 21]>
        g (int8[2,2] a, int8[2,2] b) => (int8[2,2] y)
        <float one = {1}, float none = {0}, int8 zero = {0}> {
            y = QLinearMatMul (a, one, zero, b, one, zero, none, zero)
        }
    """
    sizes = "2,2" if op == "QLinearMatMul" else "1,1,2,2"
    model = parser.parse_model(changed(text, {"2,2": sizes, "QLinearMatMul": op}))
    ones = np.ones([int(size) for size in sizes.split(",")], np.int8)
    answer = np.asarray(RUN(model, {"a": ones, "b": ones}).outputs["y"])
    np.testing.assert_array_equal(answer, np.full_like(answer, 127))
    with pytest.raises(CannotRun, match="NaN"):
        RUN(model, {"a": ones, "b": 0 * ones})


def test_a_product_with_nan_is_rounded_alike_whether_an_operand_is_turned_or_stored_so() -> None:
    model = parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 21]>
        g (float[3,5,64] a, float[16,64] b) => (float[3,5,16] y) {
            t = Transpose <perm = [1, 0]> (b) y = MatMul (a, t) }
    """)
    plain = parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 21]>
        g (float[3,5,64] a, float[64,16] b) => (float[3,5,16] y) { y = MatMul (a, b) }
    """)
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=shape).astype(np.float32) for shape in ((3, 5, 64), (16, 64)))
    a[0, 0, 0] = np.nan
    turned = RUN(model, {"a": a, "b": b}).outputs["y"]
    stored = RUN(plain, {"a": a, "b": np.ascontiguousarray(b.T)}).outputs["y"]
    np.testing.assert_array_equal(np.asarray(turned), np.asarray(stored))


@pytest.mark.parametrize("lowest", [0, np.finfo(np.float32).min])
def test_attention_whose_scores_overflow_is_what_its_function_body_gives(lowest: float) -> None:
    """onnx's kernel gives 0 for such a row, the document's function body and onnxruntime NaN."""
    model = parser.parse_model("""
        <ir_version: 11, opset_import: ["" : 23]>
        g (float[1,1,1,2] q, float[1,1,2,2] k, float[1,1,2,2] v, float[2] m)
            => (float[1,1,1,2] y) { y = Attention(q, k, v, m) }
    """)
    mask = np.full(2, lowest, np.float32)
    large = np.full((1, 1, 1, 2), 1e20, np.float32)
    ones = np.ones((1, 1, 2, 2), np.float32)
    answer = RUN(model, {"q": large, "k": ones, "v": ones, "m": 0 * mask}, timeout=60)
    np.testing.assert_array_equal(answer.outputs["y"], np.ones((1, 1, 1, 2)))
    keys = -(1e18 if lowest else 1e20) * ones
    answer = RUN(model, {"q": large, "k": keys, "v": ones, "m": mask}, timeout=60)
    np.testing.assert_array_equal(answer.outputs["y"], np.full((1, 1, 1, 2), np.nan))


@pytest.mark.parametrize(
    ("a", "b"), [((2, 1), (1, 1)), ((1,), (1, 3)), ((3, 1), (1,)), ((1,), (1,))]
)
def test_a_product_leaves_out_no_nan(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    """0 times NaN is NaN, which BLAS may skip; whatever else is multiplied."""
    text = (
        '<ir_version: 8, opset_import: ["": 13]> '
        "g (float[A] a, float[B] b) => (y) { y = MatMul (a, b) }"
    )
    sizes = [",".join(map(str, shape)) for shape in (a, b)]
    model = parser.parse_model(changed(text, {"A]": f"{sizes[0]}]", "B]": f"{sizes[1]}]"}))
    feeds = {"a": np.full(a, np.nan, np.float32), "b": np.zeros(b, np.float32)}
    answer = np.asarray(RUN(model, feeds).outputs["y"])
    assert answer.shape == np.matmul(feeds["a"], feeds["b"]).shape
    assert np.isnan(answer).all()


def test_products_are_rounded_alike_wherever_the_operands_stand() -> None:
    """Of columns of a matrix, as a Scan along its second axis takes them."""
    rng = np.random.default_rng(0)
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 13]> '
        "g (float[4] a, float[4,3] b) => (float[3] y) { y = MatMul (a, b) }"
    )
    for _ in range(50):
        rows = rng.standard_normal((4, 5)).astype(np.float32)
        weights = rng.standard_normal((4, 3)).astype(np.float32)
        one = RUN(model, {"a": rows[:, 2], "b": weights}).outputs["y"]
        other = RUN(model, {"a": rows[:, 2].copy(), "b": weights}).outputs["y"]
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
