"""Fixing symbolic dims, which makes trip counts static."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx
import onnxruntime
import pytest
from typer.testing import CliRunner

import passes
from passes.__main__ import app
from passes.binding.dims import UnknownDim, parsed
from passes.binding.inputs import Binding, parsed_shape
from passes.errors import WrongUsage
from passes.ir.model import Model
from passes.testing import as_model, assert_rewrite

SUM = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[B,2] h, float[T,B,2] x) => (float[B,2] y, float[T,B,2] z) {
   y, z = Scan <num_scan_inputs = 1,
      body = step (float[B,2] s, float[B,2] n) => (float[B,2] t, float[B,2] o) {
         t = Add (s, n) o = Mul (t, n) }> (h, x)
}
"""


def sizes(value: onnx.ValueInfoProto) -> list[int | str]:
    return [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]


def test_a_fixed_time_unrolls_the_loop_and_leaves_the_batch() -> None:
    options = {"dims": {"T": 3}}
    graph = assert_rewrite(SUM, pipeline="unroll", options=options, budget=20).model.graph
    assert "Scan" not in {node.op_type for node in graph.node}
    assert [sizes(name) for name in graph.input] == [["B", 2], [3, "B", 2]]
    assert [sizes(name) for name in graph.output] == [["B", 2], [3, "B", 2]]


def test_bodies_functions_and_sequences_are_fixed_too() -> None:
    model = as_model("""
<ir_version: 10, opset_import: ["" : 21]>
g (seq(float[N]) q, float[N] h, bool b) => (float[N] y) <float[N] w> {
   w = Neg (h)
   y = If (b) < then_branch = yes () => (float[N] a) { a = Neg (w) },
                else_branch = no () => (float[N] c) { c = Exp (w) } >
}
""")
    result = passes.unroll(model, opset=21, dims={"N": 5}, verify=False)
    assert "[N" not in onnx.printer.to_text(result.model)
    assert "[N" in onnx.printer.to_text(model)


def test_an_unknown_dim_is_an_error_that_names_those_there_are() -> None:
    with pytest.raises(UnknownDim, match=r"a dim 'time'; there are: B, T"):
        passes.unroll(as_model(SUM), dims={"time": 4})


@pytest.mark.parametrize("text", ["T", "T=", "=3", "T=-1"])
def test_what_is_not_of_the_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="NAME=SIZE"):
        parsed(text)


def test_a_size_that_is_no_int64_is_refused() -> None:
    assert parsed("T=9223372036854775807") == ("T", 9223372036854775807)
    with pytest.raises(ValueError, match="9223372036854775808 is no int64"):
        parsed("T=9223372036854775808")
    with pytest.raises(ValueError, match="9223372036854775808 is no int64"):
        parsed_shape("x=2,9223372036854775808")


def test_the_command_takes_dims(tmp_path: Path) -> None:
    model, out = tmp_path / "sum.onnx", tmp_path / "out.onnx"
    onnx.save(as_model(SUM), model)
    call = ["unroll", str(model), "-o", str(out), "--opset", "21", "--verify-budget", "5"]
    done = CliRunner().invoke(app, [*call, "--dim", "T=2", "--dim", "B=1"])
    assert done.exit_code == 0, done.output
    assert [sizes(name) for name in onnx.load(out).graph.input] == [[1, 2], [2, 1, 2]]
    assert CliRunner().invoke(app, [*call, "--force", "--dim", "T"]).exit_code == 2
    assert CliRunner().invoke(app, [*call, "--force", "--dim", "U=2"]).exit_code == 2


