"""The loop models that `optimize` is measured on, with inputs, and as a person would write them."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, numpy_helper

Arrays = Mapping[str, NDArray[np.generic]]
#: Modules of this package, each with `cases(quick)`.
_PARTS = ("suite_cells", "suite_decoding", "suite_maps", "suite_torch")


@dataclass(frozen=True)
class Case:
    """A model, its inputs, and models of the same signature that a person would write.

    `by_hand` is the best known that rounds as the original does; `others` are told without an aim.
    `opset`: what `--opset` says, where the original's is too old for most rules.
    """

    name: str
    original: ModelProto
    feeds: Arrays
    by_hand: ModelProto
    others: Mapping[str, ModelProto] = field(default_factory=dict)
    opset: int | None = None


def cases(quick: bool = False) -> Iterator[Case]:
    """All models; `quick` makes them small."""
    for part in _PARTS:
        yield from importlib.import_module(f"benchmarks.{part}").cases(quick)


def model(text: str, weights: Arrays | None = None, opset: int = 18) -> ModelProto:
    """A model from its graph in ONNX text, with more initializers of the main graph."""
    head = f'<ir_version: 8, opset_import: ["" : {opset}]>'
    made: ModelProto = onnx.parser.parse_model(f"{head} {text}")
    add_weights(made, weights or {})
    return made


def add_weights(made: ModelProto, weights: Arrays) -> None:
    """Add initializers; an input of such a name is none any more."""
    kept = [one for one in made.graph.input if one.name not in weights]
    del made.graph.input[:]
    made.graph.input.extend(kept)
    for name, value in weights.items():
        made.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))


def drawn(seed: int, **shapes: Sequence[int]) -> dict[str, NDArray[np.generic]]:
    """Moderate values; matrices scaled so that a recurrence stays moderate."""
    draw = np.random.default_rng(seed)
    values = {name: draw.standard_normal(shape) for name, shape in shapes.items()}
    scaled = {
        name: value / np.sqrt(value.shape[0]) if name[:1].isupper() else value
        for name, value in values.items()
    }
    return {name: value.astype(np.float32) for name, value in scaled.items()}
