"""`stream`: a sequence in chunks of any length gives what the whole gives."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import passes
from passes.errors import WrongUsage
from passes.streaming.chunks import Judge, NotCompared, NotSame, Streamed
from passes.streaming.plan import KEY, CannotStream, Plan
from passes.streaming.streamer import NodeState, Streamer
from passes.verify.executor import Value
from passes.verify.reference import ReferenceExecutor
from tests.written import changed

QUICK = Judge("reference", budget=5)
BOTH = Judge(budget=10)

SCAN = """<ir_version: 10, opset_import: ["" : 21]>
g (float[B,T,2] x) => (float[B,T,2] y) <float[2] start = {0.5, -1}, int64[1] two = {2}> {
    sizes = Shape (x)
    zero = Constant <value_ints = [0]> ()
    rows = Gather (sizes, zero)
    shape = Concat <axis = 0> (rows, two)
    first = Expand (start, shape)
    last, y = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1],
                    body = step (float[B,2] h, float[B,2] a) => (float[B,2] new, float[B,2] out) {
        sum = Add (h, a)
        new = Tanh (sum)
        out = Identity (new)
    }> (first, x)
}"""
LSTM = """<ir_version: 10, opset_import: ["" : 21]>
g (float[T,B,1] x, float[1,B,1] h, float[1,B,1] c) => (float[T,1,B,1] y, float[1,B,1] hn)
<float[1,4,1] W = {0.5, -1, 0.25, 1}, float[1,4,1] R = {1, 0.5, -0.5, 0.25}> {
    y, hn, cn = LSTM <hidden_size = 1> (x, W, R, "", "", h, c)
}"""
CELL = """<ir_version: 10, opset_import: ["" : 21]>
g (float[T,B,1] x, float[1,4,1] W, float[1,4,1] R) => (float[T,1,B,1] y) {
    y = LSTM <hidden_size = 1> (x, W, R)
}"""
STACKED = """<ir_version: 10, opset_import: ["" : 21]>
g (float[T,B,1] x, float[2,B,1] h) => (float[T,B,1] y, float[2,B,1] hn)
<float[1,1,1] W = {0.5}, float[1,1,1] R = {-1}, int64[1] one = {1}> {
    h0, h1 = Split <num_outputs = 2> (h)
    y0, n0 = RNN <hidden_size = 1> (x, W, R, "", "", h0)
    x1 = Squeeze (y0, one)
    y1, n1 = RNN <hidden_size = 1> (x1, W, R, "", "", h1)
    y = Squeeze (y1, one)
    hn = Concat <axis = 0> (n0, n1)
}"""
CONV = """<ir_version: 10, opset_import: ["" : 21]>
g (float[B,1,T] x) => (float[B,1,T] y)
<float[1,1,3] W = {1, 2, -1}, float[1,1,2] V = {0.5, 1}, int64[6] pads = {0, 0, 2, 0, 0, 0},
 int64[1] zero = {0}, int64[1] end = {-2}, int64[1] axis = {2}> {
    padded = Pad (x, pads)
    a = Conv (padded, W)
    b = Sigmoid (a)
    longer = Conv <pads = [2, 2], dilations = [2]> (b, V)
    y = Slice (longer, zero, end, axis)
}"""
#: The pads as torch writes those of its Pad: pairs, from the last axis on.
TORCH_PADS = """<ir_version: 10, opset_import: ["" : 21]>
g (float[B,1,T] x) => (float[B,1,T] y) <float[1,1,3] W = {1, 2, -1}> {
    few = Constant <value_ints = [2, 0]> ()
    four = Constant <value_ints = [4]> ()
    zeros = ConstantOfShape <value = int64[1] {0}> (four)
    all = Concat <axis = 0> (few, zeros)
    two = Constant <value_ints = [-1, 2]> ()
    pairs = Reshape (all, two)
    last = Constant <value_ints = [-1]> ()
    end = Constant <value_ints = [-9223372036854775807]> ()
    zero = Constant <value_ints = [0]> ()
    turned = Slice (pairs, last, end, zero, last)
    columns = Transpose <perm = [1, 0]> (turned)
    flat = Reshape (columns, last)
    pads = Cast <to = 7> (flat)
    padded = Pad (x, pads)
    y = Conv (padded, W)
}"""
STRIDED = """<ir_version: 10, opset_import: ["" : 21]>
g (float[B,1,T] x) => (float[B,1,S] y) <float[1,1,3] W = {1, 2, -1}> {
    y = Conv <strides = [2], pads = [1, 0]> (x, W)
}"""
SUM = """<ir_version: 10, opset_import: ["" : 21]>
g (float[T,2] x) => (float[T,2] y) <int64 axis = {0}> {
    y = CumSum <exclusive = 1> (x, axis)
}"""


def model(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


def states(streamed: Streamed) -> dict[str, str]:
    return {state.input: state.output for state in streamed.plan.states}


def run(streamed: Streamed, x: np.ndarray, cuts: list[int]) -> np.ndarray:
    """The output `y` for `x`, cut so, by what the model itself tells."""
    (entry,) = [one for one in streamed.model.metadata_props if one.key == KEY]
    told = json.loads(entry.value)
    (given,), (made,) = told["inputs"], told["outputs"]
    sizes = {"B": x.shape[0]}
    fed: dict[str, Value] = {
        one["input"]: np.full(
            [sizes.get(size, size) for size in one["shape"]], one["fill"], one["type"]
        )
        for one in told["states"]
    }
    pieces = []
    for chunk in np.split(x, cuts, given["time_axis"]):
        outputs = ReferenceExecutor().run(streamed.model, {"x": chunk, **fed}).outputs
        fed = {one["input"]: outputs[one["output"]] for one in told["states"]}
        pieces.append(np.asarray(outputs["y"]))
    return np.concatenate(pieces, made["time_axis"])


DECODER = """<ir_version: 10, opset_import: ["" : 21]>
g (float[S,B,1] source, float[T,B,1] x) => (float[T,1,B,1] y)
<float[1,3,1] W = {0.5, -1, 0.25}, float[1,3,1] R = {1, 0.5, -0.5}> {
    context, encoded = GRU <hidden_size = 1> (source, W, R)
    bridged = Tanh (encoded)
    y = GRU <hidden_size = 1> (x, W, R, "", "", bridged)
}"""


def test_a_model_of_its_own_computes_what_states_start_with() -> None:
    streamed = passes.stream(model(DECODER), "T", initial=True, judge=BOTH)
    (state,) = streamed.plan.states
    assert (state.computed, state.shape, state.batch_axis) == (True, (1, "B", 1), 1)
    assert [value.name for value in streamed.model.graph.input] == ["x", state.input]
    assert streamed.initial is not None
    assert [value.name for value in streamed.initial.graph.input] == ["source"]
    assert [value.name for value in streamed.initial.graph.output] == [state.input]
    assert [node.op_type for node in streamed.initial.graph.node] == ["GRU", "Tanh", "Identity"]


def test_what_reads_an_input_beside_the_initial_model_keeps_it() -> None:
    text = changed(DECODER, {"bridged)\n}": "bridged)\n z = Neg (encoded)\n}"})
    text = changed(text, {"[T,1,B,1] y)": "[T,1,B,1] y, float[1,B,1] z)"})
    streamed = passes.stream(model(text), "T", initial=True, judge=QUICK)
    assert [value.name for value in streamed.model.graph.input] == ["source", "x", "gru_2_h"]


def test_a_state_whose_rows_start_with_different_values_is_computed() -> None:
    text = changed(
        SCAN,
        {
            "first = Expand (start, shape)": "same = Expand (start, shape) "
            "first = CumSum (same, axis)",
            "two = {2}": "two = {2}, int64 axis = {0}",
        },
    )
    with pytest.raises(CannotStream, match="different values in each row"):
        passes.stream(model(text), "T", judge=QUICK)
    streamed = passes.stream(model(text), "T", initial=True, judge=BOTH)
    assert [state.computed for state in streamed.plan.states] == [True]


def test_an_initial_model_that_computes_something_else_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compare = Judge.compare

    def wrong(self: Judge, *models: Any, initial: onnx.ModelProto) -> object:
        initial.graph.node[1].op_type = "Sigmoid"
        return compare(self, *models, initial=initial)

    monkeypatch.setattr(Judge, "compare", wrong)
    with pytest.raises(NotSame, match="not those of the whole"):
        passes.stream(model(DECODER), "T", initial=True, judge=QUICK)


@pytest.mark.parametrize("operator", ["LSTM", "GRU", "RNN"])
def test_what_expand_writes_is_streamed(operator: str) -> None:
    """The If for empty sequences is gone, as a chunk has a frame."""
    gates = {"LSTM": "4", "GRU": "3", "RNN": "1"}[operator]
    text = changed(CELL, {"= LSTM": f"= {operator}", "[1,4,1]": f"[1,{gates},1]"})
    expanded = passes.expand(model(text), form="scan", verify=False).model
    assert "If" in [node.op_type for node in expanded.graph.node]
    streamed = passes.stream(expanded, "T", judge=QUICK)
    assert "Scan" in [node.op_type for node in streamed.model.graph.node]


def test_a_scan_over_time() -> None:
    streamed = passes.stream(model(SCAN), "T", judge=BOTH)
    (state,) = streamed.plan.states
    assert (state.input, state.output) == ("scan_5_h", "new_scan_5_h")
    assert (state.shape, state.type, state.batch_axis) == (("B", 2), "float32", 0)
    assert state.value == [[0.5, -1.0]]
    first = state.first({"B": 3})
    assert first is not None
    np.testing.assert_array_equal(first, [[0.5, -1]] * 3)
    assert streamed.verification.errors.ulp == 0
    assert {node.op_type for node in streamed.model.graph.node} == {"Scan"}


def test_chunks_by_what_the_model_tells() -> None:
    x = np.random.default_rng(0).normal(size=(2, 1, 9)).astype(np.float32)
    streamed = passes.stream(model(CONV), "T", judge=QUICK)
    whole = np.asarray(ReferenceExecutor().run(model(CONV), {"x": x}).outputs["y"])
    np.testing.assert_allclose(run(streamed, x, [1, 4, 5]), whole, rtol=1e-5, atol=1e-6)


def test_causal_convolutions_have_a_cache_each() -> None:
    streamed = passes.stream(model(CONV), "T", judge=BOTH)
    assert [(one.shape, one.fill) for one in streamed.plan.states] == [(("B", 1, 2), 0.0)] * 2


def test_pads_may_be_computed_from_constants() -> None:
    streamed = passes.stream(model(TORCH_PADS), "T", judge=QUICK)
    assert [(one.shape, one.fill) for one in streamed.plan.states] == [(("B", 1, 2), 0.0)]


def test_a_stride_asks_for_chunks_of_a_multiple() -> None:
    streamed = passes.stream(model(STRIDED), "T", judge=QUICK)
    assert streamed.plan.chunk_multiple == 2
    assert streamed.plan.outputs[0].every == 2


@pytest.mark.parametrize("exclusive", ["0", "1"])
def test_sums_go_on(exclusive: str) -> None:
    text = changed(SUM, {"exclusive = 1": f"exclusive = {exclusive}"})
    assert states(passes.stream(model(text), "T", judge=QUICK)) == {
        "cumsum_0_sum": "new_cumsum_0_sum"
    }


def test_a_state_that_was_an_input_and_an_output_keeps_its_names() -> None:
    streamed = passes.stream(model(LSTM), "T", judge=BOTH)
    assert states(streamed) == {"h": "hn", "c": "new_c"}
    assert all(state.fill is None and state.value is None for state in streamed.plan.states)


@pytest.mark.slow
def test_the_lengths_of_rows_are_counted_down() -> None:
    with_lengths = {"float[1,B,1] c)": "float[1,B,1] c, int32[B] l)", 'R, "", "",': 'R, "", l,'}
    streamed = passes.stream(model(changed(LSTM, with_lengths)), "T", judge=BOTH)
    assert states(streamed) == {"h": "hn", "lstm_0_done": "new_lstm_0_done", "c": "new_c"}
    (done,) = [state for state in streamed.plan.states if state.input == "lstm_0_done"]
    assert (done.shape, done.type, done.fill) == (("B",), "int32", 0)
    rows = changed(LSTM, {"hidden_size = 1": "hidden_size = 1, layout = 1"} | with_lengths)
    rows = rows.replace("[T,B,1]", "[B,T,1]").replace("[T,1,B,1]", "[B,T,1,1]")
    rows = rows.replace("[1,B,1]", "[B,1,1]")  # onnxruntime has no kernel for this layout
    assert states(passes.stream(model(rows), "T", judge=QUICK)) == states(streamed)


@pytest.mark.parametrize("cell", ["LSTM", "GRU", "RNN"])
def test_a_chunk_without_frames_is_an_error(cell: str) -> None:
    # without a guard, the GRU of onnxruntime would end the process
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[cell]
    text = changed(CELL, {"LSTM": cell, "[1,4,1]": f"[1,{gates},1]"})
    streamed = passes.stream(model(text), "T", judge=QUICK)
    session = onnxruntime.InferenceSession(streamed.model.SerializeToString())
    feeds = {state.input: np.ones((1, 2, 1), np.float32) for state in streamed.plan.states}
    weights = {name: np.ones((1, gates, 1), np.float32) for name in "WR"}
    for frames in (1, 0):
        feeds |= {"x": np.ones((frames, 2, 1), np.float32), **weights}
        if frames:
            assert np.isfinite(session.run(None, feeds)[0]).all()
        else:
            with pytest.raises(Exception, match="Gather node"):
                session.run(None, feeds)


def test_states_of_stacked_layers_stay_one_input_and_one_output() -> None:
    assert states(passes.stream(model(STACKED), "T", judge=QUICK)) == {"h": "hn"}


def test_names_of_states_are_chosen() -> None:
    streamed = passes.stream(model(SCAN), "T", naming=("past.{}", "present.{}"), judge=QUICK)
    assert states(streamed) == {"past.scan_5_h": "present.scan_5_h"}


#: Models in which a long sequence is another one than its chunks, from 300 frames on.
LONG = {
    "a choice": "n = Size (x) g = Less (n, many) z = Neg (x) y = Where (g, x, z)",
    "a step": """n = Size (x) q = Div (n, many) d = Add (q, one) m = Mul (n, d)
        r = Range (none, m, d) f = Cast <to = 1> (r) y = Add (x, f)""",
    "a cut": """n = Shape (x) l = Min (n, many) axes = Constant <value_ints = [0]> ()
        e = Reshape (l, ones) y = Slice (x, axes, e)""",
    "one of several": """n = Shape (x) b = Concat <axis = 0> (n, n)
        by = Constant <value_ints = [1, 300]> () q = Div (b, by) p = Gather (q, one)
        f = Cast <to = 1> (p) y = Add (x, f)""",
    "a state": """n = Size (x) g = Less (n, many) h = Constant <value_float = 1.0> () k = Neg (h)
        s = Where (g, h, k)
        t, y = Scan <num_scan_inputs = 1, body = b (float a, float c) => (float d, float e)
            { d = Add (a, c) e = Identity (d) }> (s, x)""",
    "an output": """n = Shape (x) l = Min (n, many) e = Reshape (l, ones)
        z = ConstantOfShape (e) y = Concat <axis = 0> (z)""",
}


@pytest.mark.parametrize("name", LONG)
def test_what_no_number_of_frames_that_is_tried_shows(name: str) -> None:
    head = """<ir_version: 10, opset_import: ["" : 21]> g (float[T] x) => (float[S] y)
        <int64 many = {300}, int64 one = {1}, int64 none = {0}, int64[1] ones = {1}>"""
    with pytest.raises(CannotStream) as caught:
        passes.stream(model(f"{head} {{ {LONG[name]} }}"), "T", judge=QUICK)
    assert caught.value.reason == "number-of-frames"


def test_there_is_a_frame() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21]> g (float[T] x) => (float[T] y)
        <int64 none = {0}, int64 one = {1}> {
            n = Size (x) some = Greater (n, none) few = Less (n, one) on = Not (few)
            both = And (some, on) z = Neg (x) y = Where (some, z, x)
        }"""
    assert not passes.stream(model(text), "T", judge=QUICK).plan.states


