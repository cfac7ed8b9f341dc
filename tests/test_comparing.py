"""`passes.compare`: two models on the same inputs."""

from __future__ import annotations

import numpy as np
import pytest

import passes
from passes.testing import as_model
from tests.written import changed

NEGATED = """
    <ir_version: 8, opset_import: ["" : 16]>
    g (float[N] x) => (float[N] y) { y = Neg (x) }
"""


def test_models_that_agree_in_every_case() -> None:
    product = changed(
        NEGATED, {"y = Neg (x)": "m = Constant <value_float = -1.0> () y = Mul (x, m)"}
    )
    checked = passes.compare(as_model(NEGATED), as_model(product), executor="reference")
    assert checked.verdict == "verified"
    assert checked.compared["reference"] > 5


def test_the_given_inputs_come_first() -> None:
    other = changed(NEGATED, {"Neg": "Abs"})
    feeds = {"x": np.array([-1, 2], np.float32)}
    checked = passes.compare(as_model(NEGATED), as_model(other), inputs=feeds, executor="reference")
    assert checked.verdict == "mismatch"
    assert "y[1] is -2.0 before and 2.0 after" in checked.reason


def test_an_error_that_the_caller_allows() -> None:
    near = changed(
        NEGATED,
        {"y = Neg (x)": "m = Constant <value_float = -1.001> () y = Mul (x, m)"},
    )
    sides = as_model(NEGATED), as_model(near)
    feeds = {"x": np.array([1], np.float32)}
    strict = passes.compare(*sides, inputs=feeds, executor="reference")
    lenient = passes.compare(*sides, inputs=feeds, executor="reference", tolerance=(0.0, 0.01))
    assert (strict.verdict, lenient.verdict) == ("mismatch", "verified")


def test_an_invalid_model() -> None:
    with pytest.raises(passes.BadModel, match="'no' is defined nowhere"):
        passes.compare(as_model(NEGATED), as_model(changed(NEGATED, {"(x) }": "(no) }"})))


def test_models_that_are_equal_within_an_error() -> None:
    near = changed(
        NEGATED,
        {"y = Neg (x)": "h = Cast <to = 10> (x) n = Neg (h) y = Cast <to = 1> (n)"},
    )
    sides = as_model(NEGATED), as_model(near)
    wide, narrow = (passes.compare(*sides, within=e, executor="reference") for e in (1e-2, 1e-5))
    assert (wide.verdict, narrow.verdict) == ("within", "mismatch")
    assert narrow.reason.startswith("not within 1e-05: the error of 'y' is ")


def test_one_thing_is_asked_of_floats() -> None:
    with pytest.raises(ValueError, match="within cannot be combined with"):
        passes.compare(as_model(NEGATED), as_model(NEGATED), within=1e-2, exact=True)
