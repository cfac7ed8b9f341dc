"""The rule `pair-directions`: two recurrent operators over one input become a bidirectional one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import AttributeProto, NodeProto, helper

from passes.analysis.safety.randomness import is_pure
from passes.ir import scope as scoping
from passes.ir.attributes import attribute, attribute_proto, has, has_references, text
from passes.ir.live import orphaned
from passes.ir.operators import op_of
from passes.ir.protos import copied, replace_all
from passes.operators.cells import INITIAL_C, INITIAL_H, LENGTHS, RECURRENT
from passes.rule import Edit, NothingToDo, Site, register
from passes.types.value_types import elem_type_of
from passes.writing import spelling
from passes.writing.author import Author

#: Older opsets have no operator that makes zeros of any shape.
_OLDEST = 9


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Return whether a node is a recurrent operator of one direction."""
    return opset >= _OLDEST and op_of(node) in RECURRENT and _direction(node) != "bidirectional"


@register("pair-directions", considers=considers, optional=True)
def pair_directions(site: Site) -> Edit:
    """Run an RNN, GRU or LSTM, and one over the same input in reverse, as one operator.

    Before:

        y, h = GRU <hidden_size = 3> (x, w, r)
        z, g = GRU <direction = "reverse", hidden_size = 3> (x, v, s)

    After:

        both_w = Concat <axis = 0> (w, v)
        both_r = Concat <axis = 0> (r, s)
        rows, last = GRU <direction = "bidirectional", hidden_size = 3> (x, both_w, both_r)
        y, z = Split <axis = 1> (rows)
        h, g = Split <axis = 0> (last)

    A Concat of two outputs along that axis becomes the output of the operator. What is left out of
    one of them is 0. Accelerators may run both directions side by side; onnxruntime is no faster
    on a CPU.

    Refuses:
    - `attributes`: the two differ in more than direction and activations, or scale activations
    - `lengths`: the two have sequence_lens that are not computed alike
    - `operands`: what the second reads is drawn, or computed from the first, or has an unknown type
    """
    other = _partner(site)
    position = site.graph.positions[next(filter(None, other.output))]
    equal = _check(site, other)
    author = Author.at(site)
    partner, between = _early(site, author, other)
    pair = (site.node, partner)
    first, second = sorted(pair, key=lambda node: _direction(node) == "reverse")
    late = 1 if attribute(first, "layout", 0) else 0
    operands = [first.input[0]]
    for place in range(1, max(len(first.input), len(second.input))):
        own, theirs = _at(first.input, place), _at(second.input, place)
        axis = late if place in (INITIAL_H, INITIAL_C) else 0
        same = place == LENGTHS or not (own or theirs)
        operands.append(own if same else _joined(site, author, own, theirs, axis))
    outputs, parts = list[str](), list[tuple[str, int, list[str]]]()
    again = {name for node in between for name in node.output}
    covered = orphaned(
        site.graph, other.input, [position], lambda node: again.issuperset(node.output)
    )
    for place in range(max(len(first.output), len(second.output))):
        names = [_at(first.output, place), _at(second.output, place)]
        axis = late if place else 1 + late
        concat = _concat(site, names, axis, 3 if place else 4)
        if concat is not None:
            outputs.append(site.scope.owner.node[concat].output[0])
            covered.add(concat)
        elif any(names):
            outputs.append(author.fresh("both"))
            parts.append((outputs[-1], axis, [one or author.fresh("unread") for one in names]))
        else:
            outputs.append("")
    author.adopt([_bidirectional(site.node.name, first, second, operands, outputs)])
    for name, axis, names in parts:
        spelling.split(author, name, axis, names)
    note = f"both directions of {first.input[0]} in one"
    return Edit(
        tuple(author.nodes),
        tuple(author.constants),
        note=note,
        covered=tuple(sorted(covered)),
        context=(*equal, *between),
    )


def _direction(node: NodeProto) -> str:
    return text(node, "direction", "forward")


def _at(names: Sequence[str], place: int) -> str:
    return names[place] if place < len(names) else ""


def _partner(site: Site) -> NodeProto:
    """The node of the other direction that comes later: the n-th of one direction and the n-th of
    the other one are a pair.

    Raises:
        NothingToDo: there is none.
    """
    node = site.node
    ways: dict[str, list[NodeProto]] = {"forward": [], "reverse": []}
    for other in site.scope.owner.node:
        beside = op_of(other) == op_of(node) and other.input[0] == node.input[0]
        if beside and any(other.output) and not has_references(other):
            ways.get(_direction(other), []).append(other)
    for pair in zip(*ways.values(), strict=False):
        places = [site.graph.positions[next(filter(None, one.output))] for one in pair]
        if site.place.index == min(places):
            later: NodeProto = pair[places.index(max(places))]
            return later
    raise NothingToDo


def _check(site: Site, other: NodeProto) -> list[NodeProto]:
    """The nodes that compute equal lengths for each.

    Raises:
        Refused: the two cannot become one.
    """
    node = site.node
    scaled = [
        has(one, name) for one in (node, other) for name in ("activation_alpha", "activation_beta")
    ]
    if any(scaled) or _terms(node) != _terms(other):
        sentence = "the operator of the other direction has other attributes, or scaled activations"
        raise site.refused("attributes", sentence, other.name)
    made: dict[tuple[str, str], list[NodeProto]] = {}
    if not _same(site, _at(node.input, LENGTHS), _at(other.input, LENGTHS), made):
        raise site.refused("lengths", "the other direction has other sequence_lens")
    found = {one.output[0]: one for pair in made.values() for one in pair}
    return sorted(found.values(), key=lambda one: site.graph.positions[one.output[0]])