def test_a_loop_becomes_a_scan_first() -> None:
    streamed = passes.stream(
        "golden_models/exported/tensorflow/keras_gru.opset13.onnx", "unk__171", judge=QUICK
    )
    (state,) = streamed.plan.states  # not the weights, which the Loop carries
    assert state.shape == ("unk__170", 2)


def test_a_chunk_of_one_frame_has_no_loop() -> None:
    streamed = passes.stream(model(SCAN), "T", chunk=1, judge=BOTH)
    kinds = [node.op_type for node in streamed.model.graph.node]
    assert kinds == ["Squeeze", "Add", "Tanh", "Unsqueeze"]
    assert [dim.dim_value for dim in streamed.model.graph.input[0].type.tensor_type.shape.dim] == [
        *(0, 1, 2)
    ]
    # onnxruntime runs one step of the operator faster than its products
    streamed = passes.stream(model(LSTM), "T", chunk=1, judge=BOTH)
    assert [node.op_type for node in streamed.model.graph.node] == ["LSTM"]


def test_chunks_of_a_fixed_number_of_frames() -> None:
    streamed = passes.stream(model(STRIDED), "T", chunk=4, judge=BOTH)
    ends = (streamed.model.graph.input[0], streamed.model.graph.output[0])
    assert [value.type.tensor_type.shape.dim[2].dim_value for value in ends] == [4, 2]
    with pytest.raises(WrongUsage, match="a chunk of 3 frames is no multiple of 2"):
        passes.stream(model(STRIDED), "T", chunk=3)
    with pytest.raises(ValueError, match="chunk is -2, it must be 0 or more"):
        passes.stream(model(STRIDED), "T", chunk=-2)


