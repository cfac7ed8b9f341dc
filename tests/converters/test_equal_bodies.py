"""Function bodies that are equal but for names are inferred once; each is what it is alone."""

from __future__ import annotations

import pytest
from onnx import ModelProto, parser

import passes
from passes.converters.writing import expansion

#: Inputs and a node each; the second is like the first, the others differ in a type, in the value
#: of an attribute, in that an input comes twice, and in a size that is not known.
NODES = {
    "a": ("float[4,6] x{0}, int64[2] s{0}", "CenterCropPad (x{0}, s{0})"),
    "b": ("float[4,6] x{0}, int64[2] s{0}", "CenterCropPad (x{0}, s{0})"),
    "c": ("float16[4,6] x{0}, int64[2] s{0}", "CenterCropPad (x{0}, s{0})"),
    "d": ("float[4,6] x{0}, int64[1] s{0}", "CenterCropPad <axes = [1]> (x{0}, s{0})"),
    "e": ("float[4,N] x{0}, int64[2] s{0}", "CenterCropPad (x{0}, s{0})"),
    "f": ("int64[2] x{0}", "CenterCropPad <axes = [0]> (x{0}, x{0})"),
    "g": ("float[4,6] x{0}", "Gelu (x{0})"),
    "h": ("float[4,6] x{0}", "Gelu (x{0})"),
    "i": ("float[4,6] x{0}", 'Gelu <approximate = "tanh"> (x{0})'),
    "j": ("double[4,6] x{0}", "Gelu (x{0})"),
}


def model(*names: str) -> ModelProto:
    inputs = ", ".join(NODES[name][0].format(name) for name in names)
    kinds = {"c": "float16", "f": "int64", "j": "double"}
    outputs = ", ".join(f"{kinds.get(name, 'float')}[K,L] y{name}" for name in names)
    nodes = " ".join(f"y{name} = {NODES[name][1].format(name)}" for name in names)
    return parser.parse_model(
        f"""
        <ir_version: 9, opset_import: ["" : 20]> g ({inputs}) => ({outputs}) {{ {nodes} }}
    """.replace("int64[K,L] yf", "int64[K] yf")
    )


def ops(converted: ModelProto) -> list[str]:
    return [node.op_type for node in converted.graph.node]


def test_bodies_that_are_alike_are_inferred_once(monkeypatch: pytest.MonkeyPatch) -> None:
    inferred = []
    monkeypatch.setattr(
        expansion,
        "infer_shapes",
        lambda body, infer=expansion.infer_shapes: (inferred.append(body), infer(body))[1],
    )
    converted = passes.convert(model(*NODES), opset=13, verify=False).model
    assert len(inferred) == len(NODES) - 2
    alone = [passes.convert(model(name), opset=13, verify=False).model for name in NODES]
    assert ops(converted) == [op for one in alone for op in ops(one)]


def test_they_mean_what_they_meant() -> None:
    checked = passes.convert(model("a", "b", "d", "g", "h", "i"), opset=13).report.checked
    assert checked is not None
    assert checked.verdict == "verified"
