"""The steps of losses, run at the old opset and converted."""

from __future__ import annotations

import numpy as np
import pytest
from proving import ops, prove

pytestmark = pytest.mark.sampled

TARGET = {"t": np.array([[0, 1, 2], [3, 3, 1]])}


@pytest.mark.parametrize("kind", ["int64", "int32"])
@pytest.mark.parametrize("weight", ["", "w"])
@pytest.mark.parametrize("ignore", ["", ", ignore_index = 3"])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_negative_log_likelihood(reduction: str, ignore: str, weight: str, kind: str) -> None:
    dims = "2,3" if reduction == "none" else ""
    inputs = f"x, t, {weight}".rstrip(", ")
    graph = f"""(float[2,4,3] x, {kind}[2,3] t, float[4] w) => (float[{dims}] y)
        {{ y = NegativeLogLikelihoodLoss<reduction = "{reduction}"{ignore}>({inputs}) }}"""
    feeds = {"t": TARGET["t"].astype(kind)}
    for opset in (12, 13):
        prove(graph.replace("[]", ""), opset=opset, target=26, feeds=feeds)


@pytest.mark.parametrize("outputs", ["y", "y, p"])
@pytest.mark.parametrize("weight", ["", "w"])
@pytest.mark.parametrize("ignore", ["", ", ignore_index = 3"])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_softmax_cross_entropy(reduction: str, ignore: str, weight: str, outputs: str) -> None:
    dims = "2,3" if reduction == "none" else ""
    inputs = f"x, t, {weight}".rstrip(", ")
    both = f"float[{dims}] y" + (", float[2,4,3] p" if "p" in outputs else "")
    graph = f"""(float[2,4,3] x, int64[2,3] t, float[4] w) => ({both})
        {{ {outputs} = SoftmaxCrossEntropyLoss<reduction = "{reduction}"{ignore}>({inputs}) }}"""
    after = prove(graph.replace("[]", ""), opset=12, target=26, feeds=TARGET)
    assert ops(after) == ["SoftmaxCrossEntropyLoss"]


@pytest.mark.parametrize("target", [11, 9])
@pytest.mark.parametrize("ignore", ["", ", ignore_index = 3"])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("op", ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
def test_losses_down_become_their_bodies(op: str, reduction: str, ignore: str, target: int) -> None:
    dims = "2,3" if reduction == "none" else ""
    graph = f"""(float[2,4,3] x, int64[2,3] t, float[4] w) => (float[{dims}] y)
        {{ y = {op}<reduction = "{reduction}"{ignore}>(x, t, w) }}""".replace("[]", "")
    after = prove(graph, opset=13, target=target, feeds=TARGET, places=["main", "if"], rtol=1e-5)
    assert op not in ops(after)
