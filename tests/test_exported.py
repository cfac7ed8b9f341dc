"""Models as exporters leave them: upgraded, they look the same and answer the same.

Every model runs in onnxruntime on its stored inputs, before and after an upgrade to the newest
opset that it loads. One of each kind is verified as the command does it; with `--slow`, every
case is, from the oldest opset at which it is stored.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, ValueInfoProto

import passes
from passes.choices import DEFAULT_OPSET
from passes.ir import scope
from passes.testing import assert_rewrite
from passes.types import signature

pytestmark = pytest.mark.sampled

FOLDER = Path(__file__).parent.parent / "golden_models" / "exported"
MODELS = sorted(FOLDER.glob("*/*.onnx"))


def case_of(path: Path) -> str:
    return f"{path.parent.name}/{path.name.split('.')[0]}"


#: Of each case, the model of the oldest opset.
OLDEST = {
    case_of(path): path
    for path in sorted(MODELS, key=lambda one: -int(one.stem.partition(".opset")[2]))
}
#: The newest that onnxruntime loads.
NEWEST = 26
#: Verified in every run; the others with `--slow`.
REPRESENTATIVE = {
    "sklearn/knn_regressor.opset11",
    "sklearn/gaussian_process.opset9",
    "sklearn/scaled_logistic.opset9",
    "torch/cnn.opset9",
    "torch/rnn.opset9",
    "torch/layer_norm.opset9",
    "torch/top.opset9",
    "torch/resize_bilinear.opset9",
    "torch/script_break_early.opset9",
    "torch/script_branch_in_loop.opset9",
    "torch/script_cell.opset11",
    "torch/script_softmax_steps.opset11",
    "torch/operator_scanned_recurrence.opset18",
    "onnxscript/calling.opset15",
    "onnxscript/changed_operators.opset15",
    "onnxscript/break_early.opset15",
    "jax/two_states.opset21",
    "tensorflow/break_early.opset11",
    "tensorflow/keras_gru_masked.opset11",
    "tensorflow/mapped_twice.opset11",
    "tensorflow/nested_whiles.opset9",
    "tensorflow/v1_two_states.opset8",
}
#: Relative and absolute error by dtype: of a rewrite, and of an exporter against its framework.
REWRITTEN = {"float16": (1e-3, 1e-3), "float32": (1e-5, 1e-6), "float64": (1e-12, 1e-12)}
EXPORTED = {"float32": (1e-3, 1e-4), "float64": (1e-5, 1e-5)}
EXACT = {"float16": (0.0, 0.0), "float32": (0.0, 0.0), "float64": (0.0, 0.0)}
#: An older opset writes some operators out.
REGROUPED = {"float16": (1e-3, 1e-3), "float32": (1e-4, 1e-5), "float64": (1e-9, 1e-9)}
#: So many models of an exporter do not go down to an opset: bicubic grids, updates of one place
#: that are added up, sequences below 11, sizes and counts that are computed.
MOST_REFUSED = {
    ("jax", 13): 1,
    ("onnxscript", 13): 0,
    ("sklearn", 13): 0,
    ("tensorflow", 13): 0,
    ("torch", 13): 2,
    ("jax", 9): 1,
    ("onnxscript", 9): 1,
    ("sklearn", 9): 1,
    ("tensorflow", 9): 4,
    ("torch", 9): 48,
}


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def arrays_beside(path: Path, what: str) -> dict[str, np.ndarray] | None:
    """The stored `inputs` or `outputs` of a model, by name."""
    file = data_file(path, what)
    if not file.exists():
        return None
    with np.load(file) as archive:
        return dict(archive)


def data_file(path: Path, what: str) -> Path:
    return path.with_name(f"{path.name.split('.')[0]}.{what}.npz")


def run(model: ModelProto, feeds: dict[str, np.ndarray]) -> dict[str, object]:
    """What onnxruntime computes, by output."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


def assert_close(
    expected: object, actual: object, allowed: dict[str, tuple[float, float]], name: str
) -> None:
    """Equal, floats up to what their dtype allows; lists and maps item by item."""
    if isinstance(expected, list):
        assert isinstance(actual, list), name
        for one, other in zip(expected, actual, strict=True):
            assert_close(one, other, allowed, name)
    elif isinstance(expected, dict):
        assert isinstance(actual, dict), name
        assert list(expected) == list(actual), name
        assert_close(list(expected.values()), list(actual.values()), allowed, name)
    else:
        one, other = np.asarray(expected), np.asarray(actual)
        assert one.shape == other.shape, name
        if one.dtype.kind == "f":
            relative, absolute = allowed[str(one.dtype)]
            np.testing.assert_allclose(other, one, relative, absolute, err_msg=name)
        else:
            np.testing.assert_array_equal(other, one, err_msg=name)


def shape_of(values: list[ValueInfoProto]) -> list[bytes]:
    return [value.SerializeToString(deterministic=True) for value in values]


def accepted(model: ModelProto) -> bool:
    """Whether onnx's checker accepts a model.

    One exporter leaves an output without a shape, one lists the constants of a Scan-8's body among
    its inputs.
    """
    shaped = all(output.type.tensor_type.HasField("shape") for output in tensors(model))
    if not shaped or feeds_constants(model):
        return False
    onnx.checker.check_model(model, full_check=True)
    return True