#: A running total of scalars.
TOTAL = """<ir_version: 10, opset_import: ["" : 21]>
g (float[T] x, float total) => (float last, float[T] totals) {
    last, totals = Scan <num_scan_inputs = 1, body = b (float s, float e) => (float n, float row) {
        n = Add (s, e)
        row = Identity (n)
    }> (total, x)
}"""


@pytest.mark.parametrize("text", ["SCAN", "GRU", "CONV", "SUM", "TOTAL"])
def test_states_after_every_frame_are_rolled_back_to(text: str) -> None:
    # the judge goes on from a frame within each chunk, drawn at random
    gru = changed(CELL, {"LSTM": "GRU", "[1,4,1]": "[1,3,1]"})
    texts = {"SCAN": SCAN, "GRU": gru, "CONV": CONV, "SUM": SUM, "TOTAL": TOTAL}
    streamed = passes.stream(model(texts[text]), "T", each=True, judge=BOTH)
    assert [state.each for state in streamed.plan.states] == [
        f"every_{state.input}" for state in streamed.plan.states
    ]


def test_a_state_of_the_wrong_frame_is_never_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(self: Streamer, slot: NodeState, joined: str, *_: object) -> None:
        first = self.author.op("Slice", joined, *map(self.author.ints, (0, 1, slot.axis)))
        self.author.op("Unsqueeze", first, self.author.ints(0), outputs=[slot.each])

    monkeypatch.setattr(Streamer, "windows", wrong)
    with pytest.raises((NotSame, NotCompared)):
        passes.stream(model(SUM), "T", each=True, judge=QUICK)


