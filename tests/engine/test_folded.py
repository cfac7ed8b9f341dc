"""What a conversion read as fixed is dropped where nothing else reads it, and blocks nothing."""

from __future__ import annotations

import pytest
from onnx import parser

import passes
from tests.written import changed

SQUEEZED = """
    <ir_version: 8, opset_import: ["" : 13]>
    g (float[2,1,3] x) => ({outputs}) <bool[3] chosen = {{0, 1, 0}}, int64[1] flat = {{-1}}> {{
        found = NonZero (chosen)
        axes = Reshape (found, flat)
        {nodes}
    }}"""


def test_nothing_is_left_of_it() -> None:
    text = SQUEEZED.format(outputs="float[2,3] y", nodes="y = Squeeze (x, axes)")
    result = passes.convert(parser.parse_model(text), opset=8)
    assert result.report.checked.verdict == "verified"
    assert [node.op_type for node in result.model.graph.node] == ["Squeeze"]
    assert not result.model.graph.initializer


def test_a_body_that_alone_read_it() -> None:
    loop = """trips = Constant <value_int = 2> ()
        y = Loop (trips, "", x) <body = b (int64 i, bool go, float[2,1,3] v)
            => (bool on, float[2,1,3] w) {
                on = Identity (go)
                d = Squeeze (v, axes)
                w = Unsqueeze (d, axes)
            }>"""
    text = SQUEEZED.format(outputs="float[2,1,3] y", nodes=loop)
    result = passes.convert(parser.parse_model(text), opset=8)
    left = {node.op_type for node in result.model.graph.node}
    assert left.isdisjoint({"NonZero", "Reshape"})


@pytest.mark.parametrize("reader", ["z = Add (axes, flat)", "z = Squeeze (axes, flat)"])
def test_what_is_read_otherwise_stays_and_is_refused(reader: str) -> None:
    nodes = f"y = Squeeze (x, axes) {reader}"
    text = SQUEEZED.format(outputs="float[2,3] y, int64[A] z", nodes=nodes)
    text = text if "Add" in reader else changed(text, {"int64[A] z": "int64 z"})
    with pytest.raises(passes.NotProduced, match="before opset 9 no op tells where"):
        passes.convert(parser.parse_model(text), opset=8)


def test_what_was_unread_before_is_no_business_of_the_conversion() -> None:
    text = SQUEEZED.format(outputs="float[2,1,3] y", nodes="y = Neg (x)")
    with pytest.raises(passes.NotProduced, match="before opset 9 no op tells where"):
        passes.convert(parser.parse_model(text), opset=8)


@pytest.mark.parametrize("slice_", ["", "<start = 0>", "<start = -2, end = 5>"])
def test_known_sizes_are_fixed_too(slice_: str) -> None:
    text = f"""
        <ir_version: 8, opset_import: ["" : 15]>
        g (float[2,3] x, float[2,1] y) => (float[2,3] z) {{
            s = Shape {slice_} (x)
            z = Expand (y, s)
        }}"""
    result = passes.convert(parser.parse_model(text), opset=7)
    assert result.report.checked.verdict == "verified"
    assert [node.op_type for node in result.model.graph.node] == ["Tile"]


def test_what_a_loop_carries_may_change_its_size() -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 13]>
        g (int64 n, float[2,3] x, float[2,1] y) => (float[2,3] z) {
            z = Loop (n, "", x) <body = b (int64 i, bool go, float[2,3] v)
                => (bool on, float[2,3] w) {
                    on = Identity (go)
                    s = Shape (v)
                    w = Expand (y, s)
                }>
        }"""
    with pytest.raises(passes.NotProduced, match="Expand takes the shape from 's'"):
        passes.convert(parser.parse_model(text), opset=7)
