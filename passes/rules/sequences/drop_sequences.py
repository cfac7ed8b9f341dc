"""The rule `drop-sequences`: sequences and optionals of known content become plain tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace

import numpy as np
from onnx import NodeProto, helper, numpy_helper

from passes.analysis.bodies.context import context_of
from passes.analysis.integers.integer_ops import is_settled
from passes.ir import scope as scoping
from passes.ir.attributes import attribute
from passes.ir.graph_index import OUTPUT
from passes.ir.live import orphaned
from passes.ir.operators import Registry, op_of
from passes.ir.places import graphs_below
from passes.operators.exactness import Array
from passes.operators.table import traits_of
from passes.operators.traits import Fails
from passes.rule import Claim, Edit, NothingToDo, Refused, Site, nodes_of, register
from passes.rules.sequences import sliced
from passes.rules.sequences.elements import (
    CHANGING,
    OPERATORS,
    element_at,
    elements_of,
    origin_of,
    slices_of,
    with_numbers,
)
from passes.rules.sequences.written_out import split_up
from passes.writing import spelling
from passes.writing.author import Author

#: What replaces the operators that read a sequence or optional.
_READS: Registry[Callable[[Site], Edit]] = Registry()
_PROOF = "nothing reads it, and it cannot fail"


@register("drop-sequences", considers=nodes_of(*OPERATORS), optional=True)
def drop_sequences(site: Site) -> Edit:
    """Replace sequences and optionals by plain tensors if their contents are known.

    Before:

        <int64 last = {-1}>
        s = SequenceConstruct (a, b)
        t = SequenceInsert (s, c)
        y = SequenceAt (t, last)
        z = ConcatFromSequence <axis = 0> (t)

    After:

        y = Identity (c)
        z = Concat <axis = 0> (a, b, c)

    A SplitToSequence becomes a Split. Of a tensor that is split into all its slices, the number
    may be unknown: a SequenceAt becomes a Gather, a SequenceLength a size, a ConcatFromSequence
    the tensor with its axes in another order. What fails on the sequence still fails. A
    SequenceMap stays; `convert --opset 16` writes it as a Loop, which can be unrolled.

    Refuses:
    - `length-unknown`: it is unknown how many elements a sequence has
    - `position-unknown`: a position in a sequence is known only at run time
    - `out-of-range`: a position is outside of the sequence, on which the model fails
    - `empty`: an empty sequence is joined, or an empty optional read, on which the model fails
    - `element-unknown`: whether an optional is empty is known only at run time
    - `used-as-sequence`: an output of the model, a loop, an If or a function needs the sequence
    - `hidden`: a body has another value of the name of an element
    - `keepdims-unclear`: a SplitToSequence into parts of one size has `keepdims = 0`
    - `type-unknown`: the element type of an empty sequence is unknown
    - `zero-size`: before opset 14, elements that are joined may have sizes of 0
    - `attribute-reference`: an attribute of the operator is one of the function around it
    - `too-many-nodes`: the elements would take more nodes than are allowed
    """
    node = site.node
    if not is_settled(node):
        what = f"callers of the function around choose an attribute of {op_of(node)}"
        raise site.refused("attribute-reference", what)
    if not any(_uses(site, name) for name in node.output if name) and _may_go(site, node):
        return Edit((), note="unused", covered=_unused(site, ()), claim=Claim(proof=_PROOF))
    read = _READS.get(op_of(node))
    if read is not None:
        return read(site)
    for name in filter(None, node.output):
        for user in _uses(site, name):
            if isinstance(user, str) or op_of(user) not in OPERATORS:
                user = user if isinstance(user, str) else op_of(user)
                what = f"the sequence or optional {name!r} is needed as it is, by {user}"
                raise site.refused("used-as-sequence", what, name)
    if op_of(node) == "SplitToSequence":
        return _split(site)
    if op_of(node) in CHANGING:
        elements_of(site, node.output[0])
    raise NothingToDo


def _split(site: Site) -> Edit:
    slices = slices_of(site, site.node.output[0])
    users = _uses(site, site.node.output[0])
    if slices is not None and all(
        not isinstance(user, str) and sliced.suits(site, slices, user) for user in users
    ):
        raise NothingToDo  # these read the tensor
    return split_up(site)


def _uses(site: Site, name: str) -> list[NodeProto | str]:
    """Return the readers of a value, at any depth: nodes, or the output of a graph."""
    nodes, found = site.scope.owner.node, list[NodeProto | str]()
    for position in site.graph.readers.get(name, ()):
        if position == OUTPUT:
            found.append(f"an output of the {'body' if site.scope.outer else 'graph'}")
            continue
        node = nodes[position]
        if op_of(node) == "Identity":
            found += _uses(site, node.output[0])
        elif name in node.input:
            found.append(node)
        inner = [below for _, graph in scoping.subgraphs(node) for below in graphs_below(graph)]
        for graph in inner:
            found += ["an output of a body"] * (name in scoping.output_names(graph))
            found += [user for user in graph.node if name in user.input]
    return found


def _may_go(site: Site, node: NodeProto) -> bool:
    """Return whether an unused node cannot fail."""
    if op_of(node) in CHANGING:
        try:
            elements_of(site, node.output[0])
        except (Refused, NothingToDo):
            return False
        return True
    if op_of(node) == "SplitToSequence":
        return slices_of(site, node.output[0]) is not None
    return op_of(node) in ("Identity", *OPERATORS) and traits_of(node).fails is Fails.NEVER


def _unused(site: Site, written: Iterable[NodeProto], gone: Iterable[int] = ()) -> tuple[int, ...]:
    """The positions of the nodes that are `gone`, and of those that only wrote the sequence that
    the site's node reads."""
    still = {name for node in written for name in scoping.free_names(node)}

    def goes(node: NodeProto) -> bool:
        return still.isdisjoint(node.output) and _may_go(site, node)

    here = site.place.index
    return tuple(sorted(orphaned(site.graph, site.node.input, {here, *gone}, goes) - {here}))


