"""Recognises the nodes that a function writes: what it writes for names is the pattern.

The function takes an author and the names of its operands, and returns the name of what it wrote,
as the guards and idioms of this room do. So what recognises them follows what writes them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from onnx import NodeProto, numpy_helper

from passes.ir.names import Names
from passes.ir.operators import op_of
from passes.ir.versions import AXES_ARE_INPUTS
from passes.writing.author import Author
from passes.writing.writer import Array, content

Producer = Callable[[str], NodeProto | None]
Constant = Callable[[str], Array | None]
Write = Callable[..., str]


def written(
    write: Write, name: str, producer: Producer, constant: Constant, **known: str
) -> Match | None:
    """The match of a value with what `write` writes, for the operands that are `known`, by their
    names in it; None for another value."""
    matches = (Match(pattern, producer, constant, dict(known)) for pattern in _patterns(write))
    return next((match for match in matches if match.holds(match.pattern.result, name)), None)


@dataclass(frozen=True)
class _Pattern:
    """The nodes that compute `result`, and the constants that they read; other names are
    operands."""

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
        found.append(_Pattern(result, nodes, constants))
    return tuple(found)


@dataclass(frozen=True)
class Match:
    """The operands of a function, by their names in it, and the nodes that it writes, the last one
    first."""

    pattern: _Pattern
    producer: Producer
    constant: Constant
    operands: dict[str, str]
    nodes: list[NodeProto] = field(default_factory=list)

    def holds(self, part: str, name: str) -> bool:
        """Return whether a value is this part of the pattern; notes its operands and nodes."""
        if part in self.pattern.constants:
            known = self.constant(name)
            return known is not None and np.array_equal(known, self.pattern.constants[part])
        wanted, node = self.pattern.nodes.get(part), self.producer(name)
        if wanted is None:
            return self.operands.setdefault(part, name) == name
        if node is None or op_of(node) != op_of(wanted) or node.output[0] != name:
            return False
        if len(node.input) != len(wanted.input) or _attributes(node) != _attributes(wanted):
            return False
        self.nodes.append(node)
        return all(map(self.holds, wanted.input, node.input))


def _attributes(node: NodeProto) -> dict[str, Hashable]:
    """The attributes by name, tensors by content."""
    return {
        one.name: content(numpy_helper.to_array(one.t)) if one.HasField("t") else str(one)
        for one in node.attribute
    }
