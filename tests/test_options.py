"""What the library's functions cannot be told: it is refused before a model is read."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import onnx
import pytest

import passes
from passes.choices import RuleOptions
from passes.rule import UnknownRule
from passes.testing import options_of


@pytest.mark.parametrize(
    ("command", "options", "sentence"),
    [
        (
            passes.upgrade,
            {"batch": "rows"},
            "batch is 'rows', not one of auto, vectorize, mask, nest, unroll",
        ),
        (
            passes.optimize,
            {"target": "onnxruntim"},
            "target is 'onnxruntim', not a target; the nearest are onnxruntime, ",
        ),
        (passes.unroll, {"bounded": "never"}, "bounded is 'never', not one of auto, select, if"),
        (passes.unroll, {"peel": "middle"}, "peel is 'middle', not one of first, last"),
        (passes.unroll, {"factor": 0}, "factor is 0, it must be 1 or more"),
        (passes.unroll, {"factor": 2, "peel": "last"}, "factor and peel do not go together"),
        (
            passes.optimize,
            {"max_trips": 4, "target": "loop-only"},
            "max_trips goes with target no-control-flow, which alone writes loops out; "
            "loop-only does not",
        ),
        (passes.unroll, {"check_output": "enough"}, "check_output is the name of an output that"),
        (
            passes.lower,
            {"executor": "tarct"},
            "executor is 'tarct', not an executor; the nearest are tract, ",
        ),
        (
            passes.lower,
            {"assume": ["luck"]},
            "assume is ['luck'], not among valid-inputs, non-empty, int32-inputs",
        ),
    ],
)
def test_what_is_not_known_is_refused(
    command: Callable[..., Any], options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        command("no such model.onnx", **options)


@pytest.mark.parametrize(
    ("command", "options", "sentence"),
    [
        (passes.upgrade, {"verfy": False}, "upgrade() got an unexpected keyword argument 'verfy'"),
        (passes.upgrade, {"verfy": False}, "the nearest are verify, "),
        (passes.lower, {"onyl": ["main/*"]}, "the nearest are only, "),
        (passes.optimize, {"max_node": 3}, "the nearest are max_nodes, "),
        (passes.lower, {"only": "main/scan_0"}, "only is 'main/scan_0', not a list of strings"),
        (passes.hoist, {"rules": "hoist-constants"}, "rules is 'hoist-constants', not a list"),
        (passes.simplify, {"skip": "inline-if"}, "skip is 'inline-if', not a list of strings"),
        (passes.upgrade, {"assume": "non-empty"}, "assume is 'non-empty', not a list of strings"),
        (passes.unroll, {"only": [3]}, "only is [3], not a list of strings"),
        (passes.unroll, {"dims": "T=3"}, "dims is 'T=3', not a mapping from names to sizes"),
    ],
)
def test_a_keyword_that_is_none_or_of_another_type(
    command: Callable[..., Any], options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(TypeError, match=re.escape(sentence)):
        command("no such model.onnx", **options)


def test_rules_that_are_not_there_to_be_skipped() -> None:
    with pytest.raises(UnknownRule, match="the nearest are inline-loop, "):
        passes.simplify(onnx.ModelProto(), skip=["inline-lop"])
    with pytest.raises(UnknownRule, match=r"'raise-loop' is none of simplify.*inline-loop"):
        passes.simplify(onnx.ModelProto(), skip=["raise-loop"])


class TestOptionsOfGoldenModels:
    """What `passes.testing.options_of` reads."""

    def test_strings(self) -> None:
        said = {"robust": "no", "flat": "yes", "factor": "3", "assume": "non-empty", "max_trips": 2}
        assert options_of(said) == RuleOptions(
            robust=False, flat=True, factor=3, assume=("non-empty",), max_trips=2
        )

    @pytest.mark.parametrize(
        ("said", "sentence"),
        [
            ({"rule": "opset"}, "there is no option 'rule'; the nearest are rules, "),
            ({"robust": "maybe"}, "robust is 'maybe', not yes or no"),
            ({"max_trips": "few"}, "max_trips is 'few', not a whole number"),
        ],
    )
    def test_what_is_none(self, said: dict[str, str], sentence: str) -> None:
        with pytest.raises(ValueError, match=re.escape(sentence)):
            options_of(said)