def _same(site: Site, own: str, theirs: str, made: dict[tuple[str, str], list[NodeProto]]) -> bool:
    """Return whether two values are one, or equal nodes compute them, which are noted."""
    if own == theirs or (own, theirs) in made:
        return True
    if not own or not theirs:
        return False
    fixed, value = site.constant(own), site.constant(theirs)
    if fixed is not None and value is not None:
        return fixed.dtype == value.dtype and np.array_equal(fixed, value)
    nodes = [site.graph.producers.get(name) for name in (own, theirs)]
    pair = [node for node in nodes if node is not None and is_pure(node) and len(node.output) == 1]
    if len(pair) < 2 or len({(_operation(node), len(node.input)) for node in pair}) > 1:
        return False
    inputs = zip(pair[0].input, pair[1].input, strict=True)
    if not all(_same(site, *names, made) for names in inputs):
        return False
    made[own, theirs] = pair
    return True


def _operation(node: NodeProto) -> bytes:
    """The operator and the attributes of a node."""
    plain = NodeProto(op_type=op_of(node), attribute=node.attribute)
    return plain.SerializeToString(deterministic=True)


def _early(site: Site, author: Author, other: NodeProto) -> tuple[NodeProto, list[NodeProto]]:
    """The operator that comes later, with operands that are computed before the earlier one, and
    the nodes between them that are written again."""
    nodes, positions, here = site.scope.owner.node, site.graph.positions, site.place.index
    moved, found = copied(other), set[int]()
    if _at(other.input, LENGTHS):
        moved.input[LENGTHS] = site.node.input[LENGTHS]
    pending = [name for name in moved.input if site.constant(name) is None]
    while pending:
        position = positions.get(name := pending.pop(), -1)
        if position < here or position in found:
            continue
        if position == here or not is_pure(nodes[position]):
            sentence = "an operand of the other direction is drawn, or computed from this one"
            raise site.refused("operands", sentence, name)
        found.add(position)
        pending += scoping.free_names(nodes[position])
    between, names = [nodes[position] for position in sorted(found)], dict[str, str]()
    for node in map(copied, between):
        scoping.rename_free(node, names)
        names |= {name: author.fresh(name) for name in node.output if name}
        replace_all(node.output, [names.get(name, "") for name in node.output])
        author.adopt([node])
    scoping.rename_free(moved, names)
    return moved, between


def _terms(node: NodeProto) -> dict[str, bytes]:
    """The attributes that both have in common; whole numbers are 0 where they are left out."""
    return {
        one.name: one.SerializeToString(deterministic=True)
        for one in node.attribute
        if one.name not in ("direction", "activations")
        and not (one.type == AttributeProto.INT and one.i == 0)
    }


def _joined(site: Site, author: Author, own: str, theirs: str, axis: int) -> str:
    """An operand of both directions; one that is left out is 0."""
    known = [site.constant(name) if name else None for name in (own, theirs)]
    shape = next((one for one in known if one is not None), None)
    if shape is not None:
        known = [
            np.zeros_like(shape) if not name else value
            for name, value in zip((own, theirs), known, strict=True)
        ]
        if known[0] is not None and known[1] is not None:
            return author.value(np.concatenate([known[0], known[1]], axis), "both")
    given = own or theirs
    kind = elem_type_of(site.type_of(given))
    if not kind and not (own and theirs):
        raise site.refused("operands", "an operand has an unknown type", given)
    parts = [
        author.value(value, "own")
        if value is not None
        else name or spelling.zeros(author, spelling.shape_of(author, given), kind)
        for name, value in zip((own, theirs), known, strict=True)
    ]
    return author.op("Concat", *parts, axis=axis)


def _concat(site: Site, names: Sequence[str], axis: int, rank: int) -> int | None:
    """The position of the Concat that is all that reads the outputs of both directions."""
    readers = [site.graph.readers.get(name, []) for name in names]
    if readers[0] != readers[1] or len(readers[0]) != 1 or readers[0][0] < 0:
        return None
    (position,) = readers[0]
    node = site.scope.owner.node[position]
    joins = op_of(node) == "Concat" and list(node.input) == list(names)
    return position if joins and attribute(node, "axis", 0) % rank == axis else None


def _bidirectional(
    name: str,
    first: NodeProto,
    second: NodeProto,
    operands: Sequence[str],
    outputs: Sequence[str],
) -> NodeProto:
    op = op_of(first)
    made = helper.make_node(op, operands, outputs, name=name, direction="bidirectional")
    given = [attribute_proto(node, "activations") for node in (first, second)]
    if any(given):
        default = [one.encode() for one in RECURRENT[op].activations]
        listed = [one.strings if one else default for one in given]
        made.attribute.append(helper.make_attribute("activations", [*listed[0], *listed[1]]))
    kept = _terms(first)
    replace_all(
        made.attribute, [*made.attribute, *(one for one in first.attribute if one.name in kept)]
    )
    return made
