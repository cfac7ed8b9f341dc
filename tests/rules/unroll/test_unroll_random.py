"""Random loops, unrolled in every way: odd remainders, factors above the trip count, no trips.

Each is executed before and after in both executors, on drawn inputs and on every trip count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnxruntime
import pytest
from onnx import GraphProto, ModelProto

from passes.choices import Verifying
from passes.commands.schedules import SCHEDULES
from passes.engine.outcome import Pass
from passes.ir import scope as scoping
from passes.session import Session
from passes.testing import as_model, assert_rewrite, options_of

pytestmark = pytest.mark.sampled

MOST = 5  # trips that are tried one by one
_STEPS = (
    "Add ({a}, {b})", "Sub ({a}, {b})", "Mul ({a}, {b})", "Max ({a}, {b})", "Neg ({a})",
    "Abs ({a})", "Mul ({a}, w)", "Add ({a}, w)", "Mul ({a}, at)", "Add ({a}, outer)",
    "Where (odd, {a}, {b})", "Gather (x, row)",
)  # fmt: skip


@dataclass(frozen=True)
class Drawn:
    """A random loop as text; `ends`: a condition over its data ends it, too."""

    text: str
    ends: bool

    @property
    def model(self) -> ModelProto:
        return as_model(self.text)


def draw(seed: int, *, ends: bool, trips: int | None, reads: bool = True) -> Drawn:
    """A Loop over two states that collects up to two values; `trips` None for an input."""
    rng = np.random.default_rng(seed)
    values, nodes = ["s", "r"], []
    for number in range(int(rng.integers(2, 7))):
        step = str(rng.choice(_STEPS[: None if reads else -1]))
        a, b = rng.choice(values, 2)
        nodes.append(f"v{number} = {step.format(a=a, b=b)}")
        values.append(f"v{number}")
    ts, tr, o, p = rng.choice(values[-4:], 4)
    limit = "on = Less (sum, limit)" if ends else "on = Identity (go)"
    count = "trips" if trips is None else "fixed"
    given = "int64 trips, " if trips is None else ""
    start = "start" if ends else '""'
    fixed = "" if trips is None else f"<int64 fixed = {{{trips}}}>"
    text = f"""
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] h, float[2] k, {given}bool start, float limit, float[{MOST + 3},2] x, float[2] outer)
   => (float[2] y, float[2] q, float[T,2] z, float[U,2] c)
{fixed} {{
   y, q, z, c = Loop <body = step (int64 i, bool go, float[2] s, float[2] r)
      => (bool on, float[2] t, float[2] m, float[2] o, float[2] p)
   <float[2] w = {{0.5, 2}}, int64 two = {{2}}, int64 one = {{1}}, float unit = {{1}}> {{
      at = Cast <to = 1> (i) half = Div (i, two) twice = Mul (half, two) odd = Less (twice, i)
      row = Add (i, one)
      {" ".join(nodes)}
      t = Identity ({ts}) m = Identity ({tr}) o = Neg ({o}) p = Mul ({p}, w)
      whole = ReduceSum <keepdims = 0> (t) sum = Add (at, unit) {limit}
   }}> ({count}, {start}, h, k)
}}
"""
    return Drawn(text, ends)


def feeds(drawn: Drawn, trips: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(trips + 1)
    values = {
        "h": rng.integers(-2, 3, 2).astype(np.float32),
        "k": rng.integers(-2, 3, 2).astype(np.float32),
        "trips": np.array(trips),
        "start": np.array(trips > 0),
        "limit": np.array(trips, np.float32),
        "x": rng.integers(-2, 3, (MOST + 3, 2)).astype(np.float32),
        "outer": rng.integers(-2, 3, 2).astype(np.float32),
    }
    return {value.name: values[value.name] for value in drawn.model.graph.input}


def same_on_every_trip_count(drawn: Drawn, after: ModelProto, most: int = MOST) -> None:
    runs = [
        onnxruntime.InferenceSession(model.SerializeToString()) for model in (drawn.model, after)
    ]
    for trips in range(most + 1):
        expected, actual = (run.run(None, feeds(drawn, trips)) for run in runs)
        for one, other in zip(expected, actual, strict=True):
            np.testing.assert_array_equal(one, other)


def no_weight_twice(model: ModelProto) -> None:
    """Each weight of the body stands once in the whole model: none is copied for an iteration."""
    owners = [one for one in scoping.graphs_below(model.graph) if isinstance(one, GraphProto)]
    floats = [
        tensor for owner in owners for tensor in owner.initializer if list(tensor.dims) == [2]
    ]
    weights = [one.raw_data or bytes(np.array(one.float_data, "<f4")) for one in floats]
    wanted = np.array([0.5, 2], "<f4").tobytes()
    assert weights.count(wanted) <= 1


def rewritten(drawn: Drawn, pipeline: str, seed: int, **options: object) -> ModelProto:
    # some never end on drawn inputs, and onnxruntime compares every trip count below
    verifying = Verifying("reference", 1.0, allow_unverified=True)
    result = Session([Pass(SCHEDULES[pipeline], options=options_of(options))], verifying).run(
        drawn.model
    )
    assert not result.report.refusals, result.report.to_text()
    no_weight_twice(result.model)
    return result.model


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("trips", [0, 1, 2, 5])
def test_static_loops(seed: int, trips: int) -> None:
    drawn = draw(seed, ends=False, trips=trips)
    same_on_every_trip_count(drawn, rewritten(drawn, "unroll", seed), 0)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("factor", [1, 2, 3, 7])
def test_several_iterations_at_a_time(seed: int, factor: int) -> None:
    drawn = draw(seed, ends=False, trips=None)
    after = rewritten(drawn, "unroll-partial", seed, factor=factor)
    same_on_every_trip_count(drawn, after)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("trips", "factor"), [(0, 2), (1, 2), (3, 5), (5, 3), (5, 5)])
def test_several_at_a_time_of_a_static_count(seed: int, trips: int, factor: int) -> None:
    drawn = draw(seed, ends=False, trips=trips)
    after = rewritten(drawn, "unroll-partial", seed, factor=factor)
    same_on_every_trip_count(drawn, after, 0)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("bounded", ["select", "if"])
@pytest.mark.parametrize("count", [1, 4])
def test_whiles_with_a_static_bound(seed: int, bounded: str, count: int) -> None:
    drawn = draw(seed, ends=True, trips=count, reads=bounded == "if")
    same_on_every_trip_count(drawn, rewritten(drawn, "unroll", seed, bounded=bounded))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("bounded", ["select", "if"])
@pytest.mark.parametrize("ends", [False, True])
def test_loops_with_a_promised_bound(seed: int, bounded: str, ends: bool) -> None:
    drawn = draw(seed, ends=ends, trips=None, reads=bounded == "if")
    after = rewritten(drawn, "unroll", seed, bounded=bounded, max_trips=3)
    same_on_every_trip_count(drawn, after, 3)
    session = onnxruntime.InferenceSession(after.SerializeToString())
    with pytest.raises(Exception, match="Gather"):
        session.run(None, feeds(drawn, 4))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("peel", "ends"), [("first", False), ("first", True), ("last", False)])
@pytest.mark.parametrize("trips", [None, 1, 2, 5])
def test_peeled_loops(seed: int, peel: str, ends: bool, trips: int | None) -> None:
    drawn = draw(seed, ends=ends, trips=trips)
    same_on_every_trip_count(drawn, rewritten(drawn, "peel", seed, peel=peel))


def scan(length: str, first: int, second: int, collected: int) -> str:
    """A Scan of two tensors, each in its direction, and what is collected in another."""
    return f"""
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] h, float[{length},2] x, float[2,{length}] v) => (float[2] y, float[2,{length}] z)
{{
   y, z = Scan <num_scan_inputs = 2, scan_input_axes = [0, 1],
      scan_input_directions = [{first}, {second}],
      scan_output_axes = [1], scan_output_directions = [{collected}],
      body = step (float[2] s, float[2] n, float[2] k) => (float[2] t, float[2] o)
      <float[2] w = {{0.5, 2}}> {{
         m = Mul (n, w) a = Add (s, m) t = Sub (a, k) o = Mul (t, n) }}> (h, x, v)
}}
"""


@pytest.mark.parametrize("seed", range(0, 8, 3))
@pytest.mark.parametrize("length", ["T", "1", "2", "5"])
@pytest.mark.parametrize(
    ("pipeline", "options"),
    [
        ("unroll", {}),
        ("unroll-partial", {"factor": 2}),
        ("unroll-partial", {"factor": 3}),
        ("peel", {"peel": "first"}),
        ("peel", {"peel": "last"}),
    ],
)
def test_scans(seed: int, length: str, pipeline: str, options: dict[str, object]) -> None:
    if pipeline == "unroll" and length == "T":
        length = "3"
    text = scan(length, seed & 1, seed >> 1 & 1, seed >> 2 & 1)
    result = assert_rewrite(text, pipeline=pipeline, options=options)
    assert not result.report.refusals
    no_weight_twice(result.model)
