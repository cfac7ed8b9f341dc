"""Writes the binary models of this folder from their texts: run this file.

They are what the README's commands run on: a file as an exporter would leave it.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import onnx

HERE = Path(__file__).parent
TEXTS = HERE.parent / "upgrade"
MODELS = {"sum": "sum", "gru": "gru", "lstm": "lstm"}


def main() -> None:
    """Write every model, without the comments of its text."""
    warnings.simplefilter("ignore", UserWarning)  # the text format is experimental
    for name, text in MODELS.items():
        model = onnx.load(TEXTS / f"{text}.before.onnxtxt")
        model.producer_name = "golden_models"
        onnx.save(model, HERE / f"{name}.onnx")


if __name__ == "__main__":
    main()
