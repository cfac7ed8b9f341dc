"""What `passes.testing` tells whoever writes a test."""

from __future__ import annotations

import pytest

from passes.testing import assert_refused, assert_rewrite

TWICE = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (float[2] x) => (float[2] y) { a = Identity (x) y = Neg (a) }
"""


def test_a_pipeline_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="there is no pipeline 'simplifi'; the nearest are simpli"):
        assert_rewrite(TWICE, pipeline="simplifi")
    with pytest.raises(ValueError, match="there is no pipeline 'simplifi'; the nearest are simpli"):
        assert_refused(TWICE, "may-fail", pipeline="simplifi")


def test_a_path_in_place_of_a_model() -> None:
    with pytest.raises(ValueError, match=r"^'model.onnxtxt'... is no model in ONNX text: "):
        assert_rewrite("model.onnxtxt", pipeline="simplify")


def test_the_result_is_printed_without_its_cases() -> None:
    assert "Tried(" not in repr(assert_rewrite(TWICE, pipeline="simplify"))
