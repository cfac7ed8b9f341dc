"""Recurrent rules: the new axis is merged into the batch."""

from __future__ import annotations

import numpy as np
import pytest
from looping import prove, refused

pytestmark = pytest.mark.sampled

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
T, WIDTH, H = 4, 3, 2


def body(op: str, n: object, layout: int, fed: str, given: str, directions: int = 1) -> str:
    """A graph of one recurrent op: `fed` are the inputs behind W and R, `given` the outputs."""
    gates = GATES[op]
    batch = f"{n}, {T}" if layout else f"{T}, {n}"
    state = f"{n}, {directions}" if layout else f"{directions}, {n}"
    direction = "bidirectional" if directions == 2 else "forward"
    types = [
        f"float[{batch}, {WIDTH}] x",
        f"float[{directions}, {gates * H}, {WIDTH}] w",
        f"float[{directions}, {gates * H}, {H}] r",
        f"float[{directions}, {2 * gates * H}] b",
        f"int32[{n}] lens",
        f"float[{state}, {H}] h",
        f"float[{state}, {H}] c",
        f"float[{directions}, {3 * H}] p",
    ]
    outputs = ", ".join(f"float[] {name.strip()}" for name in given.split(",") if name.strip())
    return (
        f"g ({', '.join(types)}) => ({outputs}) {{ {given} = {op} <hidden_size = {H}, "
        f'layout = {layout}, direction = "{direction}"> (x, w, r, {fed}) }}'
    )


FEEDS = {"lens": np.array([4, 2, 1], np.int32)}
ALL = {"RNN": "y, yh", "GRU": "y, yh", "LSTM": "y, yh, yc"}
FED = {"RNN": "b, lens, h", "GRU": "b, lens, h", "LSTM": "b, lens, h, c, p"}


@pytest.mark.parametrize("opset", [14, 22])
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("carrying", [["x"], ["h"], ["x", "lens"], ["lens"], ["x", "h", "c"]])
@pytest.mark.parametrize("op", GATES)
def test_sequences_of_all_rows_are_one_batch(
    op: str, carrying: list[str], n: int, directions: int, opset: int, both: list
) -> None:
    carrying = [name for name in carrying if name != "c" or op == "LSTM"]
    text = body(op, n, 0, FED[op], ALL[op], directions)
    feeds = {"lens": FEEDS["lens"][:n]}
    prove(text, carrying, feeds, opset=opset, executors=both, rtol_terms=WIDTH + H)


@pytest.mark.parametrize("n", ["1", "3", "N"])
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("op", GATES)
def test_layout_1_has_the_batch_in_front(op: str, directions: int, n: str) -> None:
    text = body(op, n, 1, FED[op], ALL[op], directions)
    feeds = FEEDS if n == "N" else {"lens": FEEDS["lens"][: int(n)]}
    prove(text, ["x", "h"], feeds, rtol_terms=WIDTH + H)


@pytest.mark.parametrize("given", ["y", "", "yh"])
@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("n", ["1", "3", "N"])
def test_optional_inputs_and_outputs_may_be_left_out(
    n: str, static: bool, given: str, both: list
) -> None:
    outputs = {"y": "y", "yh": ", yh", "": ", , yc"}[given]
    prove(body("LSTM", n, 0, "", outputs), ["x"], static=static, executors=both, rtol_terms=5)


@pytest.mark.parametrize("n", ["1", "3", "N"])
@pytest.mark.parametrize("op", GATES)
def test_no_rows_give_no_rows(op: str, n: str) -> None:
    feeds = FEEDS if n == "N" else {"lens": FEEDS["lens"][: int(n)]}
    prove(body(op, n, 0, FED[op], ALL[op]), ["x"], feeds, sizes=[0], nonempty=False)


def test_opset_13_has_no_layout(both: list) -> None:
    for n in (1, 3):
        text = body("GRU", n, 0, "b, , h", "y, yh").replace("layout = 0, ", "")
        prove(text, ["x", "h"], opset=13, executors=both, rtol_terms=5)
        prove(text, ["x", "h"], opset=13, nonempty=False, executors=both, rtol_terms=5)


@pytest.mark.parametrize("carrying", ["w", "r", "b", "p"])
def test_weights_of_each_row_are_refused(carrying: str) -> None:
    text = body("LSTM", 3, 0, FED["LSTM"], "y")
    assert refused(text, ["x", carrying]) == "batched-operand"


def test_a_batch_that_may_be_empty_needs_opset_14() -> None:
    text = body("GRU", "N", 0, "b", "y").replace("layout = 0, ", "")
    assert refused(text, ["x"], 13) == "may-be-empty"
