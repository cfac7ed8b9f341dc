"""What clears what is in the way: by commands that were tried, and by what only the user knows."""

from __future__ import annotations

import pytest

from passes.binding.inputs import Binding
from passes.check import load_checked
from passes.targets.deciding import deciding
from passes.targets.profile import load, parsed
from passes.targets.remedies import RemedyKind, fixing, plan
from passes.testing import as_model
from tests.targets.test_findings import CALLED, LSTM, SCANNED
from tests.written import changed

DECIDED = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (int64 sr, int64 other, float[2] x) => (float[2] y, float[2] z) {
      fast = Constant <value_int = 16000> ()
      c = Equal (sr, fast)
      y = If (c) <
        then_branch = a () => (float[2] p) {
          d = Less (sr, fast)
          p = If (d) <
            then_branch = e () => (float[2] r) { r = Neg (x) },
            else_branch = f () => (float[2] s) { s = Abs (x) }>
        },
        else_branch = b () => (float[2] q) { q = Exp (x) }>
      both = Equal (sr, other)
      z = If (both) <
        then_branch = h () => (float[2] u) { u = Neg (x) },
        else_branch = k () => (float[2] v) { v = Abs (x) }>
    }
"""
OPEN = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (int64 n, float[T,2] x) => (float[T,2] y) {
      y = Loop <body = b (int64 i, bool go, s) => (on, t) {
        on = Identity (go)
        t = Neg (s)
      }> (n, "", x)
    }
"""
ATTENTION = """
    <ir_version: 8, opset_import: ["" : 18, "com.microsoft" : 1]>
    g (float[1,4,4] x) => (float[1,4,4] y) {
      y = com.microsoft.LinearAttention <
        q_num_heads = 1, kv_num_heads = 1, update_rule = "linear"> (x, x, x)
    }
"""
ENDED = """
    <ir_version: 10, opset_import: ["" : 19]>
    g (float[2] x, float limit) => (float[2] y)
    <int64 most = {9223372036854775807}, int64 last = {99}> {
      y = Loop <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
        few = Less (i, last)
        t = Add (s, x)
        sum = ReduceSum <keepdims = 0> (t)
        more = Less (sum, limit)
        on = And (few, more)
      }> (most, "", x)
    }
"""


def test_inputs_that_decide_by_themselves() -> None:
    (found,) = deciding(load_checked(as_model(DECIDED))[0])
    assert (found.name, found.count, found.values) == ("sr", 2, ("16000",))
    assert str(found) == "--set sr=16000 (decides 2 Ifs)"


def test_sizes_and_what_iterations_change_decide_nothing() -> None:
    sized = changed(DECIDED, {"c = Equal (sr, fast)": "n = Size (x)\n c = Equal (n, fast)"})
    (found,) = deciding(load_checked(as_model(sized))[0])
    assert found.count == 1, "the inner one alone"


@pytest.mark.parametrize(
    ("model", "target", "commands"),
    [
        (CALLED, "openvino-2026", ["convert --inline all"]),
        (SCANNED, "loop-only", ["optimize --target loop-only"]),
        (SCANNED, "migraphx", ["convert --opset 19"]),
        (ENDED, "migraphx", ["simplify --rule count-loop"]),
        (SCANNED, "openvino-2026", ["simplify --rule carry-captures"]),
        (
            changed(LSTM, {", clip = 1.0": ""}),
            "tract",
            ["simplify --rule forward-cell", "convert --opset 18"],
        ),
        (OPEN, "openvino-2026", ["simplify --rule declare-shapes"]),
        (ATTENTION, "tract", ["optimize --target scan-only"]),
    ],
)
def test_commands_that_clear(model: str, target: str, commands: list[str]) -> None:
    found = plan(load_checked(as_model(model))[0], load(target), Binding())
    assert [str(one) for one in found.taken] == commands
    assert {one.kind for one in found.taken} == {RemedyKind.EXACT}
    assert [str(step) for step in fixing(found, {}).commands] != []


def test_what_only_the_user_knows() -> None:
    found = plan(load_checked(as_model(DECIDED))[0], load("no-control-flow"), Binding())
    assert found.left.fits or found.missing[0].startswith("--set sr=16000 (decides ")
    open_ = parsed('name = "n"\nsummary = "N"\ndynamic-dims = false\n', "n.toml")
    found = plan(load_checked(as_model(SCANNED))[0], open_, Binding())
    assert list(found.missing) == ["--dim T=SIZE"]
    assert plan(load_checked(as_model(SCANNED))[0], open_, Binding({"T": 3})).left.fits


WHILE = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (float[2] x, float most) => (float[2] y) <bool yes = {1}, float half = {0.5}> {
      y = Loop <body = b (int64 i, bool go, float[2] a) => (bool on, float[2] c) {
        c = Mul (a, half)
        size = ReduceMax <keepdims = 0> (c)
        on = Greater (size, most)
      }> ("", yes, x)
    }
