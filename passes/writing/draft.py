"""A node in the making: quickly copied, renamed and dropped, a message only once it is to stay."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from onnx import AttributeProto, GraphProto, NodeProto, StringStringEntryProto

from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.ir.repeated import replace_all

#: The metadata that says which iteration a node was written for.
ITERATION_KEY = "passes.iteration"


@dataclass(frozen=True, slots=True)
class Pattern:
    """What all copies of a node have in common: `rest` is the node without inputs and outputs.

    `tag` is an entry of its metadata, whose value is set for each copy; None where there is only
    the node itself, which `rest` is then, as a whole. `op` is what `op_of` gives for it.
    """

    rest: NodeProto
    op: str
    nests: bool
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    tag: StringStringEntryProto | None = None

    @classmethod
    def of(cls, node: NodeProto) -> Pattern:
        """Take a node apart."""
        rest = NodeProto()
        rest.CopyFrom(node)
        del rest.input[:]
        del rest.output[:]
        return cls(*_said(node, rest), rest.metadata_props.add(key=ITERATION_KEY))

    def copied(self, mapping: dict[str, str], fresh: Callable[[str], str], tag: str) -> Draft:
        """A copy that reads what `mapping` says, and adds to it what it writes under new names."""
        assert self.tag is not None
        given = list(map(mapping.get, self.inputs, self.inputs))
        draft = Draft(self, given, [], tag)
        if self.nests:
            draft = Draft.of(draft.node())
            for _, graph in scoping.subgraphs(draft.pattern.rest):
                scoping.rename_captures(graph, mapping)
        for name in self.outputs:
            made = mapping[name] = fresh(f"{name}/{tag}") if name else ""
            draft.output.append(made)
        return draft


@dataclass(slots=True)
class Draft:
    """What a node reads and writes, which may still change, and its pattern, which tells the rest.

    `tag` belongs to a copy of a pattern.
    """

    pattern: Pattern
    input: list[str]
    output: list[str]
    tag: str = ""

    @classmethod
    def of(cls, node: NodeProto) -> Draft:
        """A node that is there already, and that is changed once this is to stay."""
        pattern = Pattern(*_said(node, node))
        return cls(pattern, list(pattern.inputs), list(pattern.outputs))

    @property
    def op_type(self) -> str:
        """The operator's name within its domain."""
        return self.pattern.rest.op_type

    @property
    def domain(self) -> str:
        """The domain of the operator."""
        return self.pattern.rest.domain

    @property
    def attribute(self) -> Sequence[AttributeProto]:
        """The attributes."""
        return self.pattern.rest.attribute

    def reads(self) -> list[str]:
        """What it reads, in its bodies, too."""
        return scoping.free_names(self.node()) if self.pattern.nests else self.input

    def rename(self, mapping: Mapping[str, str]) -> None:
        """Rename what it reads, in its bodies, too."""
        if self.pattern.nests:  # these look through all names that they are given, so few
            wanted = {name: mapping[name] for name in self.reads() if name in mapping}
            for _, graph in scoping.subgraphs(self.pattern.rest) if wanted else ():
                scoping.rename_captures(graph, wanted)
        if not mapping.keys().isdisjoint(self.input):
            self.input = [mapping.get(name, name) for name in self.input]

    def node(self, make: Callable[[], NodeProto] = NodeProto) -> NodeProto:
        """The node; where it is a copy, one that is made anew."""
        pattern = self.pattern
        node = pattern.rest
        if pattern.tag is None:
            for field, names in ((node.input, self.input), (node.output, self.output)):
                if field[:] != names:
                    replace_all(field, names)
            return node
        pattern.tag.value = self.tag
        node = make()
        node.CopyFrom(pattern.rest)
        node.input.extend(self.input)
        node.output.extend(self.output)
        if pattern.name:
            node.name = f"{pattern.name}/{self.tag}"
        return node


def _said(
    node: NodeProto, rest: NodeProto
) -> tuple[NodeProto, str, bool, str, tuple[str, ...], tuple[str, ...]]:
    nests = scoping.holds_graphs(node)
    return rest, op_of(node), nests, node.name, tuple(node.input), tuple(node.output)


def drafts_of(nodes: Iterable[NodeProto]) -> list[Draft]:
    """Drafts of nodes that are there already."""
    return list(map(Draft.of, nodes))


def nodes_of(drafts: Iterable[Draft]) -> list[NodeProto]:
    """The nodes, copies in one place: a message of its own takes several times as much."""
    make = GraphProto().node.add
    return [draft.node(make) for draft in drafts]
