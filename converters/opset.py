"""The rule `opset`: a node of the standard domain, in the words of another opset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy.typing as npt
from onnx import NodeProto, defs, helper, numpy_helper

from passes.converters import element_types, table
from passes.converters.older import in_older_version, newer_attributes
from passes.converters.steps import Adapter, Expanded, Identical, IdenticalDown, Refusal
from passes.converters.writing.conversion import Conversion
from passes.converters.writing.expansion import expand
from passes.converters.writing.made import Made
from passes.ir import scope as scoping
from passes.ir.operators import is_onnx_domain, op_of
from passes.ir.protos import replace_all
from passes.rule import (
    ByOp,
    Edit,
    FixedInput,
    NothingToDo,
    Site,
    Slot,
    Template,
    Templated,
    register,
)


def template_of(
    node: NodeProto, nodes: list[NodeProto], made: Made, note: str, exact: bool
) -> Template | None:
    """The template of a conversion into `nodes`, where it rests on nothing but the node itself and
    constants that it reads."""
    names = [name for name in (*node.input, *node.output) if name]
    if made.reads_model or made.leading or len(nodes) != 1 or len(set(names)) != len(names):
        return None
    (new,) = nodes
    outputs, drops = len(new.output), len(new.output) < len(node.output)
    if list(new.output) != list(node.output[:outputs]):
        return None
    places = {name: position for position, name in enumerate(node.input) if name}
    known: dict[str, int | str | FixedInput] = {"": "", **made.fixed, **places}
    if not known.keys() >= set(new.input):
        return None
    inputs = tuple(known[name] for name in new.input)
    attributes = tuple(new.attribute)
    fixed = tuple(sorted(places[name] for name in made.fixed_inputs))
    return Template(
        op_of(new), attributes, len(node.input), inputs, outputs, drops, note, exact, fixed
    )


def _of_op(op: str, opset: int, target: int) -> bool | None:
    """Return whether the nodes of an op have a step to take that may change them; None where that
    depends on their attributes."""
    if target == opset or "::" in op:
        return False
    if target > opset or table.changes(op, opset, target):
        return table.changes(op, opset, target)
    newer = _newer_attributes(op, opset, target)
    return True if newer is None else None if newer else False


def _closely(node: NodeProto, opset: int, target: int) -> bool:
    newer = _newer_attributes(op_of(node), opset, target) or ()
    return any(one.name in newer for one in node.attribute)


#: Considers a node that has a step to take that may change it; a look-up by its op.
considers = ByOp(_of_op, _closely)


@cache
def _newer_attributes(op: str, opset: int, target: int) -> frozenset[str] | None:
    """The attributes that tell whether a node may go down as it is, None where more does."""
    found: frozenset[str] = frozenset()
    for step in table.steps_down(op, opset, target):
        newer = newer_attributes(op, step.version)
        if newer is None or (isinstance(step, IdenticalDown) and step.unless):
            return None
        found |= newer
    return found


@register("opset", considers=considers, converts=True)
def rewrite(site: Site) -> Edit:
    """Bring a node to the target opset, one version of its op after the other.

    Before (opset 8):

        y = Upsample <scales = [1.0, 1.0, 2.0, 2.0]> (x)

    After (opset 9):

        y = Upsample (x, scales)

    On the way down inputs become attributes again, if they are constants, and an
    op that the target does not have becomes the function body of its document.

    Refuses:
    - `unknown-op`: onnx knows no such op of the standard domain at the model's opset
    - `no-step`: the step to a version of the op is not known here
    - `no-equivalent`: the version at the target cannot express the node
    - `unknown-type`: the step depends on an element type that inference does not find
    - `unknown-rank`: the step depends on a rank or shape that inference does not find
    - `not-constant`: the step depends on the value of an input that is no constant
    - `attribute-reference`: the step depends on an attribute that callers of the function choose
    - `invalid-node`: the node is not valid in the opset it is written in
    """
    node = site.node
    if _calls_function(site):
        return Edit((node,), note="a call of a model-local function")
    steps = _Steps(Conversion(site, site.opset))
    nodes = list(steps.take(node, site.opset))
    if site.target < site.opset and len(nodes) == 1 and nodes[0] is node:
        raise NothingToDo
    made = steps.start.made
    note = f"{op_of(node)}-{_version(op_of(node), site.opset)} to opset {site.target}"
    return Templated(
        nodes=(*made.leading, *nodes),
        initializers=tuple(made.initializers.values()),
        note=note,
        exact=steps.exact,
        context=tuple(_constant(name, value) for name, value in made.folded.items()),
        template=template_of(node, nodes, made, note, steps.exact) if _all_fit(site) else None,
    )


@dataclass
class _Steps:
    """The steps of one node and of what it becomes."""

    start: Conversion
    exact: bool = field(default=True)

    def take(self, node: NodeProto, opset: int) -> Iterator[NodeProto]:
        """Yield the nodes of the target opset that compute what `node` computes in `opset`."""
        if self.start.made.expanded.intersection(node.output[:1]):
            self._take_bodies(node, opset)
        if opset > self.start.site.target:
            yield from self._down(node, opset)
        else:
            yield from self._up(node, opset)

    def _take_bodies(self, node: NodeProto, opset: int) -> None:
        for _, graph in scoping.subgraphs(node):
            nodes = [made for inner in graph.node for made in self.take(inner, opset)]
            replace_all(graph.node, nodes)

    def _down(self, node: NodeProto, opset: int) -> Iterator[NodeProto]:
        for step in table.steps_down(op_of(node), opset, self.start.site.target):
            ctx = Conversion(self.start.site, step.version - 1, self.start.made)
            match step:
                case IdenticalDown():
                    objection = step.unless(node, ctx) if step.unless else ""
                    if objection:
                        raise ctx.refused("no-equivalent", objection)
                    node = in_older_version(node, ctx, step.version)
                    continue
                case Adapter():
                    self.exact &= step.exact
                    nodes = _written(step, node, ctx)
                    if len(nodes) == 1 and op_of(nodes[0]) == op_of(node):
                        node = in_older_version(nodes[0], ctx, step.version)
                        continue
                case Expanded():
                    self.exact = False
                    nodes = expand(node, ctx, step.version)
                case Refusal():
                    raise ctx.refused(step.code, step.sentence)
            for made in nodes:
                if op_of(made) == op_of(node) and ctx.made.version_of(made) in (0, ctx.version):
                    made = in_older_version(made, ctx, step.version)
                yield from self.take(made, ctx.made.version_of(made) or ctx.version)
            return
        yield node

    def _up(self, node: NodeProto, opset: int) -> Iterator[NodeProto]:
        for step in table.steps(op_of(node), opset, self.start.site.target):
            ctx = Conversion(self.start.site, step.version, self.start.made)
            match step:
                case Identical():
                    continue
                case Adapter():
                    self.exact &= step.exact
                    for made in _written(step, node, ctx):
                        yield from self.take(made, max(step.version, ctx.made.version_of(made)))
                    return
                case Refusal():
                    raise ctx.refused(step.code, step.sentence)
            raise ctx.refused("no-step", f"{op_of(node)} is left to the rule {step.rule!r}")
        yield node


def _written(step: Adapter, node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Return the nodes that the adapter writes, followed by those that it returns."""
    last = step.adapt(node, ctx)
    return [*ctx.nodes, *last]


def _constant(name: str, value: npt.NDArray[Any]) -> NodeProto:
    """The node that gives a value under a name."""
    tensor = numpy_helper.from_array(value)
    return helper.make_node("Constant", [], [name], value=tensor)


_FIT: Slot[bool] = Slot()


def _all_fit(site: Site) -> bool:
    """Return whether every op takes the element types of the model at the target, too."""
    return site.memory.once(_FIT, lambda: element_types.closer(site.model, site.target) is None)


@cache
def _version(op: str, opset: int) -> int:
    version: int = defs.get_schema(op, opset).since_version
    return version


def _calls_function(site: Site) -> bool:
    """Return whether the model defines the op itself, under a name of the standard domain."""
    node = site.node
    return any(
        function.name == op_of(node)
        and is_onnx_domain(function.domain)
        and function.overload == node.overload
        for function in site.model.proto.functions
    )
