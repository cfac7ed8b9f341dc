"""Nodes that differ only in their names: one is converted, the others are filled in after it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy.typing as npt
from onnx import FunctionProto, NodeProto, TensorProto

from converters.made import Made, shared_initializer
from passes.names import Names
from passes.rule import Edit, Site
from passes.scope import Owner

#: A position among the old inputs, the name "" of an omitted one, or a fixed value and a hint for
#: its name.
Input = int | str | tuple[npt.NDArray[Any], str]


@dataclass(frozen=True)
class Pattern:
    """A node that becomes one node; `main` has its op and attributes.

    `inputs` say where its inputs come from; of the outputs, the first `outputs` stay.
    """

    main: NodeProto
    inputs: tuple[Input, ...]
    outputs: int
    note: str
    exact: bool
    _made: dict[int, tuple[Owner, list[TensorProto]]] = field(default_factory=dict)

    def edit(self, site: Site) -> Edit:
        """The same step for another node."""
        old = site.node
        fixed = self._initializers(site)
        values = iter(fixed)
        inputs = [
            old.input[one] if isinstance(one, int) else one and next(values).name
            for one in self.inputs
        ]
        new = NodeProto()
        new.CopyFrom(old)
        del new.attribute[:]
        del new.input[:]
        del new.output[self.outputs :]
        new.MergeFrom(self.main)
        new.input.extend(inputs)
        return Edit((new,), tuple(fixed), note=self.note, exact=self.exact)

    def _initializers(self, site: Site) -> list[TensorProto]:
        """The fixed values as tensors of the graph that the node stands in."""
        owner = site.scope.owner
        if id(owner) not in self._made:  # which keeps the graph, so that its id stays its own
            fixed = [one for one in self.inputs if isinstance(one, tuple)]
            made = [shared_initializer(*one, site) for one in fixed]
            self._made[id(owner)] = (owner, made)
        return self._made[id(owner)][1]


_WITH_BODIES = frozenset({"If", "Loop", "Scan", "SequenceMap"})

#: Patterns by the supply of names of the run, and by what tells a node from the others.
_PATTERNS: WeakKeyDictionary[Names, dict[Hashable, Pattern | None]] = WeakKeyDictionary()


def known(site: Site) -> tuple[Hashable, Pattern | None]:
    """What tells the site's node from others but for its names, and the pattern if there is one.

    The key is None for a node that no pattern can be made of.
    """
    key = _key(site)
    return key, None if key is None else _PATTERNS.setdefault(site.names, {}).get(key)


def remember(key: Hashable, site: Site, made: Made, edit: Edit) -> None:
    """Make a pattern of a conversion, where it rests on nothing but the node itself."""
    patterns = _PATTERNS.setdefault(site.names, {})
    if key is not None and key not in patterns:
        patterns[key] = _pattern(site.node, made, edit)


def _key(site: Site) -> Hashable:
    node = site.node
    if node.op_type in _WITH_BODIES or isinstance(site.scope.owner, FunctionProto):
        return None
    attributes = [one.SerializeToString() for one in node.attribute]
    inputs, outputs = tuple(map(bool, node.input)), tuple(map(bool, node.output))
    return (node.op_type, node.domain, site.opset, site.target, inputs, outputs, *attributes)


def _pattern(node: NodeProto, made: Made, edit: Edit) -> Pattern | None:
    names = [name for name in (*node.input, *node.output) if name]
    if made.asked or len(edit.nodes) != 1 or len(set(names)) != len(names):
        return None
    (new,) = edit.nodes
    outputs = len(new.output)
    if list(new.output) != list(node.output[:outputs]):
        return None
    places: dict[str, Input] = {name: position for position, name in enumerate(node.input) if name}
    known: dict[str, Input] = {"": "", **made.fixed, **places}
    if not known.keys() >= set(new.input):
        return None
    main = NodeProto(op_type=new.op_type, attribute=new.attribute)
    inputs = tuple(known[name] for name in new.input)
    return Pattern(main, inputs, outputs, edit.note, edit.exact)
