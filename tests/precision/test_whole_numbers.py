"""int64 becomes int32 where its numbers are proven to fit."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto

import passes
from passes.choices import Assumption, Retyping, RuleOptions
from passes.ir.model import Model
from passes.precision.casting import cast
from passes.precision.flow import Flow
from passes.precision.whole_numbers import whole_number_seeds
from passes.types.dtypes import Array
from passes.verify.executor import Feeds
from passes.verify.reference import ReferenceExecutor
from tests.written import changed


def narrowed(text: str, *, inputs_fit: bool = False) -> ModelProto:
    """A model with int32 where its numbers fit, valid and of the same inputs and outputs."""
    model = onnx.parser.parse_model(text)
    onnx.checker.check_model(model, full_check=True)
    assume = (Assumption.int32_inputs,) if inputs_fit else ()
    made, _ = cast(Model(model), RuleOptions(assume=assume, retyping=Retyping(int32=True)))
    onnx.checker.check_model(made, full_check=True)
    assert list(made.graph.input) == list(model.graph.input)
    assert list(made.graph.output) == list(model.graph.output)
    return made


def kept(text: str, *, inputs_fit: bool = False) -> set[str]:
    """The operators of the nodes, and the names of the values, that may not fit."""
    flow = Flow.of(Model(onnx.parser.parse_model(text)))
    seeds = whole_number_seeds(flow, inputs_fit=inputs_fit)
    steps = {flow.steps[number].op for number in seeds.steps}
    return steps | {flow.values[number].name for number in seeds.values}


def nodes(model: ModelProto) -> list[str]:
    """The nodes of the main graph, in short."""
    return [
        f"{', '.join(node.output)} = {node.op_type}({', '.join(node.input)})"
        for node in model.graph.node
    ]


def outcome(model: ModelProto, feeds: Feeds) -> Array:
    """The first output of a model, as the reference executor computes it."""
    return np.asarray(next(iter(ReferenceExecutor().run(model, feeds).outputs.values())))


def constants(model: ModelProto) -> dict[str, tuple[str, list[int]]]:
    """The element types and the elements of the initializers."""
    arrays = {one.name: onnx.numpy_helper.to_array(one) for one in model.graph.initializer}
    return {name: (array.dtype.name, array.ravel().tolist()) for name, array in arrays.items()}


ADDED = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (int64[N] x, int32[N] y) => (int64[N] z) <int64 one = {1}, int64 two = {2}> {
      a = Cast <to = 7> (y)
      b = Div (a, two)
      c = Add (b, one)
      z = Mul (x, one)
    }
"""


def test_an_input_may_not_fit_unless_it_is_promised_to() -> None:
    assert kept(ADDED) == {"x", "z", "Mul"}
    assert not kept(ADDED, inputs_fit=True)


def test_what_an_input_has_to_fit_for_is_told() -> None:
    flow = Flow.of(Model(onnx.parser.parse_model(ADDED)))
    (reason,) = set(whole_number_seeds(flow, inputs_fit=False).steps.values())
    assert "--assume int32-inputs" in reason.sentence


@pytest.mark.parametrize(
    ("computed", "fits"),
    [
        ("c = Add (a, one)", False),  # 2^31 - 1 is possible
        ("c = Sub (a, one)", False),
        ("c = Neg (a)", False),
        ("c = Abs (a)", False),
        ("c = Mul (a, two)", False),
        ("m = Neg (one) c = Div (a, m)", False),
        ("c = Div (a, two)", True),
        ("c = Mod (a, two)", True),
        ("c = Max (a, one)", True),
        ("p = Mul (a, two) c = Mod (p, two)", False),
        ("c = ReduceSum (a)", False),
        ("zero = Sub (one, one) c = CumSum (a, zero)", False),
    ],
)
def test_numbers_of_all_32_bits(computed: str, fits: bool) -> None:
    text = changed(ADDED, {"b = Div (a, two)\n      c = Add (b, one)": computed})
    assert kept(text, inputs_fit=True) == set() if fits else kept(text, inputs_fit=True)


def test_casts_are_written_once_and_constants_are_stored_as_int32() -> None:
    made = narrowed(ADDED, inputs_fit=True)
    assert nodes(made) == [
        "x/int32 = Cast(x)",
        "a = Cast(y)",
        "b = Div(a, two)",
        "c = Add(b, one)",
        "z/int32 = Mul(x/int32, one)",
        "z = Cast(z/int32)",
    ]
    assert constants(made) == {"one": ("int32", [1]), "two": ("int32", [2])}


SLICED = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[N] x, int64[N] k) => (float[M] y)
    <int64[1] start = {-1}, int64[1] end = {-9223372036854775808}, int64[1] axis = {0},
     int64[1] far = {9223372036854775807}> {
      a = Slice (x, start, end, axis, start)
      s = Shape (x)
      b = Slice (a, axis, far)
      y = Slice (b, axis, s)
    }
