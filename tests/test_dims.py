"""Fixing symbolic dims, which makes trip counts static."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from typer.testing import CliRunner

import passes
from passes.__main__ import app
from passes.dims import UnknownDim, parsed
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
    assert [sizes(one) for one in graph.input] == [["B", 2], [3, "B", 2]]
    assert [sizes(one) for one in graph.output] == [["B", 2], [3, "B", 2]]


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
    with pytest.raises(UnknownDim, match=r"called 'time'; there are: B, T"):
        passes.unroll(as_model(SUM), dims={"time": 4})


@pytest.mark.parametrize("text", ["T", "T=", "=3", "T=-1", "T=x"])
def test_what_is_not_of_the_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="NAME=SIZE"):
        parsed(text)


def test_the_command_takes_dims(tmp_path: Path) -> None:
    model, out = tmp_path / "sum.onnx", tmp_path / "out.onnx"
    onnx.save(as_model(SUM), model)
    call = ["unroll", str(model), "-o", str(out), "--opset", "21", "--verify-budget", "5"]
    done = CliRunner().invoke(app, [*call, "--dim", "T=2", "--dim", "B=1"])
    assert done.exit_code == 0, done.output
    assert [sizes(one) for one in onnx.load(out).graph.input] == [[1, 2], [2, 1, 2]]
    assert CliRunner().invoke(app, [*call, "--force", "--dim", "T"]).exit_code == 2
    assert CliRunner().invoke(app, [*call, "--force", "--dim", "U=2"]).exit_code == 2
