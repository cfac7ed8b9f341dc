"""expand-cell: what it writes gives what the operator gives, for all attributes and inputs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto

import passes
from passes.ir.operators import op_of
from passes.ir.scope import walk_model
from passes.testing import as_model, assert_rewrite
from passes.verify.executor import Executor
from tests.rules.in_both_executors import assert_both_fail, both_executors, tensors
from tests.verify.onnx_cases import all_cases
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
CELLS = {"RNN", "GRU", "LSTM"}
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
        feeds[value.name] = (draw.standard_normal(shape) / 2).astype(np.float32)
        if value.name == "n":
            feeds["n"] = np.array([shape[0] and 3, 2], np.int32)
    return feeds


def operators(model: ModelProto) -> list[str]:
    """Those of all nodes, at every depth."""
    return [op_of(place.node) for place in walk_model(model)]


Executors = tuple[Executor, Executor]


@pytest.fixture(name="executors", scope="module")
def _executors() -> Executors:
    return both_executors()


def assert_same(
    executors: Executors, text: str, *, in_onnxruntime: bool = True, forms: list[str] = FORMS
) -> None:
    """All forms give in both executors what the operator gives, in those that have a kernel."""
    model = as_model(text)
    feeds = feeds_of(model)
    reference, onnxruntime = executors
    expected = tensors(reference, model, feeds)
    if in_onnxruntime:
        assert_near(tensors(onnxruntime, model, feeds), expected)
    weights = {name: value for name, value in feeds.items() if name in ("w", "r", "b", "p")}
    for form, fixed in [*((form, {}) for form in forms), ("scan", weights)]:
        result = passes.expand(model, form=form, values=fixed, verify=False)
        assert not result.report.refusals
        left = {name: value for name, value in feeds.items() if name not in fixed}
        for executor in executors:
            assert_near(tensors(executor, result.model, left), expected)


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


def cell_with(operator: str, direction: str, on: tuple[str, ...]) -> str:
    """A model of an operator with these attributes and optional inputs, and no others."""
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
    return model_of(text, *changes, ways=DIRECTIONS[direction])


#: An operator, a direction, and the attributes and optional inputs that it has.
Combination = tuple[str, str, tuple[str, ...]]
COMBINATIONS: list[Combination] = [
    (operator, direction, tuple(itertools.compress(options, chosen)))
    for operator, options in OPTIONAL.items()
    for direction in DIRECTIONS
    for chosen in itertools.product([False, True], repeat=len(options))
]


@pytest.mark.sampled(40)
@pytest.mark.parametrize(("operator", "direction", "on"), COMBINATIONS)
def test_every_attribute_and_input(
    executors: Executors, operator: str, direction: str, on: tuple[str, ...]
) -> None:
    assert_same(
        executors,
        cell_with(operator, direction, on),
        in_onnxruntime="layout" not in on,
    )


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("operator", "form"),
    [*((one, "scan") for one in sorted(CELLS)), ("RNN", "loop"), ("RNN", "written-out")],
)
def test_lengths_are_proven(operator: str, form: str) -> None:
    model = as_model(cell_with(operator, "bidirectional", ("n", "h0")))
    proof = passes.expand(model, form=form, verify=False, prove=True).report.proof
    assert proof is not None
    assert proof.is_proven, proof.sentence()


ACTIVATIONS = [
    *("Elu", "HardSigmoid", "LeakyRelu", "Relu", "Sigmoid", "Softplus", "Softsign", "Tanh"),
    *("Affine", "ScaledTanh", "ThresholdedRelu"),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_every_activation_in_every_place(executors: Executors, name: str) -> None:
    """Parameters are taken in order by those that have some; others do not use any up."""
    given = "activation_alpha = [0.75, 0.5, 0.25], activation_beta = [0.125, 0.5, 0.375]"
    for text, names in (
        (RNN, [name]),
        (GRU, ["Sigmoid", name]),
        (GRU, [name, "Tanh"]),
        (LSTM, ["HardSigmoid", "Tanh", name]),
        (LSTM, [name, name, "LeakyRelu"]),
    ):
        listed = ", ".join(f'"{one}"' for one in names)
        attributes = f"hidden_size = 4, activations = [{listed}], {given}"
        assert_same(executors, model_of(text, {"hidden_size = 4": attributes}), forms=["scan"])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ACTIVATIONS[:8])
def test_parameters_by_default(executors: Executors, name: str) -> None:
    attributes = f'hidden_size = 4, activations = ["{name}"]'
    assert_same(executors, model_of(RNN, {"hidden_size = 4": attributes}), forms=["scan"])


def test_each_direction_has_activations_of_its_own(executors: Executors) -> None:
    attributes = """hidden_size = 4, direction = "bidirectional", activations = [
        "Sigmoid", "LeakyRelu", "Elu", "HardSigmoid", "Tanh", "LeakyRelu"
    ], activation_alpha = [0.5, 0.25, 0.125, 0.75], activation_beta = [0.25]"""
    assert_same(executors, model_of(LSTM, {"hidden_size = 4": attributes}, ways=2))


def test_an_rnn_may_name_two_activations_forwards(executors: Executors) -> None:
    attributes = 'hidden_size = 4, activations = ["Relu", "Tanh"]'
    assert_same(executors, model_of(RNN, {"hidden_size = 4": attributes}), forms=["scan"])


@pytest.mark.sampled(3)  # each opset once, each operator twice or more
@pytest.mark.parametrize("opset", [9, 10, 11, 13, 14, 18, 22])
@pytest.mark.parametrize("text", [RNN, GRU, LSTM], ids=["RNN", "GRU", "LSTM"])
def test_every_opset(executors: Executors, text: str, opset: int) -> None:
    changes = {'"" : 21': f'"" : {opset}', "hidden_size = 4": "hidden_size = 4, clip = 0.5"}
    assert_same(executors, model_of(text, changes))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["double", "float16"])
@pytest.mark.parametrize("text", [RNN, GRU, LSTM], ids=["RNN", "GRU", "LSTM"])
def test_other_types(text: str, kind: str) -> None:
    """onnxruntime has no kernels for the operators in double, but for what takes their place."""
    text = model_of(text, {"float[": f"{kind}["})
    result = assert_rewrite(text, pipeline="expand", budget=10)
    assert result.report.refusals == []


SYMBOLIC = """
<ir_version: 10, opset_import: ["" : 21]>
cell (float[T,B,3] x, float[1,G,3] w, float[1,G,H] r, float[1,8] b, int32[N] n, float[1,M,H] h0)
    => (float[T,1,B,H] y, float[1,B,H] h) {
    y, h = RNN (x, w, r, b, n, h0)
}
"""


@pytest.mark.parametrize("form", ["scan", "loop"])
def test_nothing_is_known_but_what_the_inputs_have(executors: Executors, form: str) -> None:
    model = as_model(SYMBOLIC)
    result = passes.expand(model, form=form, verify=False)
    sizes = {"x": (3, 2, 3), "w": (1, 4, 3), "r": (1, 4, 4), "b": (1, 8), "h0": (1, 2, 4)}
    draw = np.random.default_rng(0)
    feeds = {name: draw.standard_normal(size).astype(np.float32) for name, size in sizes.items()}
    feeds["n"] = np.array([3, 1], np.int32)
    expected = tensors(executors[0], model, feeds)
    for executor in executors:
        assert_near(tensors(executor, result.model, feeds), expected)
    for changes in (
        {"n": np.array([4, 1], np.int32)},
        {"n": np.array([-1, 1], np.int32)},
        {"n": np.array([3], np.int32)},
        {"h0": feeds["h0"][:, :1]},
    ):
        assert_both_fail(result.model, feeds | changes)


@pytest.mark.parametrize("form", ["scan", "loop"])
@pytest.mark.parametrize(("steps", "rows"), [(0, 2), (3, 0), (0, 0)])
def test_no_steps_or_no_rows(executors: Executors, form: str, steps: int, rows: int) -> None:
    """The states stay, which onnxruntime's operators do not give."""
    text = changed(LSTM, {"float[3,2,3]": "float[T,B,3]", "[3,D,2,4]": "[T,D,B,4]"})
    text = changed(text, {"[D,2,4]": "[D,B,4]", "int32[2]": "int32[B]"})
    model = as_model(model_of(text))
    result = passes.expand(model, form=form, verify=False)
    feeds = feeds_of(model) | {
        "x": np.zeros((steps, rows, 3), np.float32),
        "n": np.full(rows, steps, np.int32),
        "h0": np.ones((1, rows, 4), np.float32),
        "c0": np.ones((1, rows, 4), np.float32),
    }
    expected = tensors(executors[0], model, feeds)
    for executor in executors:
        found = tensors(executor, result.model, feeds)
        assert_near({**found, "y": found["y"].reshape(expected["y"].shape)}, expected)