"""


def test_ends_of_slices_are_clamped() -> None:
    made = narrowed(SLICED)
    assert constants(made)["far"] == ("int32", [(1 << 31) - 1])
    assert constants(made)["end"] == ("int32", [-(1 << 31)])
    x = np.arange(5, dtype=np.float32)
    y = outcome(made, {"x": x, "k": np.zeros(5, np.int64)})
    assert y.tolist() == [4, 3, 2, 1, 0]


@pytest.mark.parametrize(
    ("read", "operators"),
    [
        ("n = Less (s, far)", set()),  # a size is less than 2^31 - 1, too
        ("n = Less (k, far)", {"Less"}),
        ("n = Max (s, far) m = Neg (n)", {"Max", "Neg", "n", "m"}),
        ("n = Mod (s, far)", {"Mod"}),
    ],
)
def test_a_constant_that_is_too_large_for_others_is_stored_twice(
    read: str, operators: set[str]
) -> None:
    text = changed(SLICED, {"b = Slice": f"{read} b = Slice"})
    assert kept(text) - {"far", "k"} == operators
    assert constants(narrowed(text))["far/int32" if operators else "far"][0] == "int32"


LOOP = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[T,4] x, int64 n) => (int64 last, int64[T] all, float[S] y)
    <int64 zero = {0}, int64 one = {1}, int64 far = {9223372036854775807}, bool yes = {1},
     float[S] s = {0, 0}> {
      last, z, all, rows = Loop (far, yes, zero, s) <body = step
          (int64 i, bool go, int64 c, float[2] t) => (bool on, int64 d, float[2] u, int64 e,
          float[4] row) {
        d = Add (c, one)
        row = Gather (x, i)
        e = ArgMax <axis = 0, keepdims = 0> (row)
        on = Less (d, n)
        u = Identity (t)
      }>
      y = Identity (z)
    }
"""


def test_counters_and_indices_of_a_loop_are_narrow() -> None:
    text = changed(LOOP, {"float[S] s = {0, 0}": "float[2] s = {0, 0}"})
    assert kept(text) == {"n", "Less"}
    assert not kept(text, inputs_fit=True)
    made = narrowed(text, inputs_fit=True)
    (loop,) = (node for node in made.graph.node if node.op_type == "Loop")
    body = loop.attribute[0].g
    types = {one.name: one.type.tensor_type.elem_type for one in body.input}
    assert types["i"] == onnx.TensorProto.INT64
    assert types["c"] == onnx.TensorProto.INT32
    assert constants(made)["far"] == ("int64", [(1 << 63) - 1])  # the trip count stays


GROWING = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (int64 n) => (int64 b) <int64 one = {1}> {
      a, b = Loop (n, "", one, one) <body = step (int64 i, bool go, int64 c, int64 d)
          => (bool on, int64 e, int64 f) {
        on = Identity (go)
        e = Identity (d)
        f = Add (c, d)
      }>
    }
"""


def test_a_state_that_grows_faster_than_a_counter_may_not_fit() -> None:
    assert kept(GROWING, inputs_fit=True) == {"Add", "Identity", "Loop", "a", "b"} | set("cdef")
    assert nodes(narrowed(GROWING)) == ["a, b = Loop(n, , one, one)"]


SEQUENCE = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[N,3] x) => (int64[M] y) {
      shape = Shape (x)
      best = ArgMax <axis = 1, keepdims = 0> (x)
      none = SequenceEmpty <dtype = 7> ()
      one = SequenceInsert (none, shape)
      two = SequenceInsert (one, best)
      y = ConcatFromSequence <axis = 0> (two)
    }
"""


def test_a_sequence_is_of_one_type() -> None:
    made = narrowed(SEQUENCE)
    (empty,) = (node for node in made.graph.node if node.op_type == "SequenceEmpty")
    assert empty.attribute[0].i == onnx.TensorProto.INT32
    x = np.array([[0, 2, 1], [3, 0, 0]], np.float32)
    y = outcome(made, {"x": x})
    assert y.dtype == np.int64
    assert y.tolist() == [2, 3, 1, 0]


def test_the_extreme_of_no_element_is_another_one_in_32_bits() -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 17]>
        g (float[N] x) => (int64 y) { k = NonZero (x) y = ReduceMax <keepdims = 0> (k) }
    """
    assert kept(text) == {"ReduceMax", "y"}


def test_a_range_whose_length_may_not_fit() -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 17]>
        g (int64 x, int64 y) => (int64[N] z) <int64 step = {16}> { z = Range (x, y, step) }
    """
    assert kept(text, inputs_fit=True) == {"Range"}


RANGE = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2,N] x, float[2,3] y) => (int64[M] all) <int64 zero = {0}, int64 one = {1}> {
      sizes = Shape (y)
      end = Gather (sizes, one)
      all = Range (zero, end, one)
    }
"""


def test_onnxruntime_takes_no_range_of_known_sizes() -> None:
    assert kept(RANGE) == {"Range"}
    assert not kept(changed(RANGE, {"Shape (y)": "Shape (x)"}))
    fixed = changed(RANGE, {"Range (zero, end, one)": "Range (zero, one, one)"})
    assert not kept(fixed)


def test_the_outcome_is_verified_as_equal() -> None:
    model = onnx.parser.parse_model(SEQUENCE)
    result = passes.cast(model, int32=True, executor="reference", verify_budget=5)
    assert result.report.checked is not None
    assert result.report.checked.verdict == "verified"
    assert result.report.within is None
    assert "all but the cast" not in result.report.to_text()
