"""An operator whose contract tells the origin of its elements is proven without a line in the
prover."""

from __future__ import annotations

from pathlib import Path

import onnx.parser
import pytest

import passes.proving
from passes.ir.model import Model
from passes.operators.contract import TRACED
from passes.proving.narrowing import prove
from passes.proving.symbolic_evaluator import model_of
from tests.written import changed

HEAD = '<ir_version: 10, opset_import: ["" : 21]> g '
#: An operator, and the same by other ones.
PAIRS = {
    "DepthToSpace": (
        """(float[N,8,3,2] x) => (float[A,B,C,D] y) {
        y = DepthToSpace <blocksize = 2> (x) }""",
        """(float[N,8,3,2] x) => (float[A,B,C,D] y) {
        s = Constant <value_ints = [0,2,2,2,3,2]> () a = Reshape (x, s)
        b = Transpose <perm = [0,3,4,1,5,2]> (a)
        t = Constant <value_ints = [0,2,6,4]> () y = Reshape (b, t) }""",
        {"perm = [0,3,4,1,5,2]": "perm = [0,1,4,2,5,3]"},
    ),
    "SpaceToDepth": (
        """(float[1,2,4,4] x) => (float[1,8,2,2] y) { y = SpaceToDepth <blocksize = 2> (x) }""",
        """(float[1,2,4,4] x) => (float[1,8,2,2] y) {
        s = Constant <value_ints = [1,2,2,2,2,2]> () a = Reshape (x, s)
        b = Transpose <perm = [0,3,5,1,2,4]> (a)
        t = Constant <value_ints = [1,8,2,2]> () y = Reshape (b, t) }""",
        {"perm = [0,3,5,1,2,4]": "perm = [0,1,3,5,2,4]"},
    ),
    "Trilu": (
        "(float[N,M] x) => (float[N,M] y) { y = Trilu (x) }",
        """(float[N,M] x) => (float[N,M] y) {
        e = Constant <value_ints = [0]> () o = Constant <value_ints = [1]> ()
        z = Constant <value_int = 0> () u = Constant <value_int = 1> ()
        s = Shape <end = 1> (x) n = Squeeze (s, e) i = Range (z, n, u) r = Unsqueeze (i, o)
        t = Shape <start = 1> (x) m = Squeeze (t, e) j = Range (z, m, u)
        c = LessOrEqual (r, j) f = Constant <value_float = 0.0> () y = Where (c, x, f) }""",
        {"LessOrEqual": "Less"},
    ),
    "CenterCropPad": (
        """(float[7,N] x) => (float[3,N] y) {
        s = Constant <value_ints = [3]> () y = CenterCropPad <axes = [0]> (x, s) }""",
        """(float[7,N] x) => (float[3,N] y) { a = Constant <value_ints = [2]> ()
        b = Constant <value_ints = [5]> () y = Slice (x, a, b) }""",
        {"[2]": "[1]", "[5]": "[4]"},
    ),
    "OneHot": (
        """(float[N] x) => (float[3,3] y) { i = Constant <value_ints = [-3,-2,-1]> ()
        d = Constant <value_int = 3> () v = Constant <value_floats = [0.0, 1.0]> ()
        y = OneHot (i, d, v) }""",
        """(float[N] x) => (float[3,3] y) { s = Constant <value_ints = [3,3]> ()
        c = ConstantOfShape (s) y = EyeLike (c) }""",
        {"EyeLike (c)": "EyeLike <k = 1> (c)"},
    ),
    "BitShift": (
        """(uint8[N] x, uint8[N] k) => (uint8[N] y) {
        y = BitShift <direction = "LEFT"> (x, k) }""",
        """(uint8[N] x, uint8[N] k) => (uint8[N] y) { e = Constant <value_ints = [1]> ()
        a = Unsqueeze (x, e) b = Unsqueeze (k, e) c = BitShift <direction = "LEFT"> (a, b)
        y = Squeeze (c, e) }""",
        {'"LEFT"': '"RIGHT"'},
    ),
}


def proof_of(before: str, after: str) -> bool:
    one, other = (Model.load(onnx.parser.parse_model(HEAD + text)) for text in (before, after))
    found = prove(one, other).proof
    return found.is_proven and found.scope.method == "symbolic"


@pytest.mark.parametrize("op", PAIRS)
def test_it_is_proven_equal_to_what_others_write_out(op: str) -> None:
    before, after, wrong = PAIRS[op]
    assert proof_of(before, after)
    assert not proof_of(before, changed(after, wrong))


def test_the_prover_names_no_operator_that_the_table_traces() -> None:
    folder = Path(passes.proving.__file__).parent
    texts = [path.read_text() for path in folder.glob("operators/*.py")]
    named = {op for op in TRACED if any(f'operator("{op}"' in text for text in texts)}
    assert named == set()
    assert len({model_of(op) for op in TRACED}) == 1
