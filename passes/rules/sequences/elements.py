"""The elements of a sequence whose length and positions are known; the slices of a tensor."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from onnx import NodeProto, TensorProto

from passes.analysis.bodies.context import context_of
from passes.analysis.integers.affine import number_of
from passes.analysis.integers.integer_ops import is_settled, splits_into_slices
from passes.analysis.integers.integers import Integers
from passes.ir.attributes import attribute
from passes.ir.operators import op_of
from passes.ir.scope import Key
from passes.operators.table import where
from passes.rule import NothingToDo, Site, Slot
from passes.types.value_types import elem_type_of

#: The operators that read or write sequences or optionals, besides those of all types and a
#: SequenceMap, which reads them as they are.
OPERATORS = where(lambda row: row.wraps) - {"SequenceMap"}
#: Those that hand on their first input, a sequence, changed.
CHANGING = ("SequenceErase", "SequenceInsert")


@dataclass(frozen=True)
class Elements:
    """The tensors that a sequence holds, by their names at the site.

    `node` writes the sequence, from what is `below`.
    """

    names: tuple[str, ...]
    node: NodeProto
    below: Elements | None = None

    @property
    def nodes(self) -> list[NodeProto]:
        """All nodes that wrote it, in order."""
        found = []
        step: Elements | None = self
        while step is not None:
            found.append(step.node)
            step = step.below
        return found[::-1]


_KNOWN: Slot[dict[tuple[Key, str], Elements]] = Slot()


def elements_of(site: Site, name: str) -> Elements:
    """Return the elements of a sequence.

    Raises:
        Refused: `length-unknown`, `position-unknown`, `out-of-range` or `hidden`.
        NothingToDo: a node that this rule rewrites itself wrote it.
    """
    known = site.memory.once(_KNOWN, dict)
    integers = Integers(site)
    steps: list[tuple[str, NodeProto]] = []
    while (site.scope.key, name) not in known:
        node = _writer(site, integers, name)
        steps.append((name, node))
        if op_of(node) not in ("Identity", *CHANGING):
            break
        name = node.input[0]
    below = known.get((site.scope.key, name))
    for written, node in reversed(steps):
        below = Elements(_held(site, integers, node, below), node, below)
        known[(site.scope.key, written)] = below
    assert below is not None
    return below


def _writer(site: Site, integers: Integers, name: str) -> NodeProto:
    """The node that writes a sequence, with the same names as at the site."""
    node = integers.producer(name)
    made = None if node is None else op_of(node)
    if node is None or not is_settled(node) or made not in ("Identity", *OPERATORS):
        what = f"how many elements {name!r} has is unknown: it is {_origin(site, name, node)}"
        raise site.refused("length-unknown", what, name)
    if not integers.same_meaning(node, name):
        what = f"the body has other values of the names that {op_of(node)} {name!r} reads"
        raise site.refused("hidden", what, name)
    if made in ("SplitToSequence", "OptionalGetElement"):
        raise NothingToDo  # it is rewritten, or refused, itself
    return node


def _origin(site: Site, name: str, node: NodeProto | None) -> str:
    if node is not None:
        return f"an output of {op_of(node)}"
    home = site.model.home(site.scope, name)
    if home is not None and home.outer is not None:
        return "an input of a body"
    return f"an input of the {'function' if site.in_function else 'model'}"


def _held(
    site: Site, integers: Integers, node: NodeProto, below: Elements | None
) -> tuple[str, ...]:
    """The elements after a node, given those below it."""
    if op_of(node) == "SequenceConstruct":
        return tuple(node.input)
    if below is None:
        return ()
    held = below.names
    if op_of(node) == "SequenceInsert":
        place = _place(site, integers, node, 2, len(held), len(held))
        return (*held[:place], node.input[1], *held[place:])
    if op_of(node) == "SequenceErase":
        place = _place(site, integers, node, 1, len(held) - 1, len(held) - 1)
        return (*held[:place], *held[place + 1 :])
    return held


def _place(
    site: Site, integers: Integers, node: NodeProto, operand: int, default: int, last: int
) -> int:
    """The position that an input is, which may count from the end."""
    given = node.input[operand] if operand < len(node.input) else ""
    number = number_of(integers.outside(given)) if given else default
    if number is None:
        what = f"{given!r}, a position in the sequence {node.input[0]!r}, is known only at run time"
        raise site.refused("position-unknown", what, given)
    count = last + 1 if op_of(node) != "SequenceInsert" else last
    if not -count <= number <= last:
        raise site.refused(
            "out-of-range",
            f"{op_of(node)} fails at position {number} of the {count} elements of "
            f"{node.input[0]!r}, and so must the new model",
            node.input[0],
        )
    return number + count if number < 0 else number


def with_numbers(site: Site, nodes: Iterable[NodeProto]) -> tuple[NodeProto, ...]:
    """These nodes, in order, and before each what determines the positions that it reads."""
    found: dict[str, NodeProto] = {}
    for node in nodes:
        positions = node.input[1 if op_of(node) == "SequenceErase" else 2 :]
        if op_of(node) in ("SequenceErase", "SequenceInsert"):
            found.update((one.output[0], one) for one in context_of(site, positions))
        found[node.output[0]] = node
    return tuple(found.values())


def element_at(site: Site, held: Elements, node: NodeProto) -> str:
    """The element that a SequenceAt reads.

    Raises:
        Refused: `position-unknown` or `out-of-range`.
    """
    last = len(held.names) - 1
    return held.names[_place(site, Integers(site), node, 1, last, last)]


@dataclass(frozen=True)
class Slices:
    """A sequence of all slices of a tensor along an axis, which they keep with size 1, or not.

    `nodes` wrote the sequence.
    """

    tensor: str
    axis: int
    keeps: bool
    nodes: tuple[NodeProto, ...]


def slices_of(site: Site, name: str) -> Slices | None:
    """The slices that a sequence consists of; None where it is another one."""
    nodes = origin_of(site, name)
    if not nodes or op_of(nodes[0]) != "SplitToSequence":
        return None
    split = nodes[0]
    keeps = attribute(split, "keepdims", 1) != 0
    of_one = splits_into_slices(split, Integers(site).outside)
    if not of_one or (any(split.input[1:]) and not keeps):
        return None
    return Slices(split.input[0], attribute(split, "axis", 0) or 0, keeps, tuple(nodes))


def origin_of(site: Site, name: str) -> list[NodeProto]:
    """The node that writes a value, and the Identities behind it, in order; none where it cannot be
    read, or the site has other values of these names."""
    integers = Integers(site)
    nodes: list[NodeProto] = []
    while (node := integers.producer(name)) is not None:
        if not is_settled(node) or not integers.same_meaning(node, name):
            return []
        nodes.insert(0, node)
        if op_of(node) != "Identity":
            break
        name = node.input[0]
    return nodes


def are_strings(site: Site, tensor: str) -> bool:
    """Return whether a tensor may hold strings, of which onnxruntime's Gather copies one a row."""
    return elem_type_of(site.type_of(tensor)) in (TensorProto.UNDEFINED, TensorProto.STRING)
