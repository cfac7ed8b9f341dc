"""What loops declare is enough to check them: nothing is inferred for it."""

from __future__ import annotations

import onnx
import pytest

from passes.check import check
from passes.errors import BadModel
from passes.ir.model import Model

#: `first` and `chosen` are declared nowhere, but bodies return them.
CHAIN = """
    <ir_version: 8, opset_import: ["" : 16]>
    g (int64 m, float[3] x, bool c) => ({answer} y) {{
      first = Loop <body = b (int64 n, bool k, float[3] s) => (bool d, float[3] t)
        {{ d = Identity (k) t = Neg (s) }}> (m, , {start})
      chosen = If <then_branch = t () => (float[3] p) {{ p = Neg (first) }},
        else_branch = e () => (float[3] q) {{ q = Identity (first) }}> (c)
      y = Loop <body = b (int64 n, bool k, {state} s) => (bool d, {state} t)
        {{ d = Identity (k) t = Neg (s) }}> (m, , chosen)
    }}
"""


def model(**parts: str) -> Model:
    words = {"answer": "float[3]", "start": "x", "state": "float[3]", **parts}
    return Model(onnx.parser.parse_model(CHAIN.format(**words)))


def test_a_chain_of_declared_loops_is_not_inferred(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("inferred")

    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", never)
    check(model())


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        (
            {"start": "c"},
            "main/loop_0: carried value 0 starts as bool ('c'), but the body takes float ('s')",
        ),
        (
            {"state": "int64[3]", "answer": "int64[3]"},
            "main/loop_2: carried value 0 starts as float ('chosen'), but the body takes int64 "
            "('s')",
        ),
        (
            {"answer": "double[3]"},
            "main/loop_2: output 0 is declared double ('y'), but the body returns float ('t')",
        ),
    ],
)
def test_what_they_declare_is_held_against_each_other(parts: dict[str, str], sentence: str) -> None:
    with pytest.raises(BadModel) as error:
        check(model(**parts))
    assert str(error.value) == sentence
