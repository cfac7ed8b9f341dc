"""Iterations that are known to fail before the model runs: no runtime loads a model with them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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

from passes.analysis.integers.exactness import Array, may_be_exact
from passes.ir import scope as scoping
from passes.ir.constant_nodes import constant_tensor
from passes.ir.operators import is_onnx_domain, op_of
from passes.rule import Edit, Refused, Site
from passes.types.shape_inference import objection

_SMALL = 1 << 10  # elements; inference needs no constant larger than a shape
_FARTHEST = 50  # nodes that a divisor is followed back through
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
    zero = _Divisors(site, _values(constants), {}).zero_in(nodes)
    return zero or objection(model)


@dataclass(frozen=True)
class _Divisors:
    """What nodes divide by, followed back through the nodes that compute it from constants, as a
    runtime does that looks at divisors when it loads a model.
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
        """What `name` is, which `behind` nodes are computed from."""
        if name not in self.fixed and behind < _FARTHEST:
            self.fixed[name] = self._computed(name, behind)
        return self.fixed.get(name)

    def _computed(self, name: str, behind: int) -> Array | None:
        fixed = self.site.constant(name)
        node = self.producers.get(name) or self._outside(name)
        if fixed is not None or node is None:
            return fixed
        constant = constant_tensor(node)
        if constant is not None:
            return numpy_helper.to_array(constant) if _is_small(constant) else None
        if not may_be_exact(node):
            return None
        read = {one: self.value(one, behind + 1) for one in node.input if one}
        inputs = {one: value for one, value in read.items() if value is not None}
        if not inputs or len(inputs) < len(read):
            return None
        from passes.analysis.integers import evaluation  # loads the reference executor

        try:
            outputs = evaluation.evaluated(node, inputs, self.site.target, _SMALL)
        except (evaluation.ModelFailed, evaluation.TooLarge):
            return None
        written = [one for one in node.output if one]
        return None if outputs is None else dict(zip(written, outputs, strict=True))[name]

    def _outside(self, name: str) -> NodeProto | None:
        for at in self.site.scope.chain():
            if self.site.model.defines(at.owner, name):
                return self.site.model.producer(at.owner, name)
        return None


def _values(constants: Iterable[TensorProto]) -> dict[str, Array | None]:
    return {one.name: numpy_helper.to_array(one) for one in constants if _is_small(one)}


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
