"""The verdict on models of which the second one computes in half precision."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from in_half import AVERAGE, AVERAGE_IN_HALF, SUM, SUM_IN_HALF, SUM_OF_HALVES

from passes.ir.model import Model
from passes.reports.precision import Within
from passes.verify.executor import Feeds
from passes.verify.within.judging import Terms, judged
from tests.onnxruntime_at_hand import at_hand
from tests.written import changed

CHOICE = """<ir_version: 10, opset_import: ["" : 21]>
g (float[N] x) => (float y, int64 k) <float half = {0.5}> {
    total = ReduceMax <keepdims = 0> (x)  k = ArgMax <keepdims = 0> (x)  c = Less (total, half)
    y = If (c) <then_branch = t () => (float a) { a = Neg (total) },
                else_branch = e () => (float b) { b = Identity (total) }>
}"""
CHOICE_IN_HALF = changed(
    CHOICE,
    {
        "total = ReduceMax <keepdims = 0> (x)  k = ArgMax <keepdims = 0> (x)": """
            h = Cast <to = 10> (x)  most = ReduceMax <keepdims = 0> (h)
            k = ArgMax <keepdims = 0> (h)  total = Cast <to = 1> (most)"""
    },
)


def normal(*shape: int) -> Feeds:
    return {"xs": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}


def within(before: str, after: str, *given: Feeds, bound: float | None = None) -> Within:
    """The verdict on two models, on the given inputs, else on drawn ones."""
    sides = [Model(onnx.parser.parse_model(text)) for text in (before, after)]
    return judged(*sides, Terms(bound, "reference", given=given)).within


def test_a_sum_of_4096_in_half_precision_is_off_by_a_hundredth() -> None:
    found = within(SUM, SUM_IN_HALF, normal(4096, 4), bound=1e-3)
    assert 3e-3 < found.error < 3e-2
    assert found.verdict == "mismatch"
    assert found.sentence.startswith("not within 0.001: the error of 'y' is ")


def test_an_average_that_forgets_slowly_is_off_by_a_tenth_and_onnxruntime_hides_it() -> None:
    feeds = normal(1024, 4)
    found = within(AVERAGE, AVERAGE_IN_HALF, feeds)
    assert 3e-2 < found.error < 3e-1
    (y,) = at_hand().run(onnx.parser.parse_model(AVERAGE_IN_HALF), feeds).outputs.values()
    (one,) = found.errors
    assert one.now is not None
    assert abs(np.asarray(y)[one.worst] - one.was) < abs(one.now - one.was) / 3


def test_each_output_has_an_error_at_each_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("passes.verify.within.cases.LENGTHS", (1, 16, 128))
    found = within(SUM, SUM_IN_HALF, bound=1e-2)
    assert [one.length for one in found.errors] == [1, 16, 128]
    assert found.errors[0].error < found.errors[2].error < 1e-2
    assert found.verdict == "within"
    assert found.executor == "rounded after every node, products summed in float32"
    assert found.loads == "not tried"


def test_the_types_of_inputs_and_outputs_may_be_others() -> None:
    found = within(SUM, SUM_OF_HALVES, normal(8, 4))
    assert 0 < found.error < 1e-2


def test_another_signature_is_a_mismatch() -> None:
    found = within(SUM, changed(SUM, {"[T,4] xs) => (float[4] y)": "[T,4] xs) => (float[A] y)"}))
    assert found.verdict == "mismatch"
    assert found.sentence == ("the outputs are (float[4] y) before and (float[A] y) after")


def test_values_that_overflow_are_reported_by_their_node() -> None:
    found = within(SUM, SUM_IN_HALF, {"xs": np.full((3, 4), 30000, np.float32)})
    assert found.error == np.inf
    assert [(one.path, one.largest, one.overflows) for one in found.ranges] == [
        ("main/scan_0.body/add_0", 90000, 4)
    ]
    assert found.sentence == ("the error of 'y' is infinite at 3 ([0]: not finite, was 90000)")


def test_indices_and_branches_that_differ_are_counted() -> None:
    near = {"x": np.array([0.49999, 0.49998, 0.3], np.float32)[::-1].copy()}
    found = within(CHOICE, CHOICE_IN_HALF, near)
    assert [str(one) for one in found.differing] == [
        "'k': 1 of 1 differ",
        "branches of main/if_3: 1 of 1 differ",
    ]
    assert found.sentence.endswith("; 2 discrete results not equal")


def test_a_model_that_fails_where_the_original_does_not() -> None:
    cut = changed(SUM_IN_HALF, {"s_out = Add (s_in, x)": "w = Add (s_in, x)  s_out = Squeeze (w)"})
    fixed = changed(cut, {"float16[4] zero = {0, 0, 0, 0}": "float16[1] zero = {0}"})
    found = within(SUM, fixed, normal(2, 4))
    assert found.verdict == "mismatch"
    assert found.sentence.startswith("the new model alone fails at 2: ")


def test_an_output_of_another_shape_is_a_mismatch() -> None:
    some = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[N] xs) => (float[K] y) <float least = {0.5}> {
        c = Greater (xs, least)  y = Compress <axis = 0> (xs, c)
    }"""
    others = changed(some, {"{0.5}": "{0.25}"})
    found = within(some, others, {"xs": np.array([0.1, 0.3, 0.7], np.float32)}, bound=1.0)
    assert (found.verdict, found.sentence) == ("mismatch", "the shape of 'y' is another one")


def test_without_a_case_nothing_is_compared() -> None:
    found = within(SUM, SUM_IN_HALF, {"xs": np.zeros((2, 5), np.float32)})
    assert (found.verdict, found.holds) == ("not-compared", False)
    assert found.failure.startswith("the given inputs: ")


def test_onnxruntime_need_not_run_what_it_has_no_kernel_for() -> None:
    brains = changed(SUM_IN_HALF, {"float16": "bfloat16", "<to = 10>": "<to = 16>"})
    sides = [Model(onnx.parser.parse_model(text)) for text in (SUM, brains)]
    found = judged(*sides, Terms(0.1, given=[normal(4, 4)])).within
    assert found.verdict == "within"
    assert found.loads.startswith("cannot load: Could not find an implementation for Add")


def test_the_node_that_onnxruntime_does_not_run_is_named() -> None:
    scattered = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[4] x, float[1] u) => (float[4] y) <int64[1,1] i = {2}> {
        [scattered] y = ScatterND <reduction = "add"> (x, i, u)
    }"""
    in_half = changed(
        scattered,
        {
            "[scattered] y": "a = Cast <to = 10> (x)  b = Cast <to = 10> (u)  [scattered] c",
            "(x, i, u)": "(a, i, b)  y = Cast <to = 1> (c)",
        },
    )
    sides = [Model(onnx.parser.parse_model(text)) for text in (scattered, in_half)]
    found = judged(*sides, Terms())
    assert "data type is not supported with ScatterND" in found.within.loads
    assert found.blamed == ["main/scattered"]
