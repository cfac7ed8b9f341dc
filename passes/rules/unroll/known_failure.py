"""Iterations that are known to fail before the model runs: no runtime loads them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from onnx import (
    ModelProto,
    NodeProto,
    TensorProto,
    helper,
    numpy_helper,
)

from passes.ir import scope as scoping
from passes.ir.boundary import close
from passes.ir.constants import constant_tensor
from passes.ir.operators import is_onnx_domain, op_of
from passes.ir.places import imports_of
from passes.operators.exactness import Array
from passes.rule import Edit, Site
from passes.types.shape_inference import objection
from passes.types.value_types import tensor_type

_SMALL = 1 << 10  # elements; inference needs no constant larger than a shape
_FARTHEST = 50  # nodes that a divisor is followed back through
_IR = 8  # inference needs no newer one


def refuse_known_failure(site: Site, edit: Edit) -> Edit:
    """The Edit, unless a runtime refuses to load what it writes out, though not the loop.

    Sizes and numbers that are unknown in the body may be known where an iteration is written out:
    sizes that do not fit, or a divisor that is 0, even in a branch that is not taken.

    Raises:
        Refused: `iteration-fails`.
    """
    why = _objection(site, edit.nodes, edit.initializers)
    if why and not _objection(site, [site.node], ()):
        sentence = f"an iteration cannot run with the sizes and constants known there: {why}"
        raise site.refused("iteration-fails", sentence)
    return edit


def _objection(site: Site, nodes: Sequence[NodeProto], constants: Sequence[TensorProto]) -> str:
    imports = imports_of(site.model.proto, site.scope.outermost.owner)
    others = [entry for entry in imports if not is_onnx_domain(entry.domain)]
    model = ModelProto(ir_version=_IR, opset_import=[helper.make_opsetid("", site.target)])
    model.opset_import.extend(others)
    model.functions.extend(site.model.proto.functions)
    graph = model.graph
    graph.name = "iterations"
    graph.node.extend(nodes)
    own = {
        one.name: one if _is_small(one) else tensor_type(one.data_type, tuple(one.dims))
        for one in constants
    }
    outer = {name: own.get(name) or site.outer(name, _SMALL) for name in scoping.captures(graph)}
    close(graph, outer)
    small = {one.name: one for one in (*constants, *graph.initializer) if _is_small(one)}
    for node in graph.node:
        _hand_down(node, small)
    zero = _Divisors(site, _values(constants), {}).zero_in(nodes)
    return zero or objection(model)


@dataclass(frozen=True)
class _Divisors:
    """Divisors, followed back through the nodes that compute them from constants, as a runtime
    does when it loads a model.
    """

    site: Site
    fixed: dict[str, Array | None]
    producers: dict[str, NodeProto]

    def zero_in(self, nodes: Sequence[NodeProto]) -> str:
        """The first division of integers by a constant that has a 0; empty where there is none."""
        self.producers.update({name: node for node in nodes for name in node.output})
        for node in nodes:
            if op_of(node) in ("Div", "Mod"):
                divisor = self.value(node.input[1])
                if divisor is not None and divisor.dtype.kind in "iu" and not divisor.all():
                    division = f"{op_of(node)} {list(node.output)}"
                    return f"{division} divides by {node.input[1]!r}, which is 0"
            for _, inner in scoping.subgraphs(node):
                self.fixed.update(_values(inner.initializer))
                found = self.zero_in(inner.node)
                if found:
                    return found
        return ""

    def value(self, name: str, behind: int = 0) -> Array | None:
        """Return the value of `name` if it is constant; `behind` nodes were followed to reach
        it."""
        if name not in self.fixed and behind < _FARTHEST:
            self.fixed[name] = self._computed(name, behind)
        return self.fixed.get(name)

    def _computed(self, name: str, behind: int) -> Array | None:
        fixed = self.site.constant(name)
        node = self.producers.get(name) or self.site.model.visible_producer(self.site.scope, name)
        if fixed is not None or node is None:
            return fixed
        constant = constant_tensor(node)
        if constant is not None:
            return numpy_helper.to_array(constant) if _is_small(constant) else None
        from passes.analysis.integers import evaluation  # loads the reference executor

        return evaluation.known_output(
            name, node, lambda operand: self.value(operand, behind + 1), self.site.target, _SMALL
        )


def _values(constants: Iterable[TensorProto]) -> dict[str, Array | None]:
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in constants if _is_small(tensor)}


def _hand_down(node: NodeProto, small: dict[str, TensorProto]) -> None:
    """Give the bodies of a node the constants that they capture: onnx's inference does not."""
    for _, graph in scoping.subgraphs(node) if scoping.holds_graphs(node) else ():
        seen = [small[name] for name in scoping.captures(graph) if name in small]
        for inner in graph.node:
            _hand_down(inner, small)
        graph.initializer.extend(seen)


def _is_small(tensor: TensorProto) -> bool:
    external = tensor.data_location == TensorProto.EXTERNAL
    return not external and math.prod(tensor.dims) <= _SMALL