#: An exporter took the dims of another value for those of the state.
MISTAKEN = """<ir_version: 10, opset_import: ["" : 20]>
g (float[T,B,3] x, float[B,3] h) => (float[B,3] y, float[T,B,3] z)
<float[3,3] w = {0.5, 0.25, 1, 0.5, -1, 0.5, -0.5, -1, 0.25}> {
   y, z = Scan <num_scan_inputs = 1,
      body = step (float[T,B] s, float[B,3] e) => (float[T,B] t, float[T,B] o) <float[T,B] m> {
         m = MatMul (s, w)
         t = Add (m, e)
         o = Identity (t)
      }> (h, x)
}"""
#: Here inference knows nothing of the state: the branch is what tells.
MISTAKEN_LOOP = """<ir_version: 10, opset_import: ["" : 20]>
g (float[B,3] h, float[3,3] w, int64[T] lengths, bool c) => (float[B,3] y) {
   n = Size (lengths)
   y = Loop (n, c, h) <body = step (int64 i, bool go, float[T,B] s) => (bool on, float[T,B] t) {
      on = Identity (go)
      t = MatMul (s, w)
   }>
}"""


def loads(model: onnx.ModelProto) -> bool:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return True


@pytest.mark.sampled(3)  # each text with each command and each choice of dims
@pytest.mark.parametrize("dims", [{"T": 5, "B": 4}, {"T": 5}, {"B": 4}, {"T": 1, "B": 3}])
@pytest.mark.parametrize("command", [passes.unroll, passes.optimize])
@pytest.mark.parametrize("text", [MISTAKEN, MISTAKEN_LOOP])
def test_what_a_body_mistakes_is_inferred_anew(
    text: str, command: Callable[..., passes.Result], dims: dict[str, int]
) -> None:
    model = as_model(text)
    result = command(model, dims=dims, verify_budget=10)
    assert result.report.checked is not None
    assert result.report.checked.verdict == "verified"
    assert result.report.checked.compared["onnxruntime"] > 0
    onnx.checker.check_model(result.model, full_check=True)
    assert loads(result.model)


def test_a_state_that_grows_is_not_given_the_size_it_begins_with() -> None:
    text = """<ir_version: 10, opset_import: ["" : 20]>
    g (float[N,2] x, int64 n) => (float[K,2] y) <bool on = {1}, float[0,2] none = {}> {
       y = Loop (n, on, none) <
          body = step (int64 i, bool go, float[N,2] s) => (bool stays, float[N,2] t) {
             stays = Identity (go)
             t = Concat <axis = 0> (s, x)
          }>
    }"""
    result = passes.unroll(as_model(text), dims={"N": 3}, verify_budget=10)
    (loop,) = result.model.graph.node
    first, _ = loop.attribute[0].g.input[2].type.tensor_type.shape.dim
    assert first.WhichOneof("value") is None
    assert result.report.checked is not None
    assert result.report.checked.verdict == "verified"


#: A sum by halves: the exporter declares the state of the body as it is before the loop.
HALVES = """<ir_version: 8, opset_import: ["" : 17]>
g (float[n,4] x) => (float[n_out,4] y)
<int64 most = {100}, int64 first = {0}, int64 one = {1}, int64 two = {2}, int64[1] axis = {0}> {
   all = Shape (x)
   rows = Gather (all, first)
   more = Greater (rows, one)
   y = Loop (most, more, x) <
      body = step (int64 i, bool go, float[n,4] s) => (bool again, float[m,4] t) {
         whole = Shape (s)
         length = Gather (whole, first)
         half = Div (length, two)
         middle = Unsqueeze (half, axis)
         upper = Slice (s, axis, middle, axis)
         both = Mul (middle, two)
         lower = Slice (s, middle, both, axis)
         t = Add (upper, lower)
         again = Greater (half, one)
      }>
}"""


@pytest.mark.parametrize(
    "command", [passes.upgrade, passes.simplify, passes.optimize, passes.raise_, passes.hoist]
)
def test_a_state_that_shrinks_is_not_bound(command: Callable[..., passes.Result]) -> None:
    result = command(as_model(HALVES), dims={"n": 8}, verify_budget=10)
    assert result.report.checked is not None
    assert result.report.checked.verdict == "verified"
    assert result.report.checked.compared["onnxruntime"] > 0
    assert list(result.report.bound) == ["x: float[n,4] -> float[8,4]"]
    (loop,) = [node for node in result.model.graph.node if node.op_type == "Loop"]
    state, _ = loop.attribute[0].g.input[2].type.tensor_type.shape.dim
    assert state.WhichOneof("value") is None


