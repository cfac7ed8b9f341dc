"""How a node becomes one other node whatever its names are, so that its likes need no rule."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property

from onnx import AttributeProto, NodeProto, TensorProto

from passes.rule import Edit, Site

#: A fixed value, as a tensor of the graph that a site lies in.
Value = Callable[[Site], TensorProto]


def likeness(node: NodeProto, opset: int) -> Hashable:
    """What nodes without bodies have in common that differ in nothing but their names."""
    inputs, outputs = node.input[:], node.output[:]
    key: tuple[Hashable, ...] = (
        opset,
        node.op_type,
        node.domain,
        node.overload,
        len(inputs),
        len(outputs),
    )
    if "" in inputs or "" in outputs:
        key += (tuple(map(bool, inputs)), tuple(map(bool, outputs)))
    for attribute in node.attribute:
        key += (attribute.SerializeToString(),)
    return key


@dataclass(frozen=True)
class Template:
    """The same rewrite for every node that is alike.

    Of the new inputs each is a position among the `count` old ones, the name "" of an omitted one,
    or a fixed value; of the outputs the first `outputs` stay.
    """

    op_type: str
    attributes: tuple[AttributeProto, ...]
    count: int
    inputs: tuple[int | str | Value, ...]
    outputs: int
    note: str
    exact: bool

    def at(self, site: Site) -> Filled:
        """The template for the graph that a site lies in."""
        tensors = [one(site) for one in self.inputs if callable(one)]
        names = iter(tensors)
        inputs = [next(names).name if callable(one) else one for one in self.inputs]
        return Filled(self, tuple(inputs), tuple(tensors))


@dataclass(frozen=True)
class Filled:
    """A template, and the tensors of a graph that it reads."""

    template: Template
    inputs: tuple[int | str, ...]
    tensors: tuple[TensorProto, ...]

    @property
    def note(self) -> str:
        """How the report calls the rewrite."""
        return self.template.note

    def write(self, node: NodeProto) -> None:
        """Rewrite a node in place; what stays is not touched, for speed."""
        template = self.template
        if node.op_type != template.op_type:
            node.op_type = template.op_type
        node.ClearField("attribute")
        node.attribute.extend(template.attributes)
        if self._added is not None:
            node.input.extend(self._added)
        else:
            old = node.input[:]
            del node.input[:]
            node.input.extend([old[one] if isinstance(one, int) else one for one in self.inputs])
        if len(node.output) > template.outputs:
            del node.output[template.outputs :]

    @cached_property
    def _added(self) -> list[str] | None:
        """What comes behind the old inputs, where those stay."""
        count = self.template.count
        if self.inputs[:count] != tuple(range(count)):
            return None
        return [str(one) for one in self.inputs[count:]]

    def edit(self, node: NodeProto) -> Edit:
        """The rewrite of a node as an Edit of its own."""
        new = NodeProto()
        new.CopyFrom(node)
        self.write(new)
        return Edit((new,), self.tensors, note=self.note, exact=self.template.exact)
