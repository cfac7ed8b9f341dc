"""Iterations that are known to fail before the model runs: no runtime loads a model with them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from onnx import (
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)

from passes import scope as scoping
from passes.constant_nodes import constant_tensor
from passes.operators import is_onnx_domain, op_of
from passes.rule import Edit, Refused, Site
from passes.shape_inference import objection

_SMALL = 1 << 10  # elements; inference needs no constant larger than a shape
_IR = 8  # inference asks for no more


def refuse_known_failure(site: Site, edit: Edit) -> Edit:
    """The Edit, unless a runtime refuses to load what it writes out, though not the loop.

    In the body a size or a number is open that is known where an iteration stands alone: sizes
    that do not fit, or a divisor that is 0. Be it in a branch that is not taken there.

    Raises:
        Refused: `iteration-fails`.
    """
    why = _objection(site, edit.nodes, edit.initializers)
    if why and not _objection(site, [site.node], ()):
        sentence = f"an iteration cannot run on what is known where it stands: {why}"
        raise Refused("iteration-fails", sentence, [site.path])
    return edit


def _objection(site: Site, nodes: Sequence[NodeProto], constants: Sequence[TensorProto]) -> str:
    (*_, top) = site.scope.chain()
    imports = top.owner if isinstance(top.owner, FunctionProto) else site.model.proto
    others = [one for one in imports.opset_import if not is_onnx_domain(one.domain)]
    model = ModelProto(ir_version=_IR, opset_import=[helper.make_opsetid("", site.target)])
    model.opset_import.extend(others)
    model.functions.extend(site.model.proto.functions)
    small = {one.name: one for one in constants if _is_small(one)}
    graph = model.graph
    graph.name = "iterations"
    graph.node.extend(nodes)
    made = {name for node in nodes for name in node.output}
    for name in sorted(scoping.all_reads(nodes) - made):
        _declare(site, graph, name, {one.name: one for one in constants}, small)
    for node in graph.node:
        _hand_down(node, small)
    return _division_by_zero(graph) or objection(model)


def _division_by_zero(graph: GraphProto) -> str:
    """The first division of integers by a constant that is 0; empty where there is none."""
    fixed = {one.name: one for one in graph.initializer}
    for node in graph.node:
        constant = constant_tensor(node)
        if constant is not None:
            fixed[node.output[0]] = constant
        if op_of(node) in ("Div", "Mod"):
            divisor = fixed.get(node.input[1])
            if divisor is not None and _has_zero(divisor):
                division = f"{op_of(node)} {list(node.output)}"
                return f"{division} divides by {node.input[1]!r}, which is 0"
        for _, inner in scoping.subgraphs(node):
            found = _division_by_zero(inner)
            if found:
                return found
    return ""


def _has_zero(divisor: TensorProto) -> bool:
    if not _is_small(divisor):
        return False
    value = numpy_helper.to_array(divisor)
    return value.dtype.kind in "iu" and not value.all()


def _declare(
    site: Site,
    graph: GraphProto,
    name: str,
    constants: dict[str, TensorProto],
    small: dict[str, TensorProto],
) -> None:
    """Let a name mean what it does around the nodes; its elements only where they are few."""
    fixed = site.constant(name) if name not in constants else None
    if fixed is not None and fixed.size <= _SMALL:
        small[name] = numpy_helper.from_array(fixed, name)
    if name in small:
        graph.initializer.append(small[name])
    elif name in constants:
        one = constants[name]
        graph.input.append(helper.make_tensor_value_info(name, one.data_type, list(one.dims)))
    else:
        value = ValueInfoProto(name=name)
        known = site.type_of(name)
        if known is not None:
            value.type.CopyFrom(known)
        graph.input.append(value)


def _hand_down(node: NodeProto, small: dict[str, TensorProto]) -> None:
    """Let the bodies of a node see constants, as runtimes do and onnx's inference does not."""
    for _, graph in scoping.subgraphs(node) if scoping.holds_graphs(node) else ():
        seen = [small[name] for name in scoping.captures(graph) if name in small]
        for inner in graph.node:
            _hand_down(inner, small)
        graph.initializer.extend(seen)


def _is_small(tensor: TensorProto) -> bool:
    external = tensor.data_location == TensorProto.EXTERNAL
    return not external and math.prod(tensor.dims) <= _SMALL
