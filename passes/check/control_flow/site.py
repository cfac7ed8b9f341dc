"""A Scan, Loop or If with its location, its attributes and its bodies."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from onnx import AttributeProto, NodeProto

from passes.check.graph_declarations import GraphDeclarations, Headings
from passes.check.node_in_scope import NodeInScope
from passes.check.wording import count
from passes.errors import BadModel
from passes.ir.operators import op_of
from passes.ir.scope import Place, Scope


@dataclass(frozen=True)
class Body:
    """A body of a node, and what it takes and returns."""

    scope: Scope
    heading: GraphDeclarations


@dataclass(frozen=True)
class Site:
    """A node that may hold bodies, and the opset it is written in.

    `attributes` and `bodies` are by name; `open` are the attributes that refer to those of the
    surrounding function.
    """

    place: Place
    opset: int
    attributes: Mapping[str, AttributeProto]
    bodies: Mapping[str, Body]
    open: Set[str]

    @classmethod
    def of(cls, found: NodeInScope, headings: Headings) -> Site:
        """A node with its attributes and bodies."""
        attributes = {attribute.name: attribute for attribute in found.node.attribute[:]}
        bodies = {str(body.key[-1]): Body(body, headings[body.key]) for body in found.bodies}
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


def body_of(site: Site, name: str) -> Body:
    """A body that must be there."""
    if name in site.bodies:
        return site.bodies[name]
    if name in site.attributes:
        raise site.error(f"attribute {name} of {op_of(site.node)} holds no graph")
    raise site.error(f"{op_of(site.node)} has no {name}")


def check_fed(site: Site, body: Body, fed: int, meaning: str = "") -> None:
    """The body takes as many values as the node feeds it."""
    taken = len(body.heading.taken)
    if taken != fed:
        feeds = f"the node feeds {max(fed, 0) or 'none'}{meaning}"
        raise site.error(f"the body takes {count(taken, 'input')}, but {feeds}")


def check_inputs_given(site: Site, first: int = 0) -> None:
    """No input from `first` on is omitted."""
    for position, name in enumerate(site.node.input[:]):
        if position >= first and not name:
            raise site.error(f"input {position} of {op_of(site.node)} is empty, but not optional")
