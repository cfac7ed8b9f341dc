"""The steps of normalizations above opset 9, run at the old opset and converted."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from calls import calling, prove_call
from proving import EVERYWHERE, converted, drawn, ops, parsed, prove, run

from passes.rule import Refused

pytestmark = pytest.mark.sampled

# -- BatchNormalization --------------------------------------------------------------------

VARIANCE = {"v": np.array([0.5, 1, 2], np.float32)}


def _batch_normalization(
    outputs: str, attributes: str = "epsilon = 0.1", x: str = "2,3,4", kind: str = "float"
) -> str:
    named = outputs.replace(" ", "").split(",")
    given = [f"{kind}[{x if name == 'y' else 3}] {name}" for name in named if name]
    parameters = ", ".join(f"{kind}[3] {name}" for name in ("s", "b", "m", "v"))
    return f"""({kind}[{x}] x, {parameters}) => ({", ".join(given)})
        {{ {outputs} = BatchNormalization<{attributes}>(x, s, b, m, v) }}"""


def _variance(kind: str) -> dict[str, np.ndarray]:
    return {"v": VARIANCE["v"].astype("float64" if kind == "double" else "float32")}


@pytest.mark.parametrize("opset", [9, 14])
@pytest.mark.parametrize("x", ["2,3", "2,3,4", "N,3,2,2", "0,3,4"])
def test_batch_normalization_without_training(x: str, opset: int) -> None:
    graph = _batch_normalization("y", x=x)
    after = prove(graph, opset=opset, target=26, feeds=VARIANCE)
    assert [one.name for one in after.graph.node[0].attribute] == ["epsilon"]


def test_trailing_outputs_that_are_not_named_ask_for_no_training() -> None:
    model = parsed(_batch_normalization("y"), 9)
    model.graph.node[0].output.extend(["", "", "", ""])
    (node,) = converted(model, 26).graph.node
    assert list(node.output) == ["y"]
    assert "training_mode" not in {one.name for one in node.attribute}


@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize("attributes", ["epsilon = 0.1", "momentum = 0.3"])
@pytest.mark.parametrize("x", ["4,3", "2,3,4", "N,3,2,2"])
def test_batch_normalization_in_training(x: str, attributes: str, kind: str) -> None:
    """Naming the outputs asked for training; the saved statistics are no longer outputs."""
    graph = _batch_normalization("y, mean, var, smean, svar", attributes, x, kind)
    places = EVERYWHERE if kind == "float" else ["main"]
    after = prove(graph, opset=9, target=26, feeds=_variance(kind), places=places)
    assert ops(after).count("BatchNormalization") == 2
    prove(graph, opset=7, target=14, feeds=_variance(kind), places=["main"])


def test_saved_statistics_come_out_where_the_running_ones_are_not_finite() -> None:
    feeds = {**VARIANCE, "m": np.array([np.inf, np.nan, 0], np.float32)}
    graph = _batch_normalization("y, mean, var, smean, svar")
    prove(graph, opset=9, target=26, feeds=feeds, places=["main"])


def test_saved_statistics_that_nobody_names_are_not_computed() -> None:
    model = parsed(_batch_normalization("y, mean, var, smean, svar"), 9)
    del model.graph.output[3:]
    model.graph.node[0].output[3:] = ["", ""]
    after = converted(model, 14)
    assert ops(after) == ["BatchNormalization"]
    feeds = {**drawn(after), **VARIANCE}
    expected = run(parsed(_batch_normalization("y, mean, var, smean, svar"), 9), feeds)
    for one, other in zip(expected, run(after, feeds), strict=False):
        np.testing.assert_array_equal(one, other)


def test_a_running_statistic_that_was_not_named_gets_a_name() -> None:
    """Version 14 in training has all three outputs."""
    model = parsed(_batch_normalization("y, mean, var, smean, svar"), 9)
    model.graph.node[0].output[1:] = ["", "var", "", ""]
    (node,) = converted(model, 14).graph.node
    y, mean, var = node.output
    assert (y, var) == ("y", "var")
    assert mean not in {"", "mean"}


@pytest.mark.parametrize("kind", ["float", "double", "float16"])
def test_batch_normalization_14_in_training(kind: str) -> None:
    graph = _batch_normalization("y, mean, var", "training_mode = 1", kind=kind)
    if kind == "float16":  # no kernel in onnxruntime; version 15 says more, and means the same
        assert converted(parsed(graph, 14), 26).graph == parsed(graph, 14).graph
        return
    prove(graph, opset=14, target=26, feeds=_variance(kind))


# -- GroupNormalization --------------------------------------------------------------------


@pytest.fixture
def _deprecated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker rejects GroupNormalization-18, which onnxruntime runs, as deprecated."""
    check = onnx.checker.check_model

    def check_newer(model: onnx.ModelProto, **options: Any) -> None:
        if model.opset_import[0].version != 18:
            check(model, **options)

    monkeypatch.setattr(onnx.checker, "check_model", check_newer)