def _edit(
    site: Site,
    author: Author,
    note: str,
    context: Iterable[NodeProto],
    others: Iterable[int] = (),
) -> Edit:
    nodes = tuple(author.nodes)
    covered = _unused(site, nodes, others)
    return replace(author.edit(note, nodes), covered=covered, context=with_numbers(site, context))


@_READS.enter("SequenceAt")
def _at(site: Site) -> Edit:
    """Write what the site's node reads, and what others read of the same sequence: one region."""
    author, slices = Author.at(site), slices_of(site, site.node.input[0])
    others = _known_reads(site)
    nodes = [site.node, *others.values()]
    positions = context_of(site, dict.fromkeys(node.input[1] for node in nodes))
    if slices is not None and sliced.suits(site, slices, site.node):
        for node in nodes:
            sliced.read(site, author, slices, node)
        return _edit(site, author, "slices", (*slices.nodes, *positions), others)
    held, found = elements_of(site, site.node.input[0]), dict[int, NodeProto]()
    author.op("Identity", element_at(site, held, site.node), outputs=site.node.output)
    for place, node in others.items():
        with suppress(Refused):  # it is refused itself
            author.op("Identity", element_at(site, held, node), outputs=node.output)
            found[place] = node
    return _edit(site, author, "elements", (*held.nodes, *positions), found)


def _known_reads(site: Site) -> dict[int, NodeProto]:
    """The SequenceAts after the site that read the same sequence at constant positions, as the site
    does: these depend on nothing that is read, and only the first site covers the others."""
    if site.options.only or site.constant(site.node.input[1]) is None:
        return {}
    here, nodes = site.place.index, site.scope.owner.node
    behind = [place for place in site.graph.readers[site.node.input[0]] if place > here]
    return {
        place: nodes[place]
        for place in behind
        if op_of(nodes[place]) == "SequenceAt"
        and nodes[place].input[0] == site.node.input[0]
        and site.constant(nodes[place].input[1]) is not None
    }


@_READS.enter("SequenceLength")
def _length(site: Site) -> Edit:
    author, slices = Author.at(site), slices_of(site, site.node.input[0])
    if slices is not None:
        sliced.measure(site, author, slices)
        return _edit(site, author, "the size of an axis", slices.nodes)
    held = elements_of(site, site.node.input[0])
    return _known(site, np.array(len(held.names), np.int64), held.nodes)


def _known(site: Site, value: Array, context: Iterable[NodeProto]) -> Edit:
    author = Author.at(site)
    tensor = numpy_helper.from_array(value)
    author.adopt([helper.make_node("Constant", [], site.node.output, value=tensor)])
    return _edit(site, author, "known", context)


@_READS.enter("ConcatFromSequence")
def _join(site: Site) -> Edit:
    name, (output,) = site.node.input[0], site.node.output
    author, slices = Author.at(site), slices_of(site, name)
    if slices is not None and sliced.suits(site, slices, site.node):
        sliced.join(site, author, slices)
        return _edit(site, author, "the tensor", slices.nodes)
    held = elements_of(site, name)
    if not held.names:
        what = f"ConcatFromSequence fails on {name!r}, which is empty, and so must the new model"
        raise site.refused("empty", what, name)
    axis, parts = attribute(site.node, "axis", 0) or 0, held.names
    if attribute(site.node, "new_axis", 0) == 1:
        parts = tuple(spelling.unsqueeze(author, part, axis) for part in parts)
    author.op("Concat", *parts, outputs=[output], axis=axis)
    return _edit(site, author, f"{len(parts)} elements", held.nodes)


@_READS.enter("OptionalGetElement")
def _get(site: Site) -> Edit:
    (name,), author = site.node.input, Author.at(site)
    optional, nodes = _optional(site, name)
    if optional is not None and not any(optional.input):
        what = f"the optional {name!r} is empty, which fails, and so must the new model"
        raise site.refused("empty", what, name)
    element = name if optional is None else optional.input[0]
    author.op("Identity", element, outputs=site.node.output)
    return _edit(site, author, "the element", nodes)


@_READS.enter("OptionalHasElement")
def _has(site: Site) -> Edit:
    names = list(filter(None, site.node.input))
    if not names:
        return _known(site, np.array(False), ())
    optional, nodes = _optional(site, names[0])
    return _known(site, np.array(optional is None or any(optional.input)), nodes)


def _optional(site: Site, name: str) -> tuple[NodeProto | None, list[NodeProto]]:
    """Return the node that makes an optional, None for a tensor or sequence; with the nodes that
    only pass it on."""
    nodes = origin_of(site, name)
    if nodes and op_of(nodes[0]) == "Optional":
        return nodes[0], nodes
    known = site.type_of(name)
    if known is None or known.WhichOneof("value") not in ("tensor_type", "sequence_type"):
        what = f"whether the optional {name!r} has an element is known only at run time"
        raise site.refused("element-unknown", what, name)
    return None, []
