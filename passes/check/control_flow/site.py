"""A Scan, Loop or If with its location, its attributes and its bodies."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import cached_property

from onnx import AttributeProto, NodeProto

from passes.check.graph_declarations import GraphDeclarations, Headings
from passes.check.operators import NodeInScope
from passes.errors import BadModel
from passes.ir.protos import copied, replace_all
from passes.ir.scope import Place, Scope
from passes.loops.form import LoopForm


@dataclass(frozen=True)
class CheckedBody:
    """A body of a node, and what it takes and returns."""

    scope: Scope
    heading: GraphDeclarations


@dataclass(frozen=True)
class CheckedSite:
    """A node that may hold bodies, and the opset it is written in.

    `attributes` and `bodies` are by name; `open` are the attributes that refer to those of the
    surrounding function.
    """

    place: Place
    opset: int
    attributes: Mapping[str, AttributeProto]
    bodies: Mapping[str, CheckedBody]
    open: Set[str]

    @classmethod
    def of(cls, found: NodeInScope, headings: Headings) -> CheckedSite:
        """A node with its attributes and bodies."""
        given = reversed(found.node.attribute[:])  # the first of a name counts, as in a LoopForm
        attributes = {attribute.name: attribute for attribute in given}
        bodies = {str(body.key[-1]): CheckedBody(body, headings[body.key]) for body in found.bodies}
        free = {name for name, attribute in attributes.items() if attribute.ref_attr_name}
        return cls(found, found.opset, attributes, bodies, free)

    @property
    def node(self) -> NodeProto:
        """The node itself."""
        return self.place.node

    @property
    def scope(self) -> Scope:
        """The scope in which its inputs are looked up."""
        return self.place.scope

    def error(self, sentence: str) -> BadModel:
        """An error at this node."""
        return BadModel(sentence, path=self.place.path)

    def is_open(self, *names: str) -> bool:
        """Return whether the caller of a function chooses one of these attributes."""
        return not self.open.isdisjoint(names)

    @cached_property
    def form(self) -> LoopForm:
        """A loop taken apart, with the defaults of attributes that the caller of a function
        chooses.

        Raises:
            BadModel: it has no body, an input is empty, or the counts do not fit.
        """
        node = self.node
        if self.open:
            node = copied(node)
            kept = [attribute for attribute in node.attribute if attribute.name not in self.open]
            replace_all(node.attribute, kept)
        return LoopForm.from_node(node, self.opset)
