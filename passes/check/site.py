"""A Scan, Loop or If where it stands, with its attributes and bodies at hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from onnx import AttributeProto, GraphProto, NodeProto

from passes import scope as scoping
from passes.check.wording import count
from passes.errors import BadModel
from passes.scope import Place, Scope


@dataclass(frozen=True)
class Site:
    """A node that holds bodies, and the opset it is written in."""

    place: Place
    opset: int

    @property
    def node(self) -> NodeProto:
        """The node itself."""
        return self.place.node

    @property
    def scope(self) -> Scope:
        """Where its inputs are looked up."""
        return self.place.scope

    @cached_property
    def attributes(self) -> Mapping[str, AttributeProto]:
        """Its attributes by name."""
        return {attribute.name: attribute for attribute in self.node.attribute}

    @cached_property
    def bodies(self) -> Mapping[str, Scope]:
        """Its bodies by the attribute that holds each."""
        inner = self.scope.inner(self.place.index)
        return {str(scope.key[-1]): scope for scope in inner}

    def error(self, sentence: str) -> BadModel:
        """An error at this node."""
        return BadModel(sentence, path=self.place.path)

    def is_open(self, *names: str) -> bool:
        """Whether an attribute is only named here and given by the caller of a function."""
        return any(self.attributes[one].ref_attr_name for one in names if one in self.attributes)


def body_of(site: Site, name: str) -> Scope:
    """A body that must be there."""
    if name in site.bodies:
        return site.bodies[name]
    if name in site.attributes:
        raise site.error(f"attribute {name} of {site.node.op_type} holds no graph")
    raise site.error(f"{site.node.op_type} has no {name}")


def body_inputs(body: Scope) -> list[str]:
    """The inputs of a body that the node feeds: those that name no initializer."""
    constants = scoping.initializer_names(body.owner)
    return [name for name in scoping.input_names(body.owner) if name not in constants]


def check_fed(site: Site, body: Scope, fed: int, meaning: str = "") -> None:
    """The body takes as many values as the node gives it."""
    assert isinstance(body.owner, GraphProto)
    taken = len(body_inputs(body))
    if taken != fed:
        given = f"the node feeds {max(fed, 0) or 'none'}{meaning}"
        raise site.error(f"the body takes {count(taken, 'input')}, but {given}")


def check_inputs_given(site: Site, first: int = 0) -> None:
    """No input from `first` on is left out."""
    for position, name in enumerate(site.node.input):
        if position >= first and not name:
            raise site.error(f"input {position} of {site.node.op_type} is empty, but not optional")