@pytest.mark.parametrize("form", FORMS)
def test_the_cases_of_onnx(executors: Executors, form: str) -> None:
    """What onnx's documents give for their examples."""
    cases = [case for case in all_cases() if not CELLS.isdisjoint(operators(case.model))]
    assert len(cases) >= 10
    for case in cases:
        result = passes.expand(case.model, form=form, verify=False)
        assert CELLS.isdisjoint(operators(result.model)), case.name
        names = [value.name for value in case.model.graph.output]
        named = dict(zip(names, case.expected, strict=True))
        for executor in executors:
            assert_near(tensors(executor, result.model, case.feeds), named)


PATTERNS = [
    *("keras_both_ways", "keras_lstm", "keras_lstm_[br]*", "gru", "lstm", "lstm_given_state"),
    *("lstm_packed", "rnn"),
]
EXPORTED = Path(__file__).parents[3] / "golden_models/exported"


@pytest.mark.sampled
@pytest.mark.parametrize(
    "path",
    [
        path
        for pattern in (
            "keras_both_ways",
            "keras_lstm",
            "keras_lstm_[br]*",
            "gru",
            "lstm",
            "lstm_given_state",
            "lstm_packed",
            "rnn",
        )
        for path in sorted(EXPORTED.glob(f"*/{pattern}.*.onnx"))
    ],
    ids=lambda path: path.stem,
)
def test_exported_models(path: Path) -> None:
    assert not CELLS.isdisjoint(operators(onnx.load(path)))
    result = passes.expand(path, verify_budget=20)
    assert CELLS.isdisjoint(operators(result.model))
    assert result.report.checked is not None
    assert result.report.checked.verdict == "verified"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("refused", "loops"), [("Loop", ["Scan"]), ("Scan", ["Loop"]), ("Loop, Scan, If", [])]
)
def test_a_target_without_the_operators(tmp_path: Path, refused: str, loops: list[str]) -> None:
    names = ", ".join(f'"{name}"' for name in ("LSTM", *refused.split(", ")))
    own = tmp_path / "own.toml"
    own.write_text(f'name = "own"\nsummary = "Mine"\nrefused = [{names}]\n')
    result = passes.optimize(as_model(model_of(LSTM)), target=str(own))
    found = operators(result.model)
    assert [name for name in found if name in ("Scan", "Loop", "LSTM", "If")] == loops


