"""Loops for the tests of raise-loop, and their outcomes."""

from __future__ import annotations

from onnx import ModelProto, NodeProto

from passes.ir import scope as scoping
from passes.session import Result
from passes.testing import assert_rewrite

#: A running sum of the rows of `x`, collected by way of Tanh.
SUMMING = """
<ir_version: 8, opset_import: ["" : 17]>
loops (float[T,3] x, float[3] h0) => (float[3] h_end, float[N,3] y_all)
<int64[1] zeros = {0}, int64[1] ones = {1}, int64[1] twos = {2}, int64 zero = {0}, int64 one = {1}>
{
    shape = Shape (x)
    m_1 = Gather (shape, zeros)
    m = Squeeze (m_1, zeros)
    h_end, y_all = Loop (m, "", h0) <body = step (int64 i, bool go, float[3] h)
        => (bool go_out, float[3] h_out, float[3] y) {
        go_out = Identity (go)
        x_t = Gather (x, i)
        h_out = Add (h, x_t)
        y = Tanh (h_out)
    }>
}
"""
#: The same of the first `m` rows.
SUMMING_M = """
<ir_version: 8, opset_import: ["" : 17]>
loops (float[T,3] x, int64 m, float[3] h0) => (float[3] h_end, float[N,3] y_all)
<int64[1] zeros = {0}, int64[1] ones = {1}, int64[1] twos = {2}, int64 zero = {0}, int64 one = {1}>
{
    h_end, y_all = Loop (m, "", h0) <body = step (int64 i, bool go, float[3] h)
        => (bool go_out, float[3] h_out, float[3] y) {
        go_out = Identity (go)
        x_t = Gather (x, i)
        h_out = Add (h, x_t)
        y = Tanh (h_out)
    }>
}
"""


def read(nodes: str) -> dict[str, str]:
    """A change: other nodes that compute `x_t`."""
    return {"x_t = Gather (x, i)": nodes}


def with_inputs(inputs: str) -> dict[str, str]:
    """A change: more inputs of the model."""
    return {"float[T,3] x": f"float[T,3] x, {inputs}"}


def with_constants(constants: str) -> dict[str, str]:
    """A change: more initializers."""
    return {"int64 one = {1}": f"int64 one = {{1}}, {constants}"}


def with_trips(nodes: str) -> dict[str, str]:
    """A change of `SUMMING`: nodes that compute `m` of `size`, the number of rows."""
    return {"m = Squeeze (m_1, zeros)": f"size = Squeeze (m_1, zeros)\n    {nodes}"}


def with_fixed_trips(m: int, rows: str = "5") -> dict[str, str]:
    """A change of `SUMMING_M`: a fixed trip count, and another number of rows."""
    return {"float[T,3] x, int64 m": f"float[{rows},3] x"} | with_constants(f"int64 m = {{{m}}}")


def raised(model: str, **options: str) -> Result:
    """Raise a model, verified, and see that no Loop is left."""
    result = assert_rewrite(model, pipeline="raise", options=options)
    assert result.report.refusals == [], result.report.to_text()
    assert not nodes(result.model, "Loop")
    return result


def nodes(model: ModelProto, op_type: str) -> list[NodeProto]:
    """All nodes of an operator, at every depth."""
    return [
        node
        for _, owner in scoping.owners(model)
        for graph in scoping.graphs_below(owner)
        for node in graph.node
        if node.op_type == op_type
    ]


def scan_of(result: Result) -> NodeProto:
    (scan,) = nodes(result.model, "Scan")
    return scan


def ints(node: NodeProto, name: str) -> list[int]:
    return next(
        (list(attribute.ints) for attribute in node.attribute if attribute.name == name), [0]
    )
