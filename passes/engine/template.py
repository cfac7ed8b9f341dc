"""Rewrites one node into another whatever its names are, so that similar ones need no rule."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property

from onnx import AttributeProto, NodeProto, TensorProto

from passes.ir.operators import called_key, op_of
from passes.rule import Edit, Site

#: A constant, as a tensor of the graph that a site lies in.
Value = Callable[[Site], TensorProto]


def likeness(node: NodeProto, opset: int) -> Hashable:
    """A key that is equal for nodes without bodies that differ only in names."""
    inputs, outputs = node.input[:], node.output[:]
    attributes = [attribute.SerializeToString() for attribute in node.attribute[:]]
    arity: tuple[Hashable, Hashable] = len(inputs), len(outputs)
    if "" in inputs or "" in outputs:
        arity = tuple(map(bool, inputs)), tuple(map(bool, outputs))
    return opset, called_key(node), arity, *attributes


@dataclass
class Templates:
    """The templates of one round, by what nodes have in common and the constants they read."""

    known: dict[Hashable, Template] = field(default_factory=dict)
    fixed: dict[Hashable, tuple[int, ...]] = field(default_factory=dict)
    contents: dict[Hashable, Hashable] = field(default_factory=dict)

    def key(self, site: Site) -> Hashable:
        """Return the key that a node shares with all those for which the same template holds."""
        likes = likeness(site.node, site.opset)
        names = [site.node.input[position] for position in self.fixed.get(likes, ())]
        return (likes, *(self._content(site, name) for name in names))

    def add(self, site: Site, template: Template) -> None:
        """Keep the template of a node, unless it depends on more constants than that of the first
        node of its kind, by which they are distinguished."""
        fixed = self.fixed.setdefault(likeness(site.node, site.opset), template.fixed)
        if set(template.fixed) <= set(fixed):
            self.known[self.key(site)] = template

    def _content(self, site: Site, name: str) -> Hashable:
        place = site.scope.key, name
        if place not in self.contents:
            value = site.constant(name)
            content = None if value is None else (value.dtype.str, value.shape, value.tobytes())
            self.contents[place] = content
        return self.contents[place]


@dataclass(frozen=True)
class Template:
    """The same rewrite for every node that is alike.

    Each of the new inputs is a position among the `count` old ones, the name "" of an omitted one,
    or a constant; of the outputs the first `outputs` stay. `fixed` are the positions of old inputs
    that must be the same constant.
    """

    op: str
    attributes: tuple[AttributeProto, ...]
    count: int
    inputs: tuple[int | str | Value, ...]
    outputs: int
    note: str
    exact: bool
    fixed: tuple[int, ...] = ()

    def at(self, site: Site) -> Filled:
        """The template for the graph that a site lies in."""
        inputs: list[int | str] = []
        tensors: list[TensorProto] = []
        for source in self.inputs:
            if callable(source):
                tensors.append(source(site))
                inputs.append(tensors[-1].name)
            else:
                inputs.append(source)
        return Filled(self, tuple(inputs), tuple(tensors))

    @cached_property
    def appends(self) -> bool:
        """True if the old inputs stay, with all new ones after them."""
        return self.inputs[: self.count] == tuple(range(self.count))


@dataclass(frozen=True)
class Templated(Edit):
    """An Edit that is the same for all nodes that are alike."""

    template: Template | None = None


@dataclass(frozen=True)
class Filled:
    """A template, and the tensors of a graph that it reads."""

    template: Template
    inputs: tuple[int | str, ...]
    tensors: tuple[TensorProto, ...]

    @property
    def note(self) -> str:
        """The description of the rewrite in the report."""
        return self.template.note

    @property
    def exact(self) -> bool:
        """True if the same arithmetic runs, as of an Edit."""
        return self.template.exact

    def write(self, node: NodeProto) -> None:
        """Rewrite a node in place; what stays is not touched, for speed."""
        template = self.template
        if op_of(node) != template.op:
            node.op_type = template.op
        node.ClearField("attribute")
        node.attribute.extend(template.attributes)
        if template.appends:
            node.input.extend([str(source) for source in self.inputs[template.count :]])
        else:
            old = node.input[:]
            del node.input[:]
            node.input.extend(
                [old[source] if isinstance(source, int) else source for source in self.inputs]
            )
        if len(node.output) > template.outputs:
            del node.output[template.outputs :]
