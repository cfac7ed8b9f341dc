"""Writes nodes of a loop's body outside of the loop, for all iterations at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from onnx import GraphProto, NodeProto, TensorAnnotation, TypeProto, helper

from passes.bodies.tidy import Tidy
from passes.bodies.time_body import TimeBody
from passes.bodies.time_cost import same_bits
from passes.bodies.time_length import Length
from passes.ir import scope as scoping
from passes.ir.live import keep_nodes
from passes.ir.operators import op_of
from passes.ir.protos import copied, named
from passes.loops.form import Collected, Scanned
from passes.operators.table import traits_of
from passes.operators.traits import Shape
from passes.rule import Claim, Edit
from passes.types.value_types import dims_of
from passes.vectorize import Vectorizer
from passes.writing import spelling
from passes.writing.author import Author


class Outside:
    """The nodes written outside, in the names of the body until they are published.

    `vectorizer` writes nodes of the body; a name in `carrying` has time as its first axis.
    """

    def __init__(self, body: TimeBody, author: Author, length: Length) -> None:
        self.body = body
        self.author = author
        self.length = length
        self.inner = author.inside(author.prefix)
        self.vectorizer: Vectorizer = body.vectorizer(self.inner, length.size, ())
        self.annotations: list[TensorAnnotation] = []
        self._taken: set[str] = set()

    def read(self, scanned: Scanned, *, turned: bool) -> None:
        """Write a scanned tensor with time first, under the body's name for its elements; `turned`:
        in reverse."""
        value = time_first(self.body, self.inner, scanned, self.length)
        if turned:
            value = spelling.reversed_rows(self.inner, value)
        self.inner.op("Identity", value, outputs=[scanned.body_input])
        self.vectorizer.carrying.add(scanned.body_input)

    def write(self, nodes: Sequence[NodeProto]) -> None:
        """Write nodes of the body, with the constants of the body that they read."""
        self.take_constants({name for node in nodes for name in scoping.free_names(node)})
        self.vectorizer.nodes(nodes)

    def take_constants(self, names: Collection[str]) -> None:
        """Write the constants of the body among these names."""
        graph = self.body.rows.graph
        read = {*names} - self._taken
        for annotation in graph.quantization_annotation:
            if annotation.tensor_name in read:
                self.annotations.append(annotation)
                read.update(scoping.parameters_of([annotation]))
        self.inner.adopt([], [tensor for tensor in graph.initializer if tensor.name in read])
        for sparse in graph.sparse_initializer:
            name = sparse.values.name
            if name in read:
                self.inner.adopt([helper.make_node("Constant", [], [name], sparse_value=sparse)])
        self._taken |= read

    def publish(self) -> Mapping[str, str]:
        """Hand what was written to the author; returns the new names of the body's values.

        Names of one body must not shadow those of another one.
        """
        nodes, tensors = self.inner.nodes, self.inner.constants
        own = scoping.all_names([self.body.rows.graph]) - {*scoping.captures(self.body.rows.graph)}
        defined = [
            *(tensor.name for tensor in tensors),
            *(out for node in nodes for out in node.output),
        ]
        mapping = {name: self.author.fresh(name) for name in defined if name in own}
        for node in nodes:
            scoping.rename_free(node, mapping)
            for position, name in enumerate(node.output):
                node.output[position] = mapping.get(name, name)
        self.author.adopt(nodes, [named(one, mapping.get(one.name, one.name)) for one in tensors])
        self.annotations = [
            scoping.renamed_annotation(annotation, mapping) for annotation in self.annotations
        ]
        return mapping

    def place(self, collected: Iterable[Collected]) -> Mapping[str, str]:
        """Publish, and write outputs of the loop as it would have collected them; returns the new
        names of the body's values."""
        outputs = [one for one in collected if one.tensor]
        rows = [self.vectorizer.spread(one.body_output) for one in outputs]
        ranks = [self.vectorizer.rank(one.body_output) + 1 if one.axis else 1 for one in outputs]
        names = self.publish()
        for one, value, rank in zip(outputs, rows, ranks, strict=True):
            place_rows(self.author, names.get(value, value), one, rank, turned=one.reversed)
        return names


def time_first(body: TimeBody, author: Author, scanned: Scanned, length: Length) -> str:
    """A scanned tensor with time as axis 0; the model fails where lengths differ."""
    axis, rank = place_of_time(body, scanned)
    value = scanned.tensor
    if length.guarded:
        parts = (author.ints(0), length.size, author.ints(axis))
        value = author.op("Slice", value, *parts)
    return spelling.axis_moved(author, value, axis, 0, rank)


