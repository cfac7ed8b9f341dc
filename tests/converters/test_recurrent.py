"""The steps of GRU, LSTM and RNN, run at the old opset and converted."""

from __future__ import annotations

import numpy as np
import pytest
from proving import EVERYWHERE, ops, prove

pytestmark = pytest.mark.sampled

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def _recurrent(op: str, attributes: str, directions: int, more: str, outputs: str) -> str:
    """A node with every weight; `more` are its inputs from sequence_lens on."""
    gates, d = GATES[op] * 4, directions
    types = {
        "lens": "int32[2]",
        "h": f"float[{d},2,4]",
        "c": f"float[{d},2,4]",
        "p": f"float[{d},12]",
        "y": f"float[5,{d},2,4]",
        "yh": f"float[{d},2,4]",
        "yc": f"float[{d},2,4]",
    }
    extra = "".join(f", {types[one]} {one}" for one in more.split(", ") if one)
    given = ", ".join(f"{types[one]} {one}" for one in outputs.split(", ") if one)
    return f"""(float[5,2,3] x, float[{d},{gates},3] w, float[{d},{gates},4] r,
            float[{d},{2 * gates}] b{extra}) => ({given})
        {{ {outputs} = {op}<hidden_size = 4{attributes}>(x, w, r, b, {more}) }}""".replace(
        ", )", ")"
    )


@pytest.mark.parametrize("more", ["", "lens", "lens, h", ", h"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("op", GATES)
def test_layout_is_time_first(op: str, direction: str, more: str) -> None:
    graph = _recurrent(
        op,
        f', direction = "{direction}"',
        2 if direction == "bidirectional" else 1,
        more,
        "y, yh",
    )
    places = EVERYWHERE if more == "lens, h" else ["main"]
    feeds = {"lens": np.array([5, 3], np.int32)} if "lens" in more else {}
    after = prove(graph, opset=7, target=26, feeds=feeds, places=places)
    assert ops(after) == [op]


@pytest.mark.parametrize(
    ("op", "attributes", "more"),
    [
        ("GRU", ", linear_before_reset = 1", ""),
        ("GRU", ', clip = 0.5, activations = ["HardSigmoid", "Softsign"]', ""),
        ("LSTM", ", input_forget = 1", "lens, h, c, p"),
        ("LSTM", ", clip = 0.3", "lens, h, c"),
        ("LSTM", ', activations = ["Sigmoid", "Relu", "Affine"]', "lens, h, c, p"),
        ("RNN", ', activations = ["LeakyRelu"], activation_alpha = [0.2]', "lens, h"),
        ("RNN", ', activations = ["ScaledTanh"]', ""),
    ],
)
@pytest.mark.parametrize("opset", [7, 14])
def test_attributes(opset: int, op: str, attributes: str, more: str) -> None:
    outputs = "y, yh, yc" if op == "LSTM" else "y, yh"
    feeds = {"lens": np.array([5, 3], np.int32)} if more else {}
    graph = _recurrent(op, attributes, 1, more, outputs)
    prove(graph, opset=opset, target=26, feeds=feeds, places=["main", "loop"])


@pytest.mark.parametrize("op", GATES)
def test_an_output_that_is_left_out(op: str) -> None:
    prove(_recurrent(op, "", 1, "", ", yh"), opset=7, target=26)
