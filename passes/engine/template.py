"""How a node becomes one other node whatever its names are, so that its likes need no rule."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property

from onnx import AttributeProto, NodeProto, TensorProto

from passes.engine.site import Site
from passes.ir.operators import called_key, op_of

#: A fixed value, as a tensor of the graph that a site lies in.
Value = Callable[[Site], TensorProto]


def likeness(node: NodeProto, opset: int) -> Hashable:
    """What nodes without bodies have in common that differ in nothing but their names."""
    inputs, outputs = node.input[:], node.output[:]
    attributes = [attribute.SerializeToString() for attribute in node.attribute[:]]
    given: tuple[Hashable, Hashable] = len(inputs), len(outputs)
    if "" in inputs or "" in outputs:
        given = tuple(map(bool, inputs)), tuple(map(bool, outputs))
    return opset, called_key(node), given, *attributes


@dataclass(frozen=True)
class Template:
    """The same rewrite for every node that is alike.

    Of the new inputs each is a position among the `count` old ones, the name "" of an omitted one,
    or a fixed value; of the outputs the first `outputs` stay.
    """

    op: str
    attributes: tuple[AttributeProto, ...]
    count: int
    inputs: tuple[int | str | Value, ...]
    outputs: int
    note: str
    exact: bool

    def at(self, site: Site) -> Filled:
        """The template for the graph that a site lies in."""
        inputs: list[int | str] = []
        tensors: list[TensorProto] = []
        for one in self.inputs:
            if callable(one):
                tensors.append(one(site))
                inputs.append(tensors[-1].name)
            else:
                inputs.append(one)
        return Filled(self, tuple(inputs), tuple(tensors))

    @cached_property
    def appends(self) -> bool:
        """Whether the old inputs stay, all that is new coming behind them."""
        return self.inputs[: self.count] == tuple(range(self.count))


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
        if op_of(node) != template.op:
            node.op_type = template.op
        node.ClearField("attribute")
        node.attribute.extend(template.attributes)
        if template.appends:
            node.input.extend([str(one) for one in self.inputs[template.count :]])
        else:
            old = node.input[:]
            del node.input[:]
            node.input.extend([old[one] if isinstance(one, int) else one for one in self.inputs])
        if len(node.output) > template.outputs:
            del node.output[template.outputs :]
