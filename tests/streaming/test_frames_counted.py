"""`stream`: what depends on the number of a frame, as masks of rows with lengths do."""

from __future__ import annotations

import numpy as np
import pytest

import passes
from passes.streaming.chunks import Judge
from passes.streaming.plan import CannotStream
from passes.testing import as_model
from passes.verify.reference import ReferenceExecutor
from tests.written import changed

QUICK = Judge("reference", budget=5)
BOTH = Judge(budget=10)

#: Rows with lengths, as `expand` gets them.
RAGGED = """<ir_version: 10, opset_import: ["" : 21]>
g (float[T,B,1] x, int32[B] lengths) => (float[T,1,B,1] y, float[1,B,1] hn)
<float[1,4,1] W = {0.5, -1, 0.25, 1}, float[1,4,1] R = {1, 0.5, -0.5, 0.25}> {
    y, hn = LSTM <hidden_size = 1> (x, W, R, "", lengths)
}"""

#: A mask as torch writes it, and a table of positions.
MASKED = """<ir_version: 10, opset_import: ["" : 21]>
g (float[B,T,2] x, int64[B] lengths, float[100,2] table) => (float[B,T,2] y)
<int64 zero = {0}, int64 one = {1}, float nothing = {0}, int64[1] axis = {1}, int64[1] last = {2}> {
    shape = Shape (x)
    time = Gather (shape, one)
    numbers = Range (zero, time, one)
    ends = Unsqueeze (lengths, axis)
    runs = Less (numbers, ends)
    mask = Unsqueeze (runs, last)
    places = Gather (table, numbers)
    placed = Add (x, places)
    masked = Where (mask, placed, nothing)
    y = CumSum (masked, one)
}"""


@pytest.mark.sampled(6)
@pytest.mark.parametrize("form", ["scan", "loop"])
@pytest.mark.parametrize(("cell", "gates"), [("LSTM", "4"), ("GRU", "3"), ("RNN", "1")])
def test_an_expanded_cell_with_lengths_counts_its_frames(cell: str, gates: str, form: str) -> None:
    weights = {"{0.5, -1, 0.25, 1}": "{0.5}", "{1, 0.5, -0.5, 0.25}": "{1}"}
    weights |= {"LSTM": cell, "[1,4,1]": f"[1,{gates},1]"}
    text = changed(RAGGED, weights if cell == "RNN" else {"LSTM": cell})
    if cell == "GRU":
        text = changed(text, {"[1,4,1]": "[1,3,1]", ", 1}": "}", ", 0.25}": "}"})
    expanded = passes.expand(as_model(text), form=form, verify=False).model
    streamed = passes.stream(expanded, "T", judge=BOTH if form == "scan" else QUICK)
    counts = [state for state in streamed.plan.states if state.type == "int64"]
    assert [(state.shape, state.fill) for state in counts] == [((1, 1), 0)]
    assert len(streamed.plan.states) == (3 if cell == "LSTM" else 2)


@pytest.mark.slow
def test_lengths_are_not_compared_with_a_chunk() -> None:
    expanded = passes.expand(as_model(RAGGED), form="scan", verify=False).model
    streamed = passes.stream(expanded, "T", judge=QUICK)
    x = np.random.default_rng(0).normal(size=(7, 2, 1)).astype(np.float32)
    lengths, given = np.array([6, 3], np.int32), {}
    states = {one.input: one.first({"B": 2}) for one in streamed.plan.states}
    for start, end in [(0, 1), (1, 5), (5, 7)]:
        feeds = {"x": x[start:end], "lengths": lengths, **states}
        given = ReferenceExecutor().run(streamed.model, feeds).outputs
        states = {one.input: given[one.output] for one in streamed.plan.states}
    whole = ReferenceExecutor().run(as_model(RAGGED), {"x": x, "lengths": lengths}).outputs
    np.testing.assert_allclose(given["hn"], whole["hn"], rtol=1e-6)


@pytest.mark.parametrize("each", [False, True])
def test_a_range_goes_on(each: bool) -> None:
    streamed = passes.stream(as_model(MASKED), "T", each=each, judge=BOTH)
    (number, _) = streamed.plan.states
    assert (number.input, number.shape, number.type) == ("range_2_from", (1,), "int64")


def test_a_range_may_begin_and_step_elsewhere() -> None:
    twice = {
        "numbers = Range (zero, time, one)": "more = Add (time, time) end = Add (more, one) "
        "two = Constant <value_int = 2> () numbers = Range (one, end, two)"
    }
    text = changed(MASKED, twice)
    assert passes.stream(as_model(text), "T", each=True, judge=QUICK).plan.states


def test_numbers_from_the_end_are_unknown() -> None:
    backwards = {
        "numbers = Range (zero, time, one)": "back = Constant <value_int = -1> () "
        "numbers = Range (time, zero, back)"
    }
    with pytest.raises(CannotStream, match="the number of frames"):
        passes.stream(as_model(changed(MASKED, backwards)), "T", judge=QUICK)
