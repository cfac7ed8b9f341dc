"""expand-cell: what it writes gives what the operator gives, for all attributes and inputs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping

import numpy as np
import pytest
from onnx import ModelProto

import passes
from passes.testing import as_model
from tests.rules.in_both_executors import both_executors, tensors
from tests.written import changed

#: A batch of two rows, three steps.
RNN = """
<ir_version: 10, opset_import: ["" : 21]>
cell (float[3,2,3] x, float[D,4,3] w, float[D,4,4] r, float[D,8] b, int32[2] n, float[D,2,4] h0)
    => (float[3,D,2,4] y, float[D,2,4] h) {
    y, h = RNN <hidden_size = 4> (x, w, r, b, n, h0)
}
"""
GRU = """
<ir_version: 10, opset_import: ["" : 21]>
cell (float[3,2,3] x, float[D,12,3] w, float[D,12,4] r, float[D,24] b, int32[2] n, float[D,2,4] h0)
    => (float[3,D,2,4] y, float[D,2,4] h) {
    y, h = GRU <hidden_size = 4> (x, w, r, b, n, h0)
}
"""
LSTM = """
<ir_version: 10, opset_import: ["" : 21]>
cell (float[3,2,3] x, float[D,16,3] w, float[D,16,4] r, float[D,32] b, int32[2] n,
      float[D,2,4] h0, float[D,2,4] c0, float[D,12] p)
    => (float[3,D,2,4] y, float[D,2,4] h, float[D,2,4] c) {
    y, h, c = LSTM <hidden_size = 4> (x, w, r, b, n, h0, c0, p)
}
"""
FORMS = ["scan", "loop", "written-out"]
BATCH_FIRST = {
    "hidden_size = 4": "hidden_size = 4, layout = 1",
    "float[3,2,3] x": "float[2,3,3] x",
    "float[D,2,4]": "float[2,D,4]",
    "float[3,D,2,4] y": "float[2,3,D,4] y",
}


def model_of(text: str, *changes: Mapping[str, str], ways: int = 1) -> str:
    """The model with these changes, the last of them first, for one or two directions."""
    for change in reversed(changes):
        text = changed(text, change)
    return re.sub(r"\bD\b", str(ways), text)


def feeds_of(model: ModelProto, seed: int = 0) -> dict[str, np.ndarray]:
    """Drawn inputs; the second row ends after two steps."""
    draw, feeds = np.random.default_rng(seed), {}
    for value in model.graph.input:
        kind = value.type.tensor_type
        shape = [dim.dim_value for dim in kind.shape.dim]
        feeds[value.name] = draw.standard_normal(shape).astype(np.float32)
        if value.name == "n":
            feeds["n"] = np.array([shape[0] and 3, 2], np.int32)
    return feeds


def assert_same(text: str, *, in_onnxruntime: bool = True, forms: list[str] = FORMS) -> None:
    """All forms give in both executors what the operator gives, in those that have a kernel."""
    model = as_model(text)
    feeds = feeds_of(model)
    with both_executors() as (reference, onnxruntime):
        expected = tensors(reference, model, feeds)
        if in_onnxruntime:
            assert_near(tensors(onnxruntime, model, feeds), expected)
        for form in forms:
            result = passes.expand(model, form=form, verify=False)
            assert not result.report.refusals
            for executor in (reference, onnxruntime):
                assert_near(tensors(executor, result.model, feeds), expected)


def assert_near(actual: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]) -> None:
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(actual[name], value, rtol=1e-5, atol=2e-5, err_msg=name)


DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}
OPTIONAL = {
    "RNN": ["clip", "layout", "b", "n", "h0"],
    "GRU": ["clip", "layout", "b", "n", "h0", "linear_before_reset"],
    "LSTM": ["clip", "layout", "b", "n", "h0", "input_forget", "p"],
}


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("operator", "direction", "on"),
    [
        (operator, direction, tuple(itertools.compress(options, chosen)))
        for operator, options in OPTIONAL.items()
        for direction in DIRECTIONS
        for chosen in itertools.product([False, True], repeat=len(options))
    ],
)
def test_every_attribute_and_input(operator: str, direction: str, on: tuple[str, ...]) -> None:
    text = {"RNN": RNN, "GRU": GRU, "LSTM": LSTM}[operator]
    attributes = ["hidden_size = 4", f'direction = "{direction}"']
    attributes += [f"{name} = 1" for name in ("linear_before_reset", "input_forget") if name in on]
    attributes += ["clip = 0.4"] if "clip" in on else []
    left_out = {f", {name}": ", " for name in ("b", "n", "h0") if name not in on}
    if operator == "LSTM":
        left_out |= {", c0": ", "} if "h0" not in on else {}
        left_out |= {", p)": ")"} if "p" not in on else {}
    head, call = text.split(" (x, w, r")
    changes = [{"hidden_size = 4": ", ".join(attributes)}]
    changes += [BATCH_FIRST] if "layout" in on else []
    text = " (x, w, r".join((head, changed(call, left_out)))
    assert_same(
        model_of(text, *changes, ways=DIRECTIONS[direction]), in_onnxruntime="layout" not in on
    )