"""


def test_a_while_needs_a_promise() -> None:
    model, profile = load_checked(as_model(WHILE))[0], load("no-control-flow")
    found = plan(model, profile, Binding())
    assert not found.taken
    (offer,) = found.offered
    assert (str(offer), offer.kind) == (
        "optimize --target no-control-flow --max-trips N",
        RemedyKind.PROMISE,
    )


def test_a_promise_that_was_made_is_taken() -> None:
    model, profile = load_checked(as_model(WHILE))[0], load("no-control-flow")
    found = plan(model, profile, Binding(), max_trips=3)
    (taken,) = found.taken
    assert (str(taken), taken.kind) == (
        "optimize --target no-control-flow --max-trips 3",
        RemedyKind.PROMISE,
    )
    assert found.left.fits
    assert found.offered == []


def test_the_bound_of_a_solver_is_the_trip_count_that_a_target_needs() -> None:
    bounded = changed(
        WHILE,
        {
            "on = Greater (size, most)": "more = Greater (size, most) on = And (more, few)",
            "c = Mul": "few = Less (i, nine) c = Mul",
            "bool yes": "int64 nine = {9}, bool yes",
        },
    )
    found = plan(load_checked(as_model(bounded))[0], load("migraphx"), Binding())
    assert "simplify --rule count-loop" in [str(one) for one in found.taken]


RAGGED = """
    <ir_version: 4, opset_import: ["" : 8]>
    g (int64[2] lens, float[2,3] h0, float[2,4,3] x) => (float[2,3] h_end, float[2,4,3] ys) {
      h_end, ys = Scan <num_scan_inputs = 1,
        body = step (float[3] h, float[3] x_t) => (float[3] h_out, float[3] y) {
          h_out = Add (h, x_t)
          y = Tanh (h_out)
        }> (lens, h0, x)
    }
"""


@pytest.mark.parametrize(
    ("target", "commands"),
    [
        ("openvino-2026", ["upgrade"]),  # it has all that looks up the rows of other lengths
        ("tensorrt-10", ["upgrade --batch mask", "convert --opset 11"]),
        ("migraphx", ["upgrade --opset 19 --batch mask"]),
        ("no-control-flow", ["optimize --target no-control-flow"]),
    ],
)
def test_rows_of_other_lengths(target: str, commands: list[str]) -> None:
    found = plan(load_checked(as_model(RAGGED))[0], load(target), Binding())
    assert [str(one) for one in found.taken] == commands
    assert found.left.fits


HALVED = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (float[2] h, float[T,2] x, float[2,2] w) => (float[2] y, float[T,2] z) {
      y, z = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] e)
          => (float[2] t, float[2] u) {
        m = MatMul (s, w)
        n = Mul (m, e)
        t = Tanh (n)
        u = Neg (t)
      }> (h, x)
    }
"""
SUMMED = changed(HALVED, {"n = Mul (m, e)": "n = Add (s, e)", "t = Tanh (n)": "t = Sub (n, m)"})
NPU = 'name = "npu"\nsummary = "Some NPU"\n'
LISTING = (
    NPU
    + """
[operators]
Cast = {}
MatMul = {}
Mul = {}
Neg = {}
Scan = {}
Tanh = {types = ["float16"]}
"""
)


@pytest.mark.parametrize(
    ("model", "profile", "command"),
    [
        (HALVED, LISTING, "cast --to float16"),
        (HALVED, changed(LISTING, {"float16": "bfloat16"}), "cast --to bfloat16"),
        (HALVED, NPU + "refused-types = ['float']", "cast --to float16 --io cast"),
        (HALVED, NPU + "refused-types = ['float', 'float16']", "cast --to bfloat16 --io cast"),
        (SUMMED, NPU + "refused-types = ['float']", "cast --to float16 --io cast --half *"),
    ],
)
def test_a_cast_to_a_type_that_the_target_takes(model: str, profile: str, command: str) -> None:
    found = plan(load_checked(as_model(model))[0], parsed(profile, "npu.toml"), Binding())
    assert not found.taken, "the precision is another one, so it is not taken unasked"
    (offer,) = found.offered
    assert (str(offer), offer.kind) == (command, RemedyKind.PRECISION)
    assert offer.cleared == {"type": len(found.left.findings)}


def test_no_cast_is_named_if_the_target_takes_no_floats() -> None:
    refusing = NPU + "refused-types = ['float', 'float16', 'bfloat16']"
    found = plan(load_checked(as_model(HALVED))[0], parsed(refusing, "npu.toml"), Binding())
    assert (found.taken, found.offered) == ([], [])


WHOLE = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (float[4,N] x, int64[2] ids) => (float[N] y, float[2,N] z) <int64[1] four = {4}> {
      n = Shape <start = 1> (x)
      k = Mod (n, four)
      i = Squeeze (k)
      y = Gather (x, i)
      at = Mod (ids, four)
      z = Gather (x, at)
    }
"""


def test_int64_that_is_proven_to_fit_becomes_int32_unasked() -> None:
    found = plan(load_checked(as_model(WHOLE))[0], load("directml"), Binding())
    (taken,) = found.taken
    assert (str(taken), taken.kind) == ("cast --int32", RemedyKind.EXACT)
    assert [one.path for one in found.left.findings] == ["main/mod_5"], "of unknown numbers"
    (offer,) = found.offered
    assert (str(offer), offer.kind) == (
        "cast --int32 --assume int32-inputs",
        RemedyKind.PROMISE,
    )
    assert offer.cleared == {"type": 1}