def place_of_time(body: TimeBody, scanned: Scanned) -> tuple[int, int]:
    """The axis of time, counted from the front, and the rank; (0, 0) where no rank is needed.

    Raises:
        Refused: `no-rule` where it needs one that is unknown.
    """
    rank = known_rank(body, scanned)
    if rank is not None:
        return scanned.axis % rank, rank
    if scanned.axis:
        what = f"{scanned.tensor!r} is scanned on axis {scanned.axis}, but its rank is unknown"
        raise body.site.refused("no-rule", what, scanned.tensor)
    return 0, 0


def known_rank(body: TimeBody, scanned: Scanned) -> int | None:
    """The rank of a scanned tensor, None if it is unknown."""
    dims = dims_of(body.site.type_of(scanned.tensor))
    if dims is not None:
        return len(dims)
    rank = body.row_rank(scanned.body_input)
    return None if rank is None else rank + 1


def place_rows(
    author: Author, value: str, collected: Collected, rank: int, *, turned: bool
) -> None:
    """Write [time, ...] as what a loop collects, in reverse if it is `turned`.

    `rank` is that of the result; it is ignored where the axis is 0.
    """
    axis, output = collected.axis % rank if collected.axis else 0, collected.tensor
    if turned:
        value = spelling.reversed_rows(author, value, [] if axis else [output])
    if axis:
        spelling.axis_moved(author, value, 0, axis, rank, [output])
    elif not turned:
        author.op("Identity", value, outputs=[output])


def remaining_body(
    graph: GraphProto, stay: Sequence[NodeProto], captured: Mapping[str, str]
) -> GraphProto:
    """A body with only the nodes that stay, which read outer names for what is now captured."""
    body = copied(graph)
    keep_nodes(body, stay)
    for node in body.node:
        scoping.rename_free(node, captured)
    return body


def cleaned(
    body: TimeBody, author: Author, outside: Outside, moved: Iterable[NodeProto], note: str
) -> Edit:
    """The Edit of what was written in place of `moved`, without Identities and unread nodes."""
    site = body.site
    written = {name for node in author.nodes for name in node.output}

    def type_of(name: str) -> TypeProto | None:
        return None if name in written else site.type_of(name)

    tidy = Tidy(author, frozenset(filter(None, site.node.output)), site.constant, type_of)
    nodes, constants = tidy.clean()
    annotations = tuple(outside.annotations)
    nodes = without_pairs(nodes, tidy.keep)
    return Edit(
        tuple(nodes),
        tuple(constants),
        note=note,
        exact=all(map(same_bits, moved)),
        annotations=annotations,
        claim=Claim(entered=body.entered),
        context=outside.length.context,
        extras=author.extras(nodes),
    )


def without_pairs(nodes: Sequence[NodeProto], keep: Collection[str]) -> list[NodeProto]:
    """The nodes without each Unsqueeze that a Squeeze of the same axes undoes.

    Only elementwise ops may be between them, each read only by the next one; `keep` are
    the names that have other readers. onnxruntime fuses an activation only with the Conv or product
    directly before it.
    """
    return _Pairs(nodes, keep).removed()


class _Pairs:
    def __init__(self, nodes: Sequence[NodeProto], keep: Collection[str]) -> None:
        self.nodes, self.keep = nodes, keep
        self.producers = {name: node for node in nodes for name in node.output if name}
        reads = [name for node in nodes for name in scoping.free_names(node)]
        self.reads = dict.fromkeys(reads, 0) | dict.fromkeys(keep, 2)
        for name in reads:
            self.reads[name] += 1

    def removed(self) -> list[NodeProto]:
        """Rewire the readers of the pairs; the chains between them keep their names."""
        same: dict[str, str] = {}
        gone: set[int] = set()
        for node in self.nodes:
            chain = self._undone_by(node)
            if not chain:
                continue
            first = chain[-1]
            last = node.input[0]
            source = first.input[0]
            gone |= {id(node), id(first)}
            same[first.output[0]] = same.get(source, source)
            same[node.output[0]] = same.get(last, last) if len(chain) == 1 else last
        return [_reading(node, same) for node in self.nodes if id(node) not in gone]

    def _undone_by(self, node: NodeProto) -> list[NodeProto]:
        """The nodes from a Squeeze back to the Unsqueeze that it undoes, which comes last."""
        if op_of(node) != "Squeeze" or len(node.input) < 2 or node.output[0] in self.keep:
            return []
        found: list[NodeProto] = []
        name = node.input[0]
        while (producer := self.producers.get(name)) is not None and self.reads[name] == 1:
            found.append(producer)
            if op_of(producer) == "Unsqueeze":
                return found if list(producer.input[1:]) == list(node.input[1:]) else []
            if traits_of(producer).shape is not Shape.ELEMENTWISE:
                return []
            name = producer.input[0]
        return []


def _reading(node: NodeProto, same: dict[str, str]) -> NodeProto:
    """The node with its inputs replaced."""
    if not any(name in same for name in scoping.free_names(node)):
        return node
    copy = copied(node)
    scoping.rename_free(copy, same)
    return copy
