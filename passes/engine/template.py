"""Rewrites one node into another whatever its names are, so that similar ones need no rule."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property

from onnx import AttributeProto, NodeProto, TensorProto

from passes.ir.graph_index import GraphIndex
from passes.ir.protos import replace_all
from passes.rule import Edit, Site

#: A constant, as a tensor of the graph that a site lies in.
Value = Callable[[Site], TensorProto]


def likeness(graph: GraphIndex, index: int, opset: int) -> Hashable:
    """A key that is equal for nodes without bodies, which call no function, that differ only in
    names."""
    reads, writes = graph.reads[index], graph.writes[index]
    attributes = [attribute.SerializeToString() for attribute in graph.nodes[index].attribute[:]]
    arity: tuple[Hashable, Hashable] = len(reads), len(writes)
    if "" in reads or "" in writes:
        arity = tuple(map(bool, reads)), tuple(map(bool, writes))
    return opset, graph.ops[index], arity, *attributes


@dataclass
class Templates:
    """The templates of one round, by what nodes have in common and the constants they read."""

    known: dict[Hashable, Template] = field(default_factory=dict)
    fixed: dict[Hashable, tuple[int, ...]] = field(default_factory=dict)
    contents: dict[Hashable, Hashable] = field(default_factory=dict)

    def key(self, likes: Hashable, site: Callable[[], Site]) -> Hashable:
        """Return the key that a node shares with all those for which the same template holds, given
        its `likeness`."""
        fixed = self.fixed.get(likes)
        return (likes, *(self._content(site(), position) for position in fixed)) if fixed else likes

    def add(self, likes: Hashable, site: Site, template: Template) -> None:
        """Keep the template of a node, unless it depends on more constants than that of the first
        node of its kind, by which they are distinguished."""
        fixed = self.fixed.setdefault(likes, template.fixed)
        if set(template.fixed) <= set(fixed):
            self.known[self.key(likes, lambda: site)] = template

    def _content(self, site: Site, position: int) -> Hashable:
        name = site.node.input[position]
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
    or a constant; of the outputs the first `outputs` stay, which are not all if it `drops` some.
    `fixed` are the positions of old inputs that must be the same constant.
    """

    op: str
    attributes: tuple[AttributeProto, ...]
    count: int
    inputs: tuple[int | str | Value, ...]
    outputs: int
    drops: bool
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
        node.ClearField("attribute")
        if not template.appends:
            old = node.input[:]
            new = [old[source] if isinstance(source, int) else source for source in self.inputs]
            replace_all(node.input, new)
        if template.drops:
            del node.output[template.outputs :]
        node.MergeFrom(self._news)

    @cached_property
    def _news(self) -> NodeProto:
        """What every node gets: the operator, its attributes, and inputs after the old ones."""
        template = self.template
        more = self.inputs[template.count :] if template.appends else ()
        return NodeProto(
            op_type=template.op, attribute=template.attributes, input=[str(name) for name in more]
        )