def feeds_constants(model: ModelProto) -> bool:
    """Whether a Scan-8 has a body that lists constants among its inputs."""
    scans = [node for node in model.graph.node if node.op_type == "Scan" and opset(model) == 8]
    bodies = [body for node in scans for _, body in scope.subgraphs(node)]
    return any(set(scope.input_names(body)) & scope.initializer_names(body) for body in bodies)


def opset(model: ModelProto) -> int:
    (version,) = {entry.version for entry in model.opset_import if entry.domain == ""}
    return version


def tensors(model: ModelProto) -> list[ValueInfoProto]:
    return [output for output in model.graph.output if output.type.HasField("tensor_type")]


@pytest.mark.parametrize("path", MODELS, ids=name_of)
def test_answers_the_same_at_the_newest_opset(path: Path) -> None:
    before = onnx.load(path)
    after = passes.upgrade(before, opset=NEWEST, verify=False).model
    assert opset(after) == NEWEST
    assert accepted(after) == (accepted(before) or feeds_constants(before))
    assert shape_of(signature.inputs(after.graph)) == shape_of(signature.inputs(before.graph))
    assert shape_of(list(after.graph.output)) == shape_of(list(before.graph.output))
    feeds = arrays_beside(path, "inputs")
    assert feeds is not None
    expected, actual = run(before, feeds), run(after, feeds)
    for name, value in expected.items():
        assert_close(value, actual[name], REWRITTEN, name)
    for name, value in (arrays_beside(path, "outputs") or {}).items():
        assert_close(value, actual[name], EXPORTED, name)


def slow_unless_representative(path: Path) -> list[pytest.MarkDecorator]:
    return [] if name_of(path) in REPRESENTATIVE else [pytest.mark.slow]


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=slow_unless_representative(path), id=name_of(path))
        for path in MODELS
        if name_of(path) in REPRESENTATIVE or path == OLDEST[case_of(path)]
    ],
)
def test_is_verified(path: Path) -> None:
    before = onnx.load(path)
    inputs = str(data_file(path, "inputs"))
    if accepted(before):
        target = NEWEST if opset(before) >= DEFAULT_OPSET else None
        assert_rewrite(before, opset=target, inputs=inputs, budget=30)
        return
    result = passes.upgrade(before, inputs=inputs, verify_budget=30)
    assert result.report.checked is not None
    assert result.report.checked.verdict == "verified"


@pytest.mark.slow
@pytest.mark.parametrize(("exporter", "target"), MOST_REFUSED)
def test_goes_down_and_up_again(exporter: str, target: int) -> None:
    """The same answers at an older opset, and again at the model's own."""
    refused = []
    for path in sorted((FOLDER / exporter).glob("*.onnx")):
        before = onnx.load(path)
        if opset(before) <= target:
            continue
        try:
            older = passes.convert(before, opset=target, verify=False).model
        except passes.NotProduced as error:
            refused.append(f"{path.stem}: {error}")
            continue
        again = passes.convert(older, opset=opset(before), verify=False).model
        feeds = arrays_beside(path, "inputs")
        assert feeds is not None
        expected = run(before, feeds)
        for model in (older, again):
            for name, value in run(model, feeds).items():
                assert_close(expected[name], value, REGROUPED, f"{path.stem}: {name}")
    assert len(refused) <= MOST_REFUSED[exporter, target], refused


def test_the_representative_models_are_there() -> None:
    assert {name_of(path) for path in MODELS} >= REPRESENTATIVE


def test_models_tell_nothing_of_where_they_were_made() -> None:
    for path in MODELS:
        assert path.stat().st_size < 20_000
        for word in (b"site-packages", b"/tmp/", b"/home/", b"://"):
            assert word not in path.read_bytes(), path


@pytest.mark.parametrize("path", MODELS, ids=name_of)
def test_whole_numbers_of_32_bits_are_the_same(path: Path) -> None:
    before = onnx.load(path)
    after = passes.cast(before, int32=True, verify=False).model
    assert accepted(after) == (accepted(before) or feeds_constants(before))
    assert shape_of(list(after.graph.input)) == shape_of(list(before.graph.input))
    assert shape_of(list(after.graph.output)) == shape_of(list(before.graph.output))
    feeds = arrays_beside(path, "inputs")
    assert feeds is not None
    expected, actual = run(before, feeds), run(after, feeds)
    for name, value in expected.items():
        assert_close(value, actual[name], EXACT, name)


@pytest.mark.slow
def test_most_models_with_loops_need_no_numbers_of_64_bits() -> None:
    """At least nine in ten have none left where no operator demands them."""
    casts = [passes.cast(path, int32=True, verify=False).report.casts for path in MODELS]
    reasons = [{kept.code for kept in one.kept} for (one,) in filter(None, casts)]
    clean = [codes <= {"type", "signature"} for codes in reasons]
    assert len(clean) > 200
    assert sum(clean) >= 0.9 * len(clean)
