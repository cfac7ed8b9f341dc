"""`stream` of models that read frames which come later: a chunk has some of the next one."""

from __future__ import annotations

import json

import numpy as np
import pytest

import passes
from passes.streaming.chunks import Judge, NotSame
from passes.streaming.plan import KEY, CannotStream, Reason
from passes.streaming.streamer import Streamer
from passes.testing import as_model
from passes.verify.reference import ReferenceExecutor
from tests.written import changed

QUICK = Judge("reference", budget=5)
BOTH = Judge(budget=10)

#: Two layers whose padding is on both sides, around which the sound is added, then a GRU.
LAYERS = """<ir_version: 10, opset_import: ["" : 21]>
g (float[B,1,T] x) => (float[T,B,1] y, float[B,1,T] z)
<float[1,1,3] W = {1, 2, -1}, float[1] b = {0.5},
 float[1,1,3] V = {0.5, 1, 1}, float[1,3,1] U = {1, 0.5, -1}, float[1,3,1] R = {0.5, 1, 1},
 int64[1] one = {1}> {
    a = Conv <pads = [1, 1]> (x, W, b)
    c = Sigmoid (a)
    z = Conv <pads = [2, 2], dilations = [2]> (c, V)
    sum = Add (z, x)
    steps = Transpose <perm = [2, 0, 1]> (sum)
    states = GRU <hidden_size = 1> (steps, U, R)
    y = Squeeze (states, one)
}"""
STRIDED = """<ir_version: 10, opset_import: ["" : 21]>
g (float[B,1,T] x) => (float[B,1,S] y) <float[1,1,4] W = {1, 2, -1, 0.5},
 float[1,1,3] V = {0.5, 1, -1}, float[1] b = {0.5}> {
    a = Conv <strides = [2], pads = [1, 2]> (x, W, b)
    y = Conv <pads = [1, 1]> (a, V, b)
}"""
#: Each step reads the frame after its own; that after the last one is 3.
NEXT = """<ir_version: 10, opset_import: ["" : 21]>
g (float[T,2] x) => (float[T,2] y) <float[2] first = {0, 1}, int64[4] pads = {0, 0, 1, 0},
 float three = {3}, int64[1] one = {1}, int64[1] end = {9223372036854775807}, int64[1] zero = {0}> {
    longer = Pad (x, pads, three)
    next = Slice (longer, one, end, zero)
    last, y = Scan <num_scan_inputs = 2, body = step (float[2] h, float[2] a, float[2] b)
            => (float[2] new, float[2] out) {
        sum = Add (h, a)
        both = Mul (sum, b)
        new = Tanh (both)
        out = Identity (new)
    }> (first, x, next)
}"""


@pytest.mark.parametrize(
    ("text", "frames", "multiple"), [(LAYERS, 3, 1), (STRIDED, 3, 2), (NEXT, 1, 1)]
)
def test_a_chunk_is_followed_by_frames_of_the_next_one(
    text: str, frames: int, multiple: int
) -> None:
    plan = passes.stream(as_model(text), "T", judge=BOTH).plan
    assert (plan.look_ahead, plan.chunk_multiple) == (frames, multiple)


def test_the_end_is_told_by_the_frames_that_are_left() -> None:
    streamed = passes.stream(as_model(LAYERS), "T", judge=QUICK)
    (entry,) = [one for one in streamed.model.metadata_props if one.key == KEY]
    told = json.loads(entry.value)
    assert (told["look_ahead"], told["delay"], told["drop"]) == (3, 3, 0)
    x = np.random.default_rng(0).normal(size=(2, 1, 9)).astype(np.float32)
    runner, sizes, pieces = ReferenceExecutor(), {"B": 2}, []
    fed = {
        one["input"]: np.full([sizes.get(size, size) for size in one["shape"]], one["fill"], "f")
        for one in told["states"]
    }
    padded = np.pad(x, [(0, 0), (0, 0), (0, 3)], constant_values=np.nan)
    for start, end in ((0, 4), (4, 5), (5, 9)):
        chunk = {"x": padded[:, :, start : end + 3], "frames_left": np.array(9 - start)}
        outputs = runner.run(streamed.model, {**chunk, **fed}).outputs
        fed = {one["input"]: np.asarray(outputs[one["output"]]) for one in told["states"]}
        pieces.append(np.asarray(outputs["y"]))
    whole = np.asarray(runner.run(as_model(LAYERS), {"x": x}).outputs["y"])
    np.testing.assert_allclose(np.concatenate(pieces), whole, rtol=1e-5, atol=1e-6)


def test_without_the_end_the_outcome_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    # later layers would read what a layer makes of zeros after the last frame, not zeros
    monkeypatch.setattr(Streamer, "ended", lambda self, name, *_: name)
    with pytest.raises(NotSame):
        passes.stream(as_model(LAYERS), "T", judge=QUICK)


def test_after_a_state_nothing_reads_ahead() -> None:
    text = changed(
        LAYERS,
        {
            "float[T,B,1] y": "float[B,1,T] y",
            "y = Squeeze (states, one)": "rows = Squeeze (states, one) "
            "turned = Transpose <perm = [1, 2, 0]> (rows) y = Conv <pads = [1, 1]> (turned, W)",
        },
    )
    with pytest.raises(
        CannotStream, match="frames that come later, 1 ahead, of what has"
    ) as caught:
        passes.stream(as_model(text), "T", judge=QUICK)
    assert caught.value.reason == Reason.AHEAD
