"""Writes what other converters make of two small models, wrongly: `generate.py onnx` with onnx
(1.23.2 wrote the file), `generate.py onnxscript` with onnxscript (0.7.2)."""

from __future__ import annotations

import sys
from pathlib import Path

import onnx
from onnx import ModelProto, version_converter

FOLDER = Path(__file__).parent


def by_onnx(model: ModelProto) -> ModelProto:
    """Resize-11 takes the halves of pixels for their places, where Resize-10 takes corners."""
    return version_converter.convert_version(model, 11)


def by_onnxscript(model: ModelProto) -> ModelProto:
    """Below opset 18 it writes another number and leaves the nodes as they are: a Softmax-12 is
    over all axes from its own on, a Softmax-13 over one."""
    from onnxscript import ir
    from onnxscript import version_converter as converter

    made = ir.from_proto(model)
    converter.convert_version(made, 18)
    return ir.to_proto(made)


if __name__ == "__main__":
    name, convert = {"onnx": ("resize", by_onnx), "onnxscript": ("softmax", by_onnxscript)}[
        sys.argv[1]
    ]
    made = convert(onnx.load(FOLDER / f"{name}.before.onnxtxt"))
    onnx.save(made, FOLDER / f"{name}.after.onnxtxt")
