"""The nesting depth of bodies: no reader takes a file that is nested more deeply.

protobuf reads 100 levels of messages. A body is three of them (node, attribute, graph), and what
it declares about its values a few more: 31 nested bodies, or 30 around sequences.
"""

from __future__ import annotations

from onnx import GraphProto, NodeProto, TypeProto

from passes.ir import scope as scoping
from passes.ir.model import DEEPEST
from passes.rule import Edit, Refused, Site

MOST = 99  # a model itself is on level 0
_BODY = 3
_DECLARED = 1  # what declares a value holds its type
_TENSOR = 3  # in a type: the tensor, its shape, a dim


def fitting_depth(site: Site, edit: Edit) -> Edit:
    """An Edit that can be read back from a file, where it is nested as deep as its site.

    Raises:
        Refused: `too-deep`.
    """
    bodies = sum(1 for _ in site.scope.chain()) - 1
    depth = max(map(_depth_of_node, edit.nodes), default=0)
    if 1 + _BODY * bodies + depth > MOST:
        raise too_deep(site)
    return edit


def too_deep(site: Site) -> Refused:
    """The refusal of what would be nested too deeply."""
    return site.refused("too-deep", f"bodies would be nested too deeply for a file: {DEEPEST}")


def _depth_of_node(node: NodeProto) -> int:
    """The levels of messages that a node is, including itself, as far as it holds bodies."""
    graphs = [graph for _, graph in scoping.subgraphs(node)]
    return _BODY + max(map(depth_below, graphs)) if graphs else 1


def depth_below(graph: GraphProto) -> int:
    """The levels below a graph."""
    values = (*graph.input, *graph.output, *graph.value_info)
    declared = max((_DECLARED + _depth_of_type(value.type) for value in values), default=0)
    return max([declared, *map(_depth_of_node, graph.node)])


def _depth_of_type(kind: TypeProto) -> int:
    """The levels of messages that a type is, including itself."""
    which = kind.WhichOneof("value")
    if which in ("sequence_type", "optional_type"):
        return 2 + _depth_of_type(getattr(kind, which).elem_type)
    return 1 + _TENSOR