def test_the_cell_state_of_an_lstm_is_that_of_a_scan() -> None:
    # the operator returns it after the last frame alone
    text = changed(LSTM, {"float[1,B,1] hn)": "float[1,B,1] hn, float[1,B,1] cn)"})
    streamed = passes.stream(model(text), "T", each=True, judge=BOTH)
    assert [(one.input, one.each) for one in streamed.plan.states] == [
        ("h", "every_h"),
        ("c", "every_c"),
    ]
    assert "Scan" in {node.op_type for node in streamed.model.graph.node}


def test_states_that_are_joined_are_not_known_after_each_frame() -> None:
    with pytest.raises(CannotStream, match="no value holds the state 'h' after each frame"):
        passes.stream(model(STACKED), "T", each=True, judge=QUICK)


BESIDE = """<ir_version: 10, opset_import: ["" : 21]>
g (float[T,1,2] x, float[T,1,1] z, float[2,1,2] W, float[2,1,1] R, float[1,1,1] V, float[1,1,1] Q)
    => (float[T,1,1,1] y) <int64[1] zero = {0}> {
    whole, ends = RNN <hidden_size = 1, direction = "bidirectional"> (x, W, R)
    sum = ReduceSum (ends, zero)
    rows = RNN <hidden_size = 1> (z, V, Q)
    y = Add (rows, sum)
}"""