def _group_normalization(x: str, kind: str = "float", groups: str = "2") -> str:
    return f"""({kind}[{x}] x, {kind}[{groups}] s, {kind}[{groups}] b) => ({kind}[{x}] y)
        {{ y = GroupNormalization<num_groups = 2, epsilon = 0.01>(x, s, b) }}"""


@pytest.mark.usefixtures("_deprecated")
@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize("x", ["3,6,4", "2,4,3,2", "N,4,3"])
def test_group_normalization_scales_each_channel(x: str, kind: str) -> None:
    """Scale and bias of each group are repeated; the precision stays that of x."""
    after = prove(_group_normalization(x, kind), opset=18, target=26)
    once = ["Unsqueeze", "Expand", "Reshape"]
    assert ops(after) == [*once, *once, "GroupNormalization"]
    *_, node = after.graph.node
    stash = [one.i for one in node.attribute if one.name == "stash_type"]
    assert stash == ([] if kind == "float" else [11])


@pytest.mark.usefixtures("_deprecated")
def test_group_normalization_of_float16() -> None:
    after = prove(_group_normalization("3,6,4", "float16"), opset=18, target=26, rtol=1e-2)
    *_, node = after.graph.node
    assert [one.i for one in node.attribute if one.name == "stash_type"] == [10]


@pytest.mark.usefixtures("_deprecated")
@pytest.mark.parametrize("groups", ["2", "G"])
def test_group_normalization_of_unknown_channels(groups: str) -> None:
    """How often to repeat is computed from the shapes."""
    graph = _group_normalization("N,C,L", groups=groups)
    feeds = {
        "x": np.random.default_rng(2).normal(size=(2, 6, 5)).astype(np.float32),
        "s": np.array([1.5, -2], np.float32),
        "b": np.array([10, 20], np.float32),
    }
    after = prove(graph, opset=18, target=26, feeds=feeds)
    assert ops(after)[:4] == ["Shape", "Shape", "Div", "Concat"]


@pytest.mark.usefixtures("_deprecated")
def test_group_normalization_with_a_channel_per_group_stays() -> None:
    assert ops(prove(_group_normalization("3,2,4"), opset=18, target=26)) == ["GroupNormalization"]


@pytest.mark.usefixtures("_deprecated")
def test_the_number_of_groups_may_be_the_callers() -> None:
    model = "(float[3,6,4] x, float[2] s) => (float[3,6,4] y) { y = local.G<n = 2>(x, s) }"
    function = "G <n> (x, s) => (y) { y = GroupNormalization<num_groups: int = @n>(x, s, s) }"
    prove_call(model, function, opset=18, target=26)


def test_group_normalization_of_unknown_type_is_refused() -> None:
    model = calling(
        "(float[3,6,4] x) => (float[3,6,4] y) { y = Relu(x) }",
        "G (x, s) => (y) { y = GroupNormalization<num_groups = 2>(x, s, s) }",
        18,
    )
    with pytest.raises(Refused) as refused:
        converted(model, 21)
    assert refused.value.code == "unknown-type"


# -- identical steps -----------------------------------------------------------------------


@pytest.mark.parametrize("x", ["2,3,4", "N,3,2,5"])
def test_instance_normalization(x: str) -> None:
    prove(
        f"""(float[{x}] x, float[3] s, float[3] b) => (float[{x}] y)
            {{ y = InstanceNormalization<epsilon = 0.1>(x, s, b) }}""",
        opset=7,
        target=26,
    )


@pytest.mark.parametrize("attributes", ["", "<axes = [0, 2]>", "<axes = [1]>"])
def test_mean_variance_normalization(attributes: str) -> None:
    graph = f"""(float[2,3,4,5] x) => (float[2,3,4,5] y)
        {{ y = MeanVarianceNormalization{attributes}(x) }}"""
    prove(graph, opset=9, target=26)


@pytest.mark.parametrize("attributes", ["", "<p = 1>", "<axis = 0>", "<axis = 1, p = 2>"])
def test_lp_normalization(attributes: str) -> None:
    """A row of zeros included."""
    feeds = {"x": np.array([[1, -2, 0.5], [0, 0, 0]], np.float32)}
    graph = f"(float[2,3] x) => (float[2,3] y) {{ y = LpNormalization{attributes}(x) }}"
    prove(graph, opset=7, target=26, feeds=feeds)


@pytest.mark.parametrize(
    "attributes", ["size = 3", "size = 5, alpha = 0.5, beta = 1.5, bias = 2.0"]
)
def test_lrn(attributes: str) -> None:
    graph = f"(float[2,6,3,2] x) => (float[2,6,3,2] y) {{ y = LRN<{attributes}>(x) }}"
    prove(graph, opset=7, target=26)