def test_names_that_functions_bodies_and_outputs_use_by_accident_are_not_bound() -> None:
    model = as_model("""<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
    g (float[N,2] x, int64 k, float[?,2] other) => (float[N,2] y, float[N,2] z, float[N,2] w) {
       y = own.twice (other)
       z = Loop (k, "", other) <
          body = step (int64 i, bool go, float[N,2] s) => (bool stays, float[N,2] t) {
             stays = Identity (go)
             t = Neg (s)
          }>
       w = Neg (x)
    }
    <opset_import: ["" : 21], domain: "own">
    twice (a) => (c) <float[N,2] b> {
       b = Neg (a)
       c = Add (b, a)
    }""")
    result = passes.upgrade(model, dims={"N": 3}, verify_budget=10)
    assert result.report.checked is not None
    assert result.report.checked.verdict == "verified"
    assert list(map(sizes, result.model.graph.output)) == [["N", 2], ["N", 2], [3, 2]]
    assert list(map(sizes, result.model.functions[0].value_info)) == [[0, 2]]


def test_sizes_pass_through_loops_that_keep_them() -> None:
    model = as_model("""<ir_version: 10, opset_import: ["" : 21]>
    g (float[N,2] x, int64 k) => (float[N,2] z, float[?,N] rows) <float[N,2] a, float[N,2] y> {
       a = Loop (k, "", x) <
          body = step (int64 i, bool go, float[N,2] s) => (bool stays, float[N,2] t) {
             stays = Identity (go)
             t = Loop (k, "", s) <
                body = inner (int64 j, bool on, float[N,2] u) => (bool same, float[N,2] v) {
                   same = Identity (on)
                   v = Neg (u)
                }>
          }>
       y = Neg (a)
       z, rows = Loop (k, "", y) <
          body = sums (int64 i, bool go, float[N,2] s) => (bool stays, float[N,2] t, float[N] r) {
             stays = Identity (go)
             t = Exp (s)
             last = Constant <value_ints = [1]> ()
             r = ReduceSum <keepdims = 0> (t, last)
          }>
    }""")
    result = passes.upgrade(model, dims={"N": 3}, verify_budget=10)
    assert "[N" not in onnx.printer.to_text(result.model)
    assert list(map(sizes, result.model.graph.output)) == [[3, 2], [0, 3]]


def test_a_body_that_is_right_says_the_sizes() -> None:
    model = passes.lower(as_model(SUM), verify=False).model
    fixed = passes.hoist(passes.unroll(model, dims={"B": 4}, verify=False).model, verify=False)
    assert "[B" not in onnx.printer.to_text(fixed.model)
    (loop,) = [node for node in fixed.model.graph.node if node.op_type == "Loop"]
    states = [sizes(name) for name in loop.attribute[0].g.input[2:]]
    assert [4, 2] in states


def test_the_sizes_are_verified_where_nothing_is_rewritten(tmp_path: Path) -> None:
    report = passes.unroll(as_model(SUM), dims={"B": 4}, verify_budget=10).report
    assert report.checked is not None
    assert report.checked.verdict == "verified"
    with pytest.raises(passes.NotVerified):
        passes.unroll(as_model(SUM), dims={"B": 4}, verify_budget=0)


def test_sizes_that_the_model_does_not_take_are_refused() -> None:
    text = """<ir_version: 10, opset_import: ["" : 20]>
    g (float[N,3] x) => (float[N,3] y) <float[4,3] w = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}> {
       y = Add (x, w)
    }"""
    assert passes.unroll(as_model(text), dims={"N": 4}, verify=False)
    with pytest.raises(passes.NotProduced, match="with --dim N=3 the model is invalid: "):
        passes.unroll(as_model(text), dims={"N": 3}, verify=False)