def test_a_loop_is_chosen_by_its_path() -> None:
    # the first operator reads all of `x` in each chunk of `z`
    with pytest.raises(CannotStream, match="main/rnn_0: RNN reads the sequence in both directions"):
        passes.stream(model(BESIDE), "T", judge=QUICK)
    streamed = passes.stream(model(BESIDE), loop="main/rnn_2", judge=BOTH)
    assert [port.name for port in streamed.plan.inputs] == ["z"]
    assert streamed.plan.axis == "time"
    known = changed(BESIDE, {"RNN <hidden_size = 1> (z,": "RNN <hidden_size = 1> (V,"})
    with pytest.raises(WrongUsage, match="main/rnn_2 runs along the dim of no input"):
        passes.stream(model(known), loop="main/rnn_2")


def test_an_axis_without_a_name() -> None:
    text = changed(SUM, {"float[T,2] x": "float[4,2] x", "float[T,2] y": "float[4,2] y"})
    streamed = passes.stream(model(text), "x=0", judge=QUICK)
    assert streamed.plan.axis == "time"
    assert streamed.model.graph.output[0].type.tensor_type.shape.dim[0].dim_param == "time"


def test_the_last_frame_is_that_of_the_last_chunk() -> None:
    text = changed(
        LSTM,
        {
            "float[T,1,B,1] y, float[1,B,1] hn": "float[1,B,1] z",
            "h, c)\n}": "h, c) at = Constant <value_int = -1> () z = Gather (y, at) }",
        },
    )
    streamed = passes.stream(model(text), "T", judge=QUICK)
    assert streamed.plan.last == ["z"]


