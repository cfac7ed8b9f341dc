"""Writes nodes of a loop's body outside of the loop, for all iterations at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from onnx import GraphProto, NodeProto, TensorAnnotation, TensorProto, TypeProto, helper

from passes.ir import scope as scoping
from passes.ir.repeated import replace_all
from passes.loops.form import Scanned
from passes.rule import Edit, Refused
from passes.rules.time_axis.rank_pairs import without_pairs
from passes.rules.time_axis.time_body import TimeBody
from passes.rules.time_axis.time_length import Length
from passes.types.value_types import dims_of
from passes.vectorize import Vectorizer
from passes.writing import spelling
from passes.writing.author import Author
from passes.writing.tidy import Tidy


class Outside:
    """The text of what goes outside, in the names of the body until it is `published`.

    `at` writes nodes of the body; a name in `carrying` has time as its first axis.
    """

    def __init__(self, body: TimeBody, author: Author, length: Length) -> None:
        self.body = body
        self.author = author
        self.length = length
        self.inner = author.inside(author.prefix)
        self.at: Vectorizer = body.vectorizer(self.inner, length.size, ())
        self.annotations: list[TensorAnnotation] = []
        self._taken: set[str] = set()

    def read(self, one: Scanned, *, turned: bool) -> None:
        """Write a scanned tensor with time in front under the name that the body has for its
        elements; `turned`: last first."""
        value = time_first(self.body, self.inner, one, self.length)
        if turned:
            value = spelling.reversed_rows(self.inner, value)
        self.inner.op("Identity", value, outputs=[one.body_input])
        self.at.carrying.add(one.body_input)

    def write(self, nodes: Sequence[NodeProto]) -> None:
        """Write nodes of the body, with the constants of the body that they read."""
        self.take_constants({name for node in nodes for name in scoping.free_names(node)})
        self.at.nodes(nodes)

    def take_constants(self, names: Collection[str]) -> None:
        """Write the constants of the body among these names."""
        graph = self.body.rows.graph
        wanted = {*names} - self._taken
        for one in graph.quantization_annotation:
            if one.tensor_name in wanted:
                self.annotations.append(one)
                wanted.update(entry.value for entry in one.quant_parameter_tensor_names)
        self.inner.adopt([], [one for one in graph.initializer if one.name in wanted])
        for sparse in graph.sparse_initializer:
            name = sparse.values.name
            if name in wanted:
                self.inner.adopt([helper.make_node("Constant", [], [name], sparse_value=sparse)])
        self._taken |= wanted

    def publish(self) -> Mapping[str, str]:
        """Hand what was written to the author; answers with the new names of the body's values.

        What meant something in one body alone must not hide a name of another one.
        """
        nodes, tensors = self.inner.nodes, self.inner.constants
        own = scoping.all_names([self.body.rows.graph]) - {*scoping.captures(self.body.rows.graph)}
        made = [*(one.name for one in tensors), *(out for one in nodes for out in one.output)]
        mapping = {name: self.author.fresh(name) for name in made if name in own}
        for node in nodes:
            scoping.rename_free(node, mapping)
            for position, name in enumerate(node.output):
                node.output[position] = mapping.get(name, name)
        self.author.adopt(nodes, [_named(one, mapping) for one in tensors])
        self.annotations = [scoping.renamed_annotation(one, mapping) for one in self.annotations]
        return mapping


def time_first(body: TimeBody, author: Author, one: Scanned, length: Length) -> str:
    """A scanned tensor with time as axis 0; the model fails where lengths do not agree."""
    axis, rank = place_of_time(body, one)
    value = one.tensor
    if length.guarded:
        parts = (author.ints(0), length.size, author.ints(axis))
        value = author.op("Slice", value, *parts)
    if axis:
        perm = [axis, *(other for other in range(rank) if other != axis)]
        value = author.op("Transpose", value, perm=perm)
    return value


def place_of_time(body: TimeBody, one: Scanned) -> tuple[int, int]:
    """The axis of time, counted from the front, and the rank; (0, 0) where that needs no rank.

    Raises:
        Refused: `no-rule` where it needs one that nothing tells.
    """
    rank = known_rank(body, one)
    if rank is not None:
        return one.axis % rank, rank
    if one.axis:
        raise Refused(
            "no-rule",
            f"{one.tensor!r} is scanned on axis {one.axis}, but nothing tells its rank",
            [body.site.path, one.tensor],
        )
    return 0, 0


def known_rank(body: TimeBody, one: Scanned) -> int | None:
    """The rank of a scanned tensor, None where nothing tells it."""
    dims = dims_of(body.site.type_of(one.tensor))
    if dims is not None:
        return len(dims)
    rank = body.row_rank(one.body_input)
    return None if rank is None else rank + 1


def place_rows(
    author: Author, value: str, axis: int, rank: int, *, turned: bool, output: str
) -> None:
    """Write [time, ...] as what a loop collects on an axis of the result, perhaps last first.

    `rank` is that of the result; it does not count where the axis is 0.
    """
    axis = axis % rank if axis else 0
    if turned:
        value = spelling.reversed_rows(author, value, [] if axis else [output])
    if axis:
        perm = list(range(1, rank))
        perm.insert(axis, 0)
        author.op("Transpose", value, outputs=[output], perm=perm)
    elif not turned:
        author.op("Identity", value, outputs=[output])


def remaining_body(
    graph: GraphProto, stay: Sequence[NodeProto], captured: Mapping[str, str]
) -> GraphProto:
    """A body with the nodes that stay, which read outer names for what is captured now."""
    body = GraphProto()
    body.CopyFrom(graph)
    del body.node[:]
    body.node.extend(stay)
    for node in body.node:
        scoping.rename_free(node, captured)
    read = {name for node in body.node for name in scoping.free_names(node)}
    replace_all(body.initializer, [one for one in body.initializer if one.name in read])
    sparse = [one for one in body.sparse_initializer if one.values.name in read]
    replace_all(body.sparse_initializer, sparse)
    own = scoping.defined(body)
    replace_all(body.value_info, [one for one in body.value_info if one.name in own])
    annotations = [one for one in body.quantization_annotation if one.tensor_name in own]
    replace_all(body.quantization_annotation, annotations)
    return body


def cleaned(body: TimeBody, author: Author, outside: Outside, *, note: str, exact: bool) -> Edit:
    """The Edit of what was written; Identities and what nobody reads go."""
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
        exact=exact,
        tidies=True,
        annotations=annotations,
        entered=body.entered,
        context=outside.length.context,
        extras=author.extras(nodes),
    )


def _named(tensor: TensorProto, mapping: Mapping[str, str]) -> TensorProto:
    if tensor.name not in mapping:
        return tensor
    copy = TensorProto()
    copy.CopyFrom(tensor)
    copy.name = mapping[tensor.name]
    return copy
