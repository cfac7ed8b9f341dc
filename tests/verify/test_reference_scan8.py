"""Scan-8 in the reference executor: batch, lengths, directions, padding, errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, parser
from ort_process import OrtProcess, OrtRefused, difference, ort_process

from passes.verify.executor import ModelFailed
from passes.verify.reference import ReferenceExecutor

RUN = ReferenceExecutor().run


@pytest.fixture(scope="module")
def ort() -> Iterator[OrtProcess]:
    with ort_process() as process:
        yield process


def running_sum(*, lens: bool = True, directions: str = "") -> ModelProto:
    """A running sum per row, and each iteration's sum."""
    spelled = f"directions = {directions}," if directions else ""
    return parser.parse_model(f"""
<ir_version: 8, opset_import: ["": 8]>
g ({"int64[B] lens, " if lens else ""}float[B] s, float[B, T] x)
    => (float[B] last, float[B, T] sums) {{
  last, sums = Scan <num_scan_inputs = 1, {spelled} body = body (float a, float e)
    => (float b, float c) {{ b = Add (a, e)  c = Identity (b) }}> ({"lens" if lens else ""}, s, x)
}}
""")


def feeds(lens: list[int] | None = None) -> dict[str, Any]:
    values = {
        "s": np.array([100, 200, 300], np.float32),
        "x": np.arange(1, 10, dtype=np.float32).reshape(3, 3),
    }
    return values if lens is None else {"lens": np.array(lens, np.int64), **values}


def test_without_lengths_every_row_runs_to_the_end() -> None:
    outputs = RUN(running_sum(lens=False), feeds()).outputs
    assert outputs["last"].tolist() == [106, 215, 324]
    assert outputs["sums"].tolist() == [[101, 103, 106], [204, 209, 215], [307, 315, 324]]


def test_rows_end_at_their_length_and_are_filled_with_zeros() -> None:
    outputs = RUN(running_sum(), feeds([2, 0, 3])).outputs
    assert outputs["last"].tolist() == [103, 200, 324]
    assert outputs["sums"].tolist() == [[101, 103, 0], [0, 0, 0], [307, 315, 324]]


def test_a_reversed_row_starts_at_its_last_valid_element() -> None:
    outputs = RUN(running_sum(directions="[1]"), feeds([2, 1, 3])).outputs
    # Row 0 reads 2, 1; outputs stand in the order of the iterations.
    assert outputs["sums"].tolist() == [[102, 103, 0], [204, 0, 0], [309, 317, 324]]


def test_no_row_runs_gives_zeros_of_the_body_s_type() -> None:
    outcome = RUN(running_sum(), feeds([0, 0, 0]))
    assert outcome.outputs["last"].tolist() == [100, 200, 300]
    assert outcome.outputs["sums"].tolist() == [[0, 0, 0]] * 3
    assert outcome.outputs["sums"].dtype == np.float32
    assert not outcome.guessed_shapes


def test_an_empty_batch_gives_empty_outputs() -> None:
    empty = {
        "lens": np.zeros(0, np.int64),
        "s": np.zeros(0, np.float32),
        "x": np.zeros((0, 3), np.float32),
    }
    outputs = RUN(running_sum(), empty).outputs
    assert outputs["last"].shape == (0,)
    assert outputs["sums"].shape == (0, 3)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"lens": np.array([1, 4, 0])}, "sequence_lens holds 4, outside of 0..3"),
        ({"lens": np.array([1, -1, 0])}, "sequence_lens holds -1, outside of 0..3"),
        ({"lens": np.array([1, 1])}, "must be int64 of shape"),
        ({"x": np.zeros((2, 3), np.float32)}, "batch sizes differ"),
        ({"s": np.zeros(2, np.float32)}, "batch sizes differ"),
    ],
)
def test_operands_that_do_not_fit_are_errors(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelFailed, match=words):
        RUN(running_sum(), {**feeds([1, 1, 1]), **change})


TWO_INPUTS = """
<ir_version: 8, opset_import: ["": 8]>
g (float[B, T] x, float[B, U] y) => (pairs) {
  pairs = Scan <num_scan_inputs = 2, directions = [0, 1], body = body (float a, float b)
    => (float c) { t = Mul (a, ten)  c = Add (t, b) }> (, x, y)
  ten = Constant <value = float {10}> ()
}
"""


def two_inputs() -> ModelProto:
    model = parser.parse_model(TWO_INPUTS)
    nodes = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend(reversed(nodes))
    return model


