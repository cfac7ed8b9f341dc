"""If: two branches that return values of the same types."""

from __future__ import annotations

from dataclasses import replace

from onnx import GraphProto, helper

from tests.instruments.generate.block import Block, NotHere
from tests.instruments.generate.bodies import a_shape, dtype, fill, nested
from tests.instruments.generate.loops import condition
from tests.instruments.generate.values import Value


@nested
def branches(b: Block) -> None:
    decided = condition(b)
    types = [_type(b) for _ in range(1 + b.choices.one_in(3))]
    results = [replace(type_, name=b.name(), rough=True, data=None) for type_ in types]
    node = helper.make_node("If", [decided.name], [result.name for result in results])
    for name in ("then_branch", "else_branch"):
        node.attribute.append(helper.make_attribute(name, _branch(b, name, types)))
    b.add(node, results)


def _type(b: Block) -> Value:
    """A type to return: that of a value there is, or another."""
    if b.choices.one_in(3):
        return Value("", dtype(b), a_shape(b))
    return b.pick(lambda v: not v.sequence)


def _branch(b: Block, name: str, types: list[Value]) -> GraphProto:
    inner = b.inner()
    fill(inner, 1 + b.choices.below(4))
    returned = [inner.want(type_.elem, type_.shape) for type_ in types]
    outputs = [replace(one, name=inner.returned(one)) for one in returned]
    if len({output.name for output in outputs}) < len(outputs):
        raise NotHere
    return inner.graph(name, [], outputs)
