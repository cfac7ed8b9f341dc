"""`close`: a loop over time of a model of one step, and back."""

from __future__ import annotations

import re

import numpy as np
import onnx
import pytest

import passes
from passes.errors import BadModel, WrongUsage
from passes.streaming.chunks import Judge
from passes.verify.reference import ReferenceExecutor
from tests.written import changed

QUICK = Judge("reference", budget=5)
BOTH = Judge(budget=10)

STEP = """<ir_version: 10, opset_import: ["" : 21]>
g (float[B,2] x, float[B,3] h, float scale) => (float[B,3] y, float[B,3] new)
<float[2,3] W = {1, 0.5, -1, 2, 0, 1}> {
    a = MatMul (x, W)
    b = Mul (a, scale)
    sum = Add (b, h)
    new = Tanh (sum)
    y = Neg (new)
}"""
DECODER = """<ir_version: 10, opset_import: ["" : 21]>
g (float[B,2] x) => (float[B,2] y, float[B,2] next) {
    next = Sin (x)
    y = Neg (next)
}"""


def model(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


def signature(proto: onnx.ModelProto) -> tuple[list[str], list[str]]:
    return [one.name for one in proto.graph.input], [one.name for one in proto.graph.output]


def test_a_step_becomes_a_scan() -> None:
    closed = passes.close(model(STEP), "T", states={"h": "new"}, same=["scale"], judge=BOTH)
    assert [node.op_type for node in closed.model.graph.node] == ["Scan"]
    assert signature(closed.model) == (["x", "h", "scale"], ["y", "new"])
    dims = closed.model.graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_param or dim.dim_value for dim in dims] == ["T", "B", 2]


def test_streaming_a_closed_model_is_the_step_again() -> None:
    closed = passes.close(model(STEP), "T", states={"h": "new"}, same=["scale"], judge=QUICK)
    streamed = passes.stream(closed.model, "T", judge=QUICK)
    (state,) = streamed.plan.states
    assert (state.input, state.output) == ("h", "new")
    rng = np.random.default_rng(0)
    feeds = {
        "x": rng.normal(size=(4, 2)).astype(np.float32),
        "h": rng.normal(size=(4, 3)).astype(np.float32),
        "scale": np.array(0.5, np.float32),
    }
    step = ReferenceExecutor().run(model(STEP), feeds).outputs
    chunk = ReferenceExecutor().run(streamed.model, {**feeds, "x": feeds["x"][None]}).outputs
    np.testing.assert_array_equal(np.asarray(chunk["y"])[0], np.asarray(step["y"]))
    np.testing.assert_array_equal(np.asarray(chunk["new"]), np.asarray(step["new"]))


def test_closing_what_was_streamed_needs_no_names() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[B,T,2] x) => (float[B,T,2] y) <int64 axis = {1}> { y = CumSum (x, axis) }"""
    streamed = passes.stream(model(text), "T", judge=QUICK)
    closed = passes.close(streamed.model, "T", initial={"cumsum_0_sum": 0.0}, judge=BOTH)
    x = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    y = ReferenceExecutor().run(closed.model, {"x": x}).outputs["y"]
    np.testing.assert_array_equal(np.asarray(y), np.cumsum(x, axis=1))


@pytest.mark.parametrize("first", [0.5, [[1.0, 2.0, 3.0]]])
def test_a_state_starts_with_a_number_or_an_array(first: object) -> None:
    closed = passes.close(
        model(STEP), "T", states={"h": "new"}, same=["scale"], initial={"h": first}, judge=QUICK
    )
    assert signature(closed.model) == (["x", "scale"], ["y", "new"])


def test_without_frames_the_number_of_steps_is_an_input() -> None:
    closed = passes.close(model(DECODER), "T", states={"x": "next"}, trips="steps", judge=BOTH)
    assert closed.model.graph.node[-1].op_type == "Scan"
    assert signature(closed.model) == (["x", "steps"], ["y", "next"])


@pytest.mark.parametrize(
    ("states", "sentence"),
    [
        ({}, "name a state"),
        ({"z": "new"}, "no input 'z'"),
        ({"h": "z"}, "no output 'z'"),
        ({"scale": "new"}, r"the state 'scale' is float, and 'new' is float\[B,3\]"),
    ],
)
def test_wrong_states_are_told(states: dict[str, str], sentence: str) -> None:
    with pytest.raises(WrongUsage, match=sentence):
        passes.close(model(STEP), "T", states=states)


@pytest.mark.parametrize(
    ("first", "given"), [([1.0, 2.0], "2"), ([[[1.0]]], "1,1,1"), ([[1.0, 2.0]], "1,2")]
)
def test_a_state_cannot_start_with_a_value_of_another_shape(first: object, given: str) -> None:
    sentence = re.escape(f"the state 'h' is float[B,3], a value of shape [{given}] is given")
    with pytest.raises(WrongUsage, match=sentence):
        passes.close(
            model(STEP), "T", states={"h": "new"}, same=["scale"], initial={"h": first}, judge=QUICK
        )


@pytest.mark.parametrize("text", ["{", "[1]", '{"states": [{"input": "h"}]}'])
def test_a_description_that_describes_no_states(text: str) -> None:
    step = model(STEP)
    step.metadata_props.add(key="passes.stream", value=text)
    with pytest.raises(BadModel, match=r"'passes\.stream' of its metadata describes no states"):
        passes.close(step, "T")


def test_the_number_of_steps_is_a_new_input() -> None:
    with pytest.raises(WrongUsage, match="names a new input, and there is a value 'y' already"):
        passes.close(model(DECODER), "T", states={"x": "next"}, trips="y")


def test_frames_or_a_number_of_steps() -> None:
    with pytest.raises(WrongUsage, match="no input has frames, and --trips is not given"):
        passes.close(model(DECODER), "T", states={"x": "next"})
    with pytest.raises(WrongUsage, match="'x' has frames, and --trips is given"):
        passes.close(
            model(changed(STEP, {"float[B,2] x": "float[T,2] x"})),
            "T",
            states={"h": "new"},
            trips="n",
        )