def test_a_wrong_plan_is_never_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    compare = Judge.compare

    def wrong(self: Judge, whole: Any, part: Any, plan: Plan, **how: object) -> object:
        ones = [dataclasses.replace(state, value=None, fill=1.0) for state in plan.states]
        return compare(self, whole, part, dataclasses.replace(plan, states=ones))

    monkeypatch.setattr(Judge, "compare", wrong)
    with pytest.raises(NotSame, match="not those of the whole"):
        passes.stream(model(CONV), "T", judge=QUICK)


REFUSED = {
    "backwards": changed(
        SCAN, {"scan_input_axes = [1]": "scan_input_axes = [1], scan_input_directions = [1]"}
    ),
    "reads-ahead": changed(CONV, {"pads = [2, 2]": 'auto_pad = "SAME_UPPER"'}),
    "lengths": changed(
        LSTM,
        {
            "y, hn": "at = Constant <value_ints = [1]> () n = Shape <start = 0, end = 1> (x) "
            "rows = Shape <start = 1, end = 2> (x) m = Cast <to = 6> (n) "
            "l = Expand (m, rows) y, hn",
            'W, R, "", "", h': 'W, R, "", l, h',
        },
    ),
    "whole-sequence": changed(SUM, {"CumSum <exclusive = 1> (x, axis)": "Softmax <axis = 0> (x)"}),
    "number-of-frames": changed(
        SUM,
        {
            "y = CumSum <exclusive = 1> (x, axis)": "n = Size (x) m = Cast <to = 1> (n) "
            "y = Div (x, m)"
        },
    ),
    "initial-state": changed(
        LSTM,
        {
            "y, hn, cn = LSTM": "twice = Add (c, c) y, hn, cn = LSTM",
            "h, c)\n}": "h, twice)\n}",
        },
    ),
    "loop": changed(
        SUM,
        {
            "(float[T,2] x)": "(float[T,2] x, bool c)",
            "<int64 axis = {0}>": "",
            "CumSum <exclusive = 1> (x, axis)": "If <then_branch = t () => (float[n,2] p) "
            "{ p = Neg (x) }, else_branch = e () => (float[n,2] q) { q = Abs (x) }> (c)",
        },
    ),
    "unsupported": changed(SUM, {"CumSum <exclusive = 1> (x, axis)": "Unique <axis = 0> (x)"}),
}


