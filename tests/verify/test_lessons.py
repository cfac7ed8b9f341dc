"""Inputs that a model takes are found by what its failures teach."""

from __future__ import annotations

import time

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import ModelProto
from verified_models import check, model

from passes.operators.contract import Need, Size
from passes.types import signature
from passes.verify.inputs.dims import Needs, Tie
from passes.verify.inputs.drawer import Drawer
from passes.verify.inputs.lessons import Lessons, wants_of
from passes.verify.reference import ReferenceExecutor

A, C = Size(0, 1), Size(2, 0)


def learned(text: str | ModelProto, *, unranked: str = "") -> Needs | None:
    """What is learned of a model; one of its inputs may be left without a rank."""
    made = model(text) if isinstance(text, str) else text
    for value in made.graph.input:
        if value.name == unranked:
            value.type.tensor_type.ClearField("shape")
    drawer = Drawer(tuple(signature.inputs(made.graph)))
    lessons = Lessons(made, drawer, ReferenceExecutor(keep=1), None, 5.0)
    return lessons.learn(time.monotonic() + 60)


WIDE = "w = ConstantOfShape<value = float {0.5}>(s)"
MODELS = {
    "reflection": """(float[N,T] x) => (float[N,S] y) {
        p = Constant<value_ints = [0, 40, 0, 0]>()  y = Pad<mode = "reflect">(x, p) }""",
    "window": f"""(float[N,T] x) => (float[N,C,S] y) {{
        s = Constant<value_ints = [2, 1, 96]>()  {WIDE}  one = Constant<value_ints = [1]>()
        wide = Unsqueeze(x, one)  y = Conv<strides = [32]>(wide, w) }}""",
    "spectrum": """(float[N,T,1] x) => (float[?,?,?,?] y) {
        hop = Constant<value_int = 8>()  length = Constant<value_int = 50>()
        y = STFT(x, hop, , length) }""",
    "parts": """(float[N,T] x) => (float[?,?] a, float[?,?] b) {
        p = Constant<value_ints = [20, 44]>()  a, b = Split<axis = 1>(x, p) }""",
    "flattened": f"""(float[N,C,H,W] x) => (float[?,?] y) {{
        s = Constant<value_ints = [256, 5]>()  {WIDE}
        flat = Flatten(x)  y = MatMul(flat, w) }}""",
    "recurrence": f"""(float[T,B,F] x, float[1,D,H] h) => (float[?,?,?,?] y) {{
        s = Constant<value_ints = [1, 96, 24]>()  {WIDE}
        r = Constant<value_ints = [1, 96, 32]>()  v = ConstantOfShape<value = float {{0.5}}>(r)
        y = GRU<hidden_size = 32>(x, w, v, , , h) }}""",
    "heads": """(float[N,T] x) => (float[?,?,?] y) {
        p = Constant<value_ints = [0, 12, -1]>()  y = Reshape(x, p) }""",
    "one row": """(float[N,T] x) => (float[?] y) {
        p = Constant<value_ints = [0]>()  y = Squeeze(x, p) }""",
    "a branch that fails": """(float[N,T] x, bool c) => (float[?,?] y) {
        y = If(c) <
            then_branch = a () => (float[?,?] t) {
                p = Constant<value_ints = [0, 33, 0, 0]>()  t = Pad<mode = "reflect">(x, p) },
            else_branch = b () => (float[?,?] e) {
                q = Constant<value_ints = [0, 33, 0, 0]>()  e = Pad<mode = "reflect">(x, q) }> }""",
    "labels": """(float[A,B] x, float[C,D] y) => (float[?,?] z) {
        z = Einsum<equation = "ij,jk->ik">(x, y) }""",
}


@pytest.mark.parametrize("name", list(MODELS))
def test_a_model_is_compared_in_most_cases(name: str) -> None:
    text = MODELS[name]
    found = check(text, text)
    assert found.verdict == "verified"
    assert found.compared >= 8


def test_a_length_that_follows_from_others_is_learned_as_such() -> None:
    text = """(float[B,P,4] past, float[B,S,4] new, float[B,T] mask) => (float[?,?] y) {
        all = Concat<axis = 1>(past, new)  k = Constant<value_ints = [-1]>()
        sums = ReduceSum<keepdims = 0>(all, k)  y = Add(sums, mask) }"""
    needs = learned(text)
    assert needs is not None
    assert needs.ties == {"T": Tie(0, {"P": 1, "S": 1})}
    found = check(text, text)
    assert found.tallies["reference"]["both failed"] == 1  # which taught it


def test_a_size_that_is_too_small_varies_above_the_least() -> None:
    needs = learned(MODELS["reflection"])
    assert needs is not None
    assert needs.least == {"T": 41}
    assert [needs.fit({"T": size})["T"] for size in (0, 1, 50)] == [41, 42, 50]


@pytest.mark.parametrize("rank", [1, 3, 4])
def test_a_rank_is_learned(rank: int) -> None:
    dims = ",".join("?" * rank)
    axes = ", ".join(map(str, reversed(range(rank))))
    text = f"(float[{dims}] x) => (float[{dims}] y) {{ y = Transpose<perm = [{axes}]>(x) }}"
    needs = learned(text, unranked="x")
    assert needs is not None
    assert needs.ranks == {"x": rank}


@pytest.mark.parametrize(
    "text",
    ["y = Slice (x, i, i)", "y = ReduceSum (x, i)", "y = GatherND (x, i)", "y = Tile (x, i)"],
)
def test_operands_that_do_not_broadcast_need_not_be_of_one_size(text: str) -> None:
    operands = (np.ones((2, 5)), np.array([7, 8, 9]), np.array([7, 8, 9]))
    assert wants_of(onnx.parser.parse_node(text), operands) == []


def test_operands_of_an_unknown_operator_may_have_to_broadcast() -> None:
    node = onnx.parser.parse_node("y = com.example.Blend (a, b, c)")
    operands = (np.ones((2, 5)), np.ones((2, 1)), np.ones(4))
    assert wants_of(node, operands) == [Need(A, "equal", C, (A, C))]


def test_where_nothing_helps_nothing_is_learned() -> None:
    assert learned("(float[2] x, float[3] y) => (float[3] z) { z = Add(x, y) }") is None


@pytest.mark.parametrize("most", range(1, 8))
def test_runs_that_are_used_up_end_the_search(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also between two things that one node wants."""
    monkeypatch.setattr("passes.verify.inputs.lessons._MOST_RUNS", most)
    text = "(float[2,2] x, float[3,3] y, float[N] unused) => (float[?,?] z) { z = Add(x, y) }"
    assert learned(text) is None


def test_time_that_runs_out_is_said() -> None:
    made = model(MODELS["parts"])
    drawer = Drawer(tuple(signature.inputs(made.graph)))
    lessons = Lessons(made, drawer, ReferenceExecutor(keep=1), None, 5.0)
    with pytest.raises(TimeoutError):
        lessons.learn(time.monotonic())
