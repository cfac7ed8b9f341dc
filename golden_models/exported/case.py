"""What the exporter modules hand to generate.py: one model at one opset, and a set of test data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto

Arrays = Sequence[np.ndarray]


@dataclass(frozen=True)
class Case:
    """A model to export, `export` at each of `opsets`.

    `inputs` are in the order of the model's inputs; `outputs` are what the framework itself
    computes from them, None where the exporter is known to approximate. `rejected` are the opsets
    at which onnx's checker objects: exporters have left an output without its shape, and list the
    constants of a body among its inputs.
    """

    name: str
    export: Callable[[int], ModelProto]
    inputs: Arrays
    outputs: Arrays | None = None
    opsets: Sequence[int] = (9, 11, 13, 15, 18)
    rejected: Sequence[int] = ()


def draw(seed: int, *shape: int) -> np.ndarray:
    """Moderate float32 values, always the same ones."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)
