"""Recognises the nodes that a function writes: what it writes for names is the pattern.

The function takes an author and the names of its operands, and returns the name of what it wrote,
as the guards and idioms of this room do. So what recognises them follows what writes them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
from onnx import NodeProto, numpy_helper

from passes.ir.names import Names
from passes.ir.operators import op_of
from passes.ir.versions import AXES_ARE_INPUTS
from passes.writing.author import Author
from passes.writing.writer import Array

Producer = Callable[[str], NodeProto | None]
Constant = Callable[[str], Array | None]
Write = Callable[..., str]
#: The nodes and constants of a pattern by name; other names are operands.
_Parts = Mapping[str, NodeProto | Array]


def operands_of(
    write: Write, name: str, producer: Producer, constant: Constant, **known: str
) -> dict[str, str] | None:
    """The operands, by their names in `write`, for which it would write a value, and the `known`
    ones; None for another value."""

    def holds(parts: _Parts, part: str, name: str, found: dict[str, str]) -> bool:
        wanted = parts.get(part)
        if wanted is None:
            return found.setdefault(part, name) == name
        if isinstance(wanted, np.ndarray):
            value = constant(name)
            return value is not None and np.array_equal(value, wanted)
        node = producer(name)
        if node is None or (op_of(node), _attributes(node)) != (op_of(wanted), _attributes(wanted)):
            return False
        pairs = zip(wanted.input, node.input, strict=False)
        same = len(node.input) == len(wanted.input)
        return same and all(holds(parts, *pair, found) for pair in pairs)

    for result, parts in _patterns(write):
        found = dict(known)
        if holds(parts, result, name, found):
            return found
    return None


@cache
def _patterns(write: Write) -> list[tuple[str, _Parts]]:
    """What is written and its parts, as the opsets spell them: axes are inputs or attributes.

    Each node has one output.
    """
    parameters = inspect.signature(write).parameters.values()
    _, *operands = (one.name for one in parameters if one.default is one.empty)
    found = list[tuple[str, _Parts]]()
    for opset in (AXES_ARE_INPUTS, AXES_ARE_INPUTS - 1):
        author = Author(opset, Names(operands), "")
        result = write(author, *operands)
        parts: dict[str, NodeProto | Array] = {node.output[0]: node for node in author.nodes}
        parts |= {one.name: numpy_helper.to_array(one) for one in author.constants}
        found.append((result, parts))
    return found


def _attributes(node: NodeProto) -> list[str]:
    return sorted(map(str, node.attribute))
