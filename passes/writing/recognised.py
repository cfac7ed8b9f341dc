"""Recognises the nodes that a function writes: what it writes for names is the pattern.

The function takes an author and the names of its operands, and returns the name of what it wrote,
as the guards and idioms of this room do. So what recognises them follows what writes them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from onnx import AttributeProto, NodeProto, helper, numpy_helper

from passes.ir.attributes import has_references
from passes.ir.names import Names
from passes.ir.operators import op_of
from passes.ir.versions import AXES_ARE_INPUTS
from passes.writing.author import Author
from passes.writing.writer import Array, content

Producer = Callable[[str], NodeProto | None]
Constant = Callable[[str], Array | None]
Write = Callable[..., str]


def written(
    write: Write, node: NodeProto | None, producer: Producer, constant: Constant, **known: str
) -> Match | None:
    """The match of a node with the last one that `write` writes, for the operands that are `known`,
    by their names in it; None for another node."""
    matches = (Match(pattern, producer, constant, dict(known)) for pattern in _patterns(write))
    return next((match for match in matches if match.ends(node)), None)


@dataclass(frozen=True)
class _Pattern:
    """The nodes that compute `result` from `operands`, and the constants that they read."""

    operands: tuple[str, ...]
    result: str
    nodes: Mapping[str, NodeProto]
    constants: Mapping[str, Array]


@cache
def _patterns(write: Write) -> tuple[_Pattern, ...]:
    """The patterns of all opsets, the newest first: they differ in axes, inputs or attributes."""
    parameters = inspect.signature(write).parameters.values()
    _, *operands = (one.name for one in parameters if one.default is one.empty)
    found = []
    for opset in (AXES_ARE_INPUTS, AXES_ARE_INPUTS - 1):
        author = Author(opset, Names(operands), "")
        result = write(author, *operands)
        nodes = {node.output[0]: node for node in author.nodes}
        constants = {one.name: numpy_helper.to_array(one) for one in author.constants}
        found.append(_Pattern(tuple(operands), result, nodes, constants))
    return tuple(found)


@dataclass(frozen=True)
class Match:
    """Compares nodes with a pattern: the operands by their names in it, and the nodes, the last one
    first."""

    pattern: _Pattern
    producer: Producer
    constant: Constant
    operands: dict[str, str]
    nodes: list[NodeProto] = field(default_factory=list)

    def ends(self, node: NodeProto | None) -> bool:
        """Return whether a node is the last one of the pattern."""
        return self._is(self.pattern.nodes[self.pattern.result], node)

    def _is(self, wanted: NodeProto, node: NodeProto | None) -> bool:
        if node is None or op_of(node) != op_of(wanted) or has_references(node):
            return False
        if len(node.input) != len(wanted.input) or _attributes(node) != _attributes(wanted):
            return False
        self.nodes.append(node)
        return all(map(self._holds, wanted.input, node.input))

    def _holds(self, part: str, name: str) -> bool:
        """Return whether a value is a part of the pattern."""
        if part in self.pattern.operands:
            return self.operands.setdefault(part, name) == name
        if part in self.pattern.constants:
            known, wanted = self.constant(name), self.pattern.constants[part]
            return known is not None and np.array_equal(known.reshape(-1), wanted.reshape(-1))
        return self._is(self.pattern.nodes[part], self.producer(name))


def _attributes(node: NodeProto) -> dict[str, Hashable | Any]:
    return {
        one.name: content(numpy_helper.to_array(one.t))
        if one.type == AttributeProto.TENSOR
        else helper.get_attribute_value(one)
        for one in node.attribute
    }
