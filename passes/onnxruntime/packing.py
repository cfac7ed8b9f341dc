"""Finds weights that onnxruntime rearranges when it loads a model, and the graphs in which it looks
for them.

It does so for a node that reads an initializer of its own graph, and some operators look into the
graph around theirs, but no further: the same loop takes up to twice as long where its weights are
further out. Measured with onnxruntime 1.31.
"""

from __future__ import annotations

from collections.abc import Mapping

from onnx import GraphProto, NodeProto, TensorProto

from passes.ir import scope as scoping
from passes.ir.external_data import byte_size
from passes.ir.operators import op_of
from passes.operators.cells import RECURRENT

_SMALL = 4096  # bytes; to rearrange less than this gains nothing
#: How many levels further out the weights of an operator are found.
_REACH = {
    "Conv": 0,
    "ConvTranspose": 0,
    "Gemm": 1,
    "MatMul": 1,
    "MatMulInteger": 1,
    "QLinearConv": 0,
    "QLinearMatMul": 1,
    **dict.fromkeys(RECURRENT, 1),
}


def read_too_far(graph: GraphProto, level: int) -> dict[str, int]:
    """The values defined or captured by a graph that are read as weights in it or in its bodies,
    too many levels below a place that lies `level` levels outside of the graph.

    By name, with the byte size from which it matters: onnxruntime packs a Conv only where it finds
    the small bias, too.
    """
    found: dict[str, int] = {}
    for node in graph.node:
        _add(found, _weights(node, level))
        for _, inner in scoping.subgraphs(node):
            deeper = read_too_far(inner, level + 1)
            own = scoping.defined(inner) if deeper else ()
            _add(found, {name: least for name, least in deeper.items() if name not in own})
    return found


def counts(tensor: TensorProto, least: int | None) -> bool:
    """Return whether it makes a difference that onnxruntime finds a constant."""
    return least is not None and byte_size(tensor) > least


def _weights(node: NodeProto, level: int) -> dict[str, int]:
    reach = _REACH.get(op_of(node), level)
    if level <= reach:
        return {}
    return dict.fromkeys(filter(None, node.input[1:]), _SMALL if reach else 0)


def _add(found: dict[str, int], more: Mapping[str, int]) -> None:
    for name, least in more.items():
        found[name] = min(least, found.get(name, least))
