"""The command line, called in this process."""

from __future__ import annotations

from pathlib import Path

import onnx
from typer.testing import CliRunner, Result

from passes.__main__ import app

DONE, FAILED, USAGE, NOT_PRODUCED, MISMATCH = range(5)
FAST = ("--opset", "9", "--executor", "reference", "--verify-budget", "5")
#: Work to hoist out of a loop, and out of branches that no executor runs.
HALF = """<ir_version: 8, opset_import: ["" : 17, "my" : 1]>
    g (int64 n, bool c, float[N] x) => (float[N] y, float[N] z) {
    y = If (c) <
        then_branch = a () => (float[N] t) { j = Exp(x)  t = my.Foo(j) },
        else_branch = b () => (float[N] e) { k = Exp(x)  l = Neg(k)  e = my.Foo(l) }>
    z = Loop (n, , x) <body = b (int64 i, bool c, float[N] s) => (bool d, float[N] t) {
        d = Identity(c)  k = Exp(x)  t = Add(s, k) }> }"""
UNVERIFIED = ("--opset", "9", "--no-verify")

ROOT = Path(__file__).parents[2]

SUM = """<ir_version: 6, opset_import: ["" : 8]>
    g (int64[B] lens, float[B,2] h, float[B,T,2] x) => (float[B,2] y) {
    y = Scan <num_scan_inputs = 1,
        body = b (float[2] s, float[2] e) => (float[2] o) { o = Add(s, e) }> (lens, h, x) }"""


def run(*arguments: str) -> Result:
    """Run the command line; nothing but an exit may leave it."""
    result = CliRunner().invoke(app, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def fails(code: int, *arguments: str) -> str:
    """The sentence on stderr of a command that exits with `code` and writes nothing."""
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    result = run(*arguments)
    after = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    assert result.exit_code == code, result.output
    assert before == after
    return result.stderr


def opset(path: str) -> int:
    return int(onnx.load(path, load_external_data=False).opset_import[0].version)
