"""Models that no executor accepts, or that are not modelled: the proof ends with a code."""

from __future__ import annotations

import onnx.parser
import pytest

import passes
from passes.ir.model import Model
from tests.instruments.proven import for_all_sizes as prove

HEAD = '<ir_version: 10, opset_import: ["" : 21]> g '

#: Graphs with an @ that both sides replace, the odd one and one that is not.
ODD = {
    "a trip count that is a bool": (
        """(int64 n, bool c, float s) => (float y) {
        y = Loop <body = b (int64 i, bool go, float a) => (bool on, float t) {
            on = Identity (go) t = Tanh (a) }> (@, n, s) }""",
        "c",
        "n",
        "model",
    ),
    "a value that does not exist": (
        "(float[N] x) => (float[N] y) { y = Add (x, @) }",
        "z",
        "x",
        "model",
    ),
    "an element type that does not exist": (
        "(float[N] x) => (float[N] y) { y = Cast <to = @> (x) }",
        "99",
        "1",
        "type",
    ),
    "a sum of int64 and bool": (
        "(int64[N] x, bool[N] c) => (int64[N] y) { y = Add (x, @) }",
        "c",
        "x",
        "type",
    ),
    "rows of int64 and int32 in one array": (
        "(int64[N] x, int32[N] i) => (int64[M] y) { y = Concat <axis = 0> (x, @) }",
        "i",
        "x",
        "type",
    ),
    "sizes in a matrix": (
        "(float[N] x, int64[1,1] m, int64[1] v) => (float[M] y) { y = Expand (x, @) }",
        "m",
        "v",
        "fails",
    ),
    "an axis twice": (
        """(float[N,4] x) => (float[N,4] y) {
        s = Constant <value_ints = [0, 0]> () e = Constant <value_ints = [9, 9]> ()
        a = Constant <value_ints = [1, @]> () y = Slice (x, s, e, a) }""",
        "-1",
        "0",
        "operator",
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_odd_is_not_provable(name: str) -> None:
    text, odd, plain, code = ODD[name]
    sides = [
        Model.load(onnx.parser.parse_model(HEAD + text.replace("@", one))) for one in (odd, plain)
    ]
    found = prove(*sides)
    assert not found.is_proven
    assert found.code == code
    assert prove(*reversed(sides)).code == "model"


def test_parts_without_outputs_are_refused() -> None:
    text = "(float[4] x) => (float[2] y, float[2] z) { y, z = Split <num_outputs = 4> (x) }"
    model = Model.load(onnx.parser.parse_model(HEAD + text))
    assert "num_outputs" in prove(model, model).detail


def test_a_product_of_many_factors_is_given_up() -> None:
    """n is squared a hundred times, to 2^100 factors."""
    squares = " ".join(f"a{i + 1} = Mul (a{i}, a{i})" for i in range(100))
    text = HEAD + "(int64 a0) => (int64 y) { @ y = Neg (a100) }".replace("@", squares)
    model, other = map(onnx.parser.parse_model, (text, text.replace("a98, a98", "a97, a98")))
    found = prove(*map(Model.load, (model, other)))
    assert (found.code, found.detail) == ("budget", "a product of whole numbers has too many parts")


@pytest.mark.parametrize("many", [60, pytest.param(200, marks=pytest.mark.slow)])
def test_extremes_of_extremes_end_within_the_budget(many: int) -> None:
    """The range of each is that of its parts, found once."""
    nodes = " ".join(
        f"k{i} = Constant <value_int = {i}> () w{i} = Gather (w, k{i}) "
        f"a{i + 1} = {'Max' if i % 2 else 'Min'} (a{i}, w{i})"
        for i in range(many)
    )
    signature = f"(int64[{many}] w, int64 a0) => (int64 y)"
    before, after = (
        onnx.parser.parse_model(f"{HEAD} {signature} {{ {nodes} y = {op} (a{many}) }}")
        for op in ("Neg", "Abs")
    )
    found = passes.prove(before, after, executor="reference", budget=5)
    assert found.verdict == "disproven"


def test_a_model_without_operators_of_onnx_has_no_opset() -> None:
    text = """<ir_version: 10, opset_import: ["ai.onnx.ml" : 3]>
    g (float[N,3] x) => (float[N,3] y) { y = ai.onnx.ml.Normalizer <norm = "L1"> (x) }"""
    models = (Model.load(onnx.parser.parse_model(one)) for one in (text, text.replace("L1", "L2")))
    assert prove(*models).code == "opset"