@pytest.mark.parametrize("code", REFUSED)
def test_refusals_name_the_node_and_the_reason(code: str) -> None:
    with pytest.raises(CannotStream) as caught:
        passes.stream(model(REFUSED[code]), "T", judge=QUICK)
    assert caught.value.reason == code
    assert str(caught.value).startswith("main/")


MIXED = """<ir_version: 10, opset_import: ["" : 21]>
g (float[T,K] x, float[4,2] w) => (float[P,Q] y) <int64[2] flat = {4, -1}> {
    turned = Transpose (x)
    y = Mixes (x)
}"""


@pytest.mark.parametrize(
    ("op", "axis", "sentence"),
    [
        ("ReduceMean <keepdims = 1> (x)", "T", "ReduceMean reduces or sums over time"),
        ("MatMul (turned, x)", "T", "MatMul reduces or sums over time"),
        ("MatMul (x, turned)", "T", "MatMul combines frames with all others"),
        ('Einsum <equation = "tk,sk->t"> (x, x)', "T", "Einsum multiplies frames by others"),
        ("Concat <axis = 0> (x, x)", "T", "Concat gives another number of frames"),
        ("Reshape (x, flat)", "T", "Reshape does not keep the frames in their order"),
        ("LayerNormalization <axis = 0> (x, x)", "T", "reads 'x', which depends on time"),
        ("Add (x, w)", "T", "the model fails at other numbers of frames: Add 'y' failed"),
    ],
)
def test_what_mixes_frames_is_refused(op: str, axis: str, sentence: str) -> None:
    with pytest.raises(CannotStream, match=sentence):
        passes.stream(model(changed(MIXED, {"Mixes (x)": op})), axis, judge=QUICK)


def test_wrong_names_are_told() -> None:
    with pytest.raises(WrongUsage, match="no input has a dim 'time'; the nearest"):
        passes.stream(model(SCAN), "time")
    with pytest.raises(WrongUsage, match="has 3 axes, none of them is '7'"):
        passes.stream(model(SCAN), "x=7")
    with pytest.raises(WrongUsage, match="no output 'cn'"):
        passes.stream(model(LSTM), "T", states={"c": "cn"})


@pytest.mark.sampled(30)
@pytest.mark.parametrize(
    ("file", "axis", "count"),
    [
        ("jax/recurrence_of_any_batch.opset21", "T", 1),
        ("jax/selective_scan.opset21", "in_0=0,in_1=0,in_2=0,in_3=0", 1),
        ("tensorflow/keras_stacked.opset18", "unk__339", 3),
        ("tensorflow/v1_cell_ragged.opset18", "unk__179", 3),
        ("torch/gru.opset13", "x0_d1", 1),
        ("torch/lstm_given_state.opset13", "x0_d0", 2),
        ("torch/scan_min_gru_of_any_size.opset18", "time", 1),
    ],
)
def test_models_of_exporters(file: str, axis: str, count: int) -> None:
    streamed = passes.stream(f"golden_models/exported/{file}.onnx", axis, judge=QUICK)
    assert len(streamed.plan.states) == count
