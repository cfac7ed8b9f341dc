"""Loops for the tests of raise-loop, and what became of them."""

from __future__ import annotations

from onnx import ModelProto, NodeProto

from passes.ir import scope as scoping
from passes.session import Result
from passes.testing import assert_rewrite


def loop(
    inputs: str,
    outputs: str,
    body: str,
    *,
    carried: str = "",
    fed: str = "",
    collected: str = "",
    before: str = "",
    after: str = "",
    trips: str = "m",
    start: str = '""',
    going: str = "go_out = Identity (go)",
    results: str = "y",
    constants: str = "",
    opset: int = 17,
    ir_version: int = 8,
) -> str:
    """A model with one Loop: `before`, the Loop with its body, `after`; `going` says whether it
    goes on."""
    declared = ", ".join(filter(None, ["int64 i", "bool go", carried]))
    returned = ", ".join(filter(None, ["bool go_out", collected]))
    given = ", ".join(filter(None, [trips, start, fed]))
    fixed = ", ".join(
        filter(
            None,
            [
                "int64[1] zeros = {0}, int64[1] ones = {1}, int64 zero = {0}, int64 one = {1}",
                "int64[1] twos = {2}",
                constants,
            ],
        )
    )
    return f"""
    <ir_version: {ir_version}, opset_import: ["" : {opset}]>
    loops ({inputs}) => ({outputs})
    <{fixed}>
    {{
        {before}
        {results} = Loop ({given}) <body = step ({declared}) => ({returned}) {{
            {going}
            {body}
        }}>
        {after}
    }}
    """


def trips_of(tensor: str, axis: int = 0, *, name: str = "m") -> str:
    """The size of an axis as `m`."""
    picked = {0: "zeros", 1: "ones", 2: "twos"}[axis]
    return f"""
        shape = Shape ({tensor})
        m_1 = Gather (shape, {picked})
        {name} = Squeeze (m_1, zeros)
    """


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


SUM = "h_out = Add (h, x_t)\n y = Tanh (h_out)"
CARRIES = {
    "carried": "float[3] h",
    "fed": "h0",
    "collected": "float[3] h_out, float[3] y",
    "results": "h_end, y_all",
}


def summing(body: str, inputs: str = "float[T,3] x", **more: str) -> str:
    """A running sum of what the body calls x_t."""
    parts = {"before": trips_of("x"), **CARRIES, **more}
    ends = "float[3] h_end, float[N,3] y_all"
    return loop(f"{inputs}, float[3] h0", ends, f"{body}\n{SUM}", **parts)