def test_each_input_has_its_own_direction() -> None:
    x = np.array([[1, 2, 3]], np.float32)
    outputs = RUN(two_inputs(), {"x": x, "y": x}).outputs
    assert outputs["pairs"].tolist() == [[13, 22, 31]]


def test_scanned_lengths_must_agree() -> None:
    with pytest.raises(ModelFailed, match="lengths of the scanned inputs differ"):
        RUN(two_inputs(), {"x": np.zeros((1, 3), np.float32), "y": np.zeros((1, 2), np.float32)})


STRINGS = """
<ir_version: 8, opset_import: ["": 8]>
g (int64[B] lens, string[B, T] x) => (y, z) {
  y, z = Scan <num_scan_inputs = 1, body = body (string e) => (string c, bool d) {
    c = Identity (e)  d = Constant <value = bool {1}> ()
  }> (lens, x)
}
"""


def test_strings_and_bools_are_padded_with_empty_and_false() -> None:
    values = {"lens": np.array([1, 2]), "x": np.array([["a", "b"], ["c", "d"]], object)}
    outputs = RUN(parser.parse_model(STRINGS), values).outputs
    assert outputs["y"].tolist() == [["a", ""], ["c", "d"]]
    assert outputs["z"].tolist() == [[True, False], [True, True]]


CONSTANT_INPUT = """
<ir_version: 3, opset_import: ["": 8]>
g (float[B] s, float[B, T] x) => (last) {
  last = Scan <num_scan_inputs = 1, body = body (float a, float e, float two) => (float b)
    <float two = {2}> { d = Mul (e, two)  b = Add (a, d) }> (, s, x)
}
"""


def test_with_ir_3_a_body_may_list_its_initializers_as_inputs() -> None:
    model = parser.parse_model(CONSTANT_INPUT)
    outputs = RUN(model, feeds()).outputs
    assert outputs["last"].tolist() == [112, 230, 348]


def test_a_state_that_changes_shape_is_an_error() -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 8]>
    g (float[B, N] s, float[B, T, N] x) => (last) {
      last = Scan <num_scan_inputs = 1, body = body (float[N] a, float[N] e) => (float[M] b) {
        b = Concat <axis = 0> (a, e)
      }> (, s, x)
    }""")
    values = {"s": np.zeros((1, 2), np.float32), "x": np.zeros((1, 2, 2), np.float32)}
    with pytest.raises(ModelFailed, match=r"state 0 changes its shape from \(2,\) to \(4,\)"):
        RUN(model, values)


def cell(first: int, second: int) -> str:
    """A Scan-8 that reads its two inputs in these directions."""
    return f"""
<ir_version: 8, opset_import: ["": 8]>
g (int64[B] lens, float[B, H] h0, float[B] n0, float[B, T, I] x, float[B, T] k, float[I, H] w)
  => (h, n, hs, ks) {{
    h, n, hs, ks = Scan <num_scan_inputs = 2, directions = [{first}, {second}],
      body = body (float[H] a, float m, float[I] e, float f)
        => (float[H] b, float o, float[H] c, float d) {{
          p = MatMul (e, w)  q = Add (a, p)  b = Tanh (q)  o = Add (m, f)
          c = Identity (b)  d = Mul (f, m)
      }}> (lens, h0, n0, x, k)
}}
"""


@pytest.mark.parametrize("seed", range(8))
def test_a_cell_with_captured_weights_as_onnxruntime_runs_it(ort: OrtProcess, seed: int) -> None:
    rng = np.random.default_rng(seed)
    batch, longest, width, hidden = (int(size) for size in rng.integers(1, 6, 4))
    text = cell(seed % 2, seed // 2 % 2)

    def values(*shape: int) -> Any:
        return rng.normal(size=shape).astype(np.float32)

    fed = {
        # onnxruntime refuses length 0.
        "lens": rng.integers(1, longest + 1, batch),
        "h0": values(batch, hidden),
        "n0": values(batch),
        "x": values(batch, longest, width),
        "k": values(batch, longest),
        "w": values(width, hidden),
    }
    model = parser.parse_model(text)
    answer = ort.run(model, fed)
    assert not isinstance(answer, OrtRefused), answer
    outputs = RUN(model, fed).outputs.values()
    assert [difference(a, b, 1e-5, 1e-6) for a, b in zip(outputs, answer, strict=True)] == [""] * 4
