"""Sequences, optionals and strings on the way down."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto
from proving import EVERYWHERE, ops, parsed
from proving_down import assert_stopped, prove_down, went_down

from passes.converters.stamp import limits

pytestmark = pytest.mark.sampled

MAP = """(float[2] x, float[3] z, float[2] w) => (float[13] y, int64[2] s) {
    q = SequenceConstruct (x, z)
    t = SequenceConstruct (w, w)
    p, r = SequenceMap <body = b (float[N] e, float[2] k, float[M] l)
        => (float[O] f, int64 g) { f = Concat <axis = 0> (e, k, l) g = Size (e) }> (q, w, t)
    y = ConcatFromSequence <axis = 0> (p)
    s = ConcatFromSequence <axis = 0, new_axis = 1> (r)
}"""


@pytest.mark.parametrize("target", [16, 13])
def test_sequence_map_is_a_loop(target: int) -> None:
    after = prove_down(MAP, opset=17, target=target)
    assert "Loop" in ops(after)
    why = "Loop passes on '.*', a sequence, for which it takes opset 13"
    assert_stopped(MAP, opset=17, target=12, why=why)


IDENTITY = """(float[2] x) => (float[2] y, int64 n) {
    zero = Constant <value = int64 {0}> ()
    s = SequenceConstruct (x, x)
    t = Identity (s)
    y = SequenceAt (t, zero)
    n = SequenceLength (t)
}"""


@pytest.mark.parametrize("target", [14, 13, 11])
def test_identity_of_a_sequence(target: int) -> None:
    after = ops(prove_down(IDENTITY, opset=17, target=target))
    assert ("SequenceErase" in after) == (target < 14)


def test_there_are_no_sequences_before_11() -> None:
    why = "SequenceConstruct is about a sequence, and before opset 11 there are none"
    assert_stopped(IDENTITY, opset=17, target=10, why=why)


# -- optionals -----------------------------------------------------------------------------

IS_TENSOR = """(float[2] x) => (float[2] y, bool has, bool none) {
    y = OptionalGetElement (x)
    has = OptionalHasElement (x)
    none = OptionalHasElement ()
}"""


@pytest.mark.parametrize("target", [18, 17, 11, 7])
def test_what_is_no_optional(target: int) -> None:
    places = EVERYWHERE if target > 8 else ["main", "if"]  # Constant-1 holds no bool
    after = ops(prove_down(IS_TENSOR, opset=18, target=target, places=places))
    assert ("Identity" in after) == (target < 18)


def test_there_are_no_optionals_before_15() -> None:
    graph = "(float[2] x) => (float[2] y) { o = Optional (x) y = OptionalGetElement (o) }"
    prove_down(graph, opset=18, target=15, places=["main"])
    assert_stopped(graph, opset=18, target=14, why="before opset 15 there are none")
    graph = graph.replace("y =", "p = Identity (o) y =").replace("Element (o)", "Element (p)")
    prove_down(graph, opset=18, target=16, places=["main"])
    assert_stopped(graph, opset=18, target=15, why="an optional, which Identity takes from opset 1")


# -- strings -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("graph", "target", "why"),
    [
        ("(string[2] x) => (string[2] y) { y = StringConcat (x, x) }", 19, "joins"),
        ("(string[2] x) => (string[2,N] y, int64[2] n) { y, n = StringSplit (x) }", 19, "apart"),
        (
            '(string[2] x) => (bool[2] y) { y = RegexFullMatch <pattern = "a"> (x) }',
            19,
            "matches strings",
        ),
        ("(string[2] x) => (string[N] y) { y = StringNormalizer (x) }", 9, "the case of strings"),
        (
            "(int32[2] x) => (float[1] y) { y = TfIdfVectorizer <max_gram_length = 1, "
            'max_skip_count = 0, min_gram_length = 1, mode = "TF", ngram_counts = [0], '
            "ngram_indexes = [0], pool_int64s = [1]> (x) }",
            8,
            "n-grams",
        ),
    ],
)
def test_ops_on_strings(graph: str, target: int, why: str) -> None:
    assert len(went_down(parsed(graph, 21), target + 1).graph.node) == 1
    assert_stopped(graph, opset=21, target=target, why=why)


# -- random numbers ------------------------------------------------------------------------


def test_bernoulli() -> None:
    """Each element is 1 as often as it says."""
    graph = "(float[3,4000] x) => (int64[3,4000] y) { y = Bernoulli <dtype = 7> (x) }"
    model = went_down(parsed(graph, 15), 7)
    assert ops(model) == ["RandomUniformLike", "Less", "Cast"]
    session = onnx.reference.ReferenceEvaluator(model)
    x = np.repeat(np.array([[0], [0.25], [1]], np.float32), 4000, axis=1)
    (y,) = session.run(None, {"x": x})
    assert y.dtype == np.int64
    np.testing.assert_allclose(y.mean(axis=1), [0, 0.25, 1], atol=0.05)


def test_bernoulli_with_a_seed() -> None:
    graph = "(float[3] x) => (float[3] y) { y = Bernoulli <seed = 1.0> (x) }"
    assert_stopped(graph, opset=15, target=14, why="which gives other numbers elsewhere")


# -- the model -----------------------------------------------------------------------------


def _passing_on(kind: onnx.TypeProto) -> ModelProto:
    x, y = (onnx.helper.make_value_info(name, kind) for name in "xy")
    return onnx.helper.make_model(onnx.helper.make_graph([], "g", [x], [y]))


def test_limits_of_a_model() -> None:
    tensor = onnx.helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
    sequence = onnx.helper.make_sequence_type_proto(tensor)
    optional = onnx.helper.make_optional_type_proto(sequence)
    assert not limits(_passing_on(tensor), 7)
    assert not limits(_passing_on(sequence), 11)
    assert limits(_passing_on(sequence), 10) == [
        "the input 'x' is a sequence, which came with opset 11",
        "the output 'y' is a sequence, which came with opset 11",
    ]
    assert not limits(_passing_on(optional), 15)
    assert limits(_passing_on(optional), 7) == [
        "the input 'x' is an optional, which came with opset 15",
        "the output 'y' is an optional, which came with opset 15",
    ]


def test_a_sequence_that_is_an_input_stops_the_model() -> None:
    graph = "(seq(float[2]) s, float[2] x) => (float[2] y) { y = Neg (x) }"
    why = "the input 's' is a sequence, which came with opset 11"
    assert_stopped(graph, opset=13, target=10, why=why)
    went_down(parsed(graph, 13), 11)