def test_other_targets_keep_them() -> None:
    model = as_model(model_of(LSTM))
    for target in ("scan-only", "loop-only", "no-control-flow", "tract", "onnxruntime"):
        assert passes.optimize(model, target=target, verify=False).model == model


ONE_TANH = """
<ir_version: 10, opset_import: ["" : 21]>
cell (float[T,ROWS,3] x, float[1,WIDTH,3] w, float[1,WIDTH,WIDTH] r) => (float[T,1,ROWS,WIDTH] y) {
    y = RNN <hidden_size = WIDTH> (x, w, r)
}
"""


@pytest.mark.parametrize(
    ("width", "rows", "steps", "operator"),
    [
        *((32, "2", "T", "RNN"), (32, "4", "T", "Scan"), (64, "1", "T", "RNN")),
        *((64, "B", "T", "RNN"), (64, "2", "T", "Scan"), (64, "2", "8", "RNN")),
        *((128, "1", "64", "Scan"), (128, "B", "T", "Scan"), (16, "64", "T", "RNN")),
    ],
)
def test_an_rnn_is_a_scan_where_that_is_quicker(
    width: int, rows: str, steps: str, operator: str
) -> None:
    text = changed(ONE_TANH, {"WIDTH": f"{width}", "ROWS": rows, "[T,": f"[{steps},"})
    draw = np.random.default_rng(0)
    weights = {
        "w": draw.standard_normal((1, width, 3)).astype(np.float32),
        "r": draw.standard_normal((1, width, width)).astype(np.float32) / width,
    }
    result = passes.optimize(as_model(text), values=weights, verify=False)
    found = operators(result.model)
    assert [name for name in found if name in ("RNN", "Scan")] == [operator]


def test_an_rnn_with_computed_weights_stays() -> None:
    text = changed(ONE_TANH, {"WIDTH": "128", "ROWS": "4"})
    assert "RNN" in operators(passes.optimize(as_model(text), verify=False).model)


def test_an_rnn_whose_roundings_grow_until_its_states_change_sign() -> None:
    """Which states do so, more of them than a perturbed run shows, proves nothing: no mismatch."""
    text = changed(ONE_TANH, {"[T,": "[32,", "ROWS,3]": "4,32]", "ROWS": "4", "WIDTH,3]": "64,32]"})
    assert_rewrite(text.replace("WIDTH", "64"), pipeline="expand", budget=20)
