"""What the library's functions cannot be told: it is refused before a model is read."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import passes


@pytest.mark.parametrize(
    ("command", "options", "sentence"),
    [
        (
            passes.upgrade,
            {"batch": "rows"},
            "batch is 'rows', not one of auto, vectorize, nest, unroll",
        ),
        (
            passes.optimize,
            {"target": "gpu"},
            "target is 'gpu', not one of onnxruntime, no-control-flow, loop-only, scan-only",
        ),
        (passes.unroll, {"bounded": "never"}, "bounded is 'never', not one of auto, select, if"),
        (passes.unroll, {"peel": "middle"}, "peel is 'middle', not one of first, last"),
        (passes.unroll, {"factor": 0}, "factor is 0, it must be 1 or more"),
        (passes.unroll, {"factor": 2, "peel": "last"}, "factor and peel do not go together"),
        (passes.unroll, {"check_output": "enough"}, "check_output is the name of an output that"),
        (
            passes.lower,
            {"executor": "gpu"},
            "executor is 'gpu', not one of reference, onnxruntime, both",
        ),
        (
            passes.lower,
            {"assume": ["luck"]},
            "assume is ['luck'], not among valid-inputs, non-empty",
        ),
    ],
)
def test_what_is_not_known_is_refused(
    command: Callable[..., Any], options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        command("no such model.onnx", **options)
