"""The rule `opset`: a node of the standard domain, in the words of a newer opset."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache

from onnx import NodeProto, defs

from converters import table
from converters.conversion import Conversion
from converters.repeats import template_of
from converters.steps import Adapter, Identical, Refusal
from passes.ir.operators import is_onnx_domain, op_of
from passes.rule import Edit, Site, register


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Whether a node has a step to take that changes it; a look-up by its op."""
    return is_onnx_domain(node.domain) and table.changes(op_of(node), opset, target)


@register("opset", considers=considers)
def rewrite(site: Site) -> Edit:
    """Bring a node to the target opset, one version of its op after the other.

    Before (opset 8):

        y = Upsample <scales = [1.0, 1.0, 2.0, 2.0]> (x)

    After (opset 9):

        y = Upsample (x, scales)

    Refuses:
    - `unknown-op`: onnx knows no such op of the standard domain at the model's opset
    - `no-step`: the step to a version of the op is not known here
    - `no-equivalent`: the newer version cannot say what the node says
    - `unknown-type`: the step depends on an element type that inference does not find
    - `unknown-rank`: the step depends on a rank or shape that inference does not find
    - `not-constant`: the step depends on the value of an input that is not fixed
    - `attribute-reference`: the step depends on an attribute that callers of the function choose
    - `invalid-node`: the node is not valid in the opset it is written in
    """
    node = site.node
    if _calls_function(site):
        return Edit((node,), note="a call of a model-local function")
    steps = _Steps(Conversion(site, site.opset))
    nodes = list(steps.take(node, site.opset))
    made = steps.start.made
    note = f"{op_of(node)}-{_version(op_of(node), site.opset)} to opset {site.target}"
    return Edit(
        nodes=(*made.leading, *nodes),
        initializers=tuple(made.initializers.values()),
        note=note,
        exact=steps.exact,
        template=template_of(node, nodes, made, note, steps.exact),
    )


@dataclass
class _Steps:
    """The steps of one node and of what it becomes."""

    start: Conversion
    exact: bool = field(default=True)

    def take(self, node: NodeProto, opset: int) -> Iterator[NodeProto]:
        """The nodes that say in the target opset what `node` says in `opset`."""
        for step in table.steps(op_of(node), opset, self.start.site.target):
            at = replace(self.start, version=step.version)
            match step:
                case Identical():
                    continue
                case Adapter():
                    self.exact &= step.exact
                    for made in step.adapt(node, at):
                        yield from self.take(made, max(step.version, at.made.version_of(made)))
                    return
                case Refusal():
                    raise at.refused(step.code, step.sentence)
            raise at.refused("no-step", f"{op_of(node)} is left to the rule {step.rule!r}")
        yield node


@cache
def _version(op: str, opset: int) -> int:
    version: int = defs.get_schema(op, opset).since_version
    return version


def _calls_function(site: Site) -> bool:
    """Whether the model defines the op itself, under a name of the standard domain."""
    node = site.node
    return any(
        function.name == op_of(node)
        and is_onnx_domain(function.domain)
        and function.overload == node.overload
        for function in site.model.proto.functions
    )