#: An exporter numbers the batches of its inputs.
TWO_BATCHES = """<ir_version: 10, opset_import: ["" : 21]>
g (float[x0_d0,3] h, float[70,x1_d0,3] a, float[70,x1_d0,3] x)
   => (float[x0_d0,3] y, float[70,x1_d0,3] z) {
   y, z = Scan <num_scan_inputs = 2,
      body = step (float[x0_d0,3] s, float[x1_d0,3] f, float[x1_d0,3] n)
         => (float[x1_d0,3] t, float[x1_d0,3] o) {
         k = Mul (f, s) t = Add (k, n) o = Identity (t) }> (h, a, x)
}"""
ONE_BATCH = {"dims": {"x0_d0": "x1_d0"}}


def test_two_dims_that_are_declared_equal_become_one() -> None:
    options = {**ONE_BATCH, "allow_reassociation": True}
    result = assert_rewrite(TWO_BATCHES, pipeline="run-in-blocks", options=options, budget=20)
    graph = result.model.graph
    assert [sizes(value) for value in graph.input] == [
        ["x1_d0", 3],
        [70, "x1_d0", 3],
        [70, "x1_d0", 3],
    ]
    assert "x0_d0" not in onnx.printer.to_text(result.model)
    assert result.report.bound == (
        "h: float[x0_d0,3] -> float[x1_d0,3]",
        "y: float[x0_d0,3] -> float[x1_d0,3]",
    )
    assert "Reshape" in {node.op_type for node in graph.node}  # into blocks


def test_dims_that_are_equal_have_one_size() -> None:
    dims = {"x0_d0": "x1_d0", "x1_d0": 2}
    graph = assert_rewrite(
        TWO_BATCHES, pipeline="unroll", options={"dims": dims}, budget=5
    ).model.graph
    assert [sizes(value) for value in graph.input] == [[2, 3], [70, 2, 3], [70, 2, 3]]
    bound = Binding({"x0_d0": "x1_d0"}, {"a": (None, 2, None)}).of(Model(as_model(TWO_BATCHES)))
    assert [sizes(value) for value in bound.proto.graph.input] == [[2, 3], [70, 2, 3], [70, 2, 3]]


@pytest.mark.parametrize(
    ("dims", "sentence"),
    [
        ({"x0_d0": "batch"}, "no input has a dim 'batch'; there are: x0_d0, x1_d0"),
        ({"x0_d0": "x0_d0"}, "the dim 'x0_d0' is declared equal to itself"),
        ({"x0_d0": "x1_d0", "x1_d0": "x0_d0"}, "the dim 'x0_d0' is declared equal to itself"),
    ],
)
def test_what_cannot_be_equal_is_refused(dims: dict[str, str], sentence: str) -> None:
    with pytest.raises(WrongUsage, match=sentence):
        passes.unroll(as_model(TWO_BATCHES), dims=dims)


def test_a_build_declares_dims_equal_in_the_models_that_have_both() -> None:
    pipeline = passes.Pipeline(["simplify"], dims={"x0_d0": "x1_d0", "T": "time"}, lenient=True)
    graph = pipeline.run(as_model(TWO_BATCHES)).model.graph
    assert sizes(graph.input[0]) == ["x1_d0", 3]
    pipeline = passes.Pipeline(["simplify"], dims={"x0_d0": "batch"}, lenient=True)
    assert sizes(pipeline.run(as_model(TWO_BATCHES)).model.graph.input[0]) == ["x0_d0", 3]


def test_the_command_takes_a_name_for_a_size(tmp_path: Path) -> None:
    model, out = tmp_path / "rows.onnx", tmp_path / "out.onnx"
    onnx.save(as_model(TWO_BATCHES), model)
    call = ["simplify", str(model), "-o", str(out), "--verify-budget", "2"]
    done = CliRunner().invoke(app, [*call, "--dim", "x0_d0=x1_d0"])
    assert done.exit_code == 0, done.output
    assert "bound: h: float[x0_d0,3] -> float[x1_d0,3]" in done.output
    assert sizes(onnx.load(out).graph.input[0]) == ["x1_d0", 3]
