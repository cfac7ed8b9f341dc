"""Drafts of nodes: cheap to copy, rename and drop; those that stay become messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from onnx import AttributeProto, GraphProto, NodeProto, StringStringEntryProto

from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.ir.protos import copied, replace_all

#: The metadata key that says which iteration a node was written for.
ITERATION_KEY = "passes.iteration"
#: Its values for a loop over blocks of iterations, and one over iterations that make no block, or
#: do not run at once.
BLOCKS, ONE_BY_ONE = "blocks", "one by one"


def runs_in_blocks(node: NodeProto, *kinds: str) -> bool:
    """Return whether a loop was written to run over blocks, or over what these leave to it; of
    these `kinds`, if any are given."""
    return any(
        entry.key == ITERATION_KEY and entry.value in (kinds or (BLOCKS, ONE_BY_ONE))
        for entry in node.metadata_props
    )


@dataclass(frozen=True, slots=True)
class Pattern:
    """The part common to all copies of a node: `rest` is the node without inputs and outputs.

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
        rest = copied(node)
        del rest.input[:]
        del rest.output[:]
        return cls(*_parts(node, rest), rest.metadata_props.add(key=ITERATION_KEY))

    def copied(self, mapping: dict[str, str], fresh: Callable[[str], str], tag: str) -> Draft:
        """A copy that reads what `mapping` maps to, and adds its own new names to it."""
        assert self.tag is not None
        inputs = list(map(mapping.get, self.inputs, self.inputs))
        draft = Draft(self, inputs, [], tag)
        if self.nests:
            draft = Draft.of(draft.node())
            for _, graph in scoping.subgraphs(draft.pattern.rest):
                scoping.rename_captures(graph, mapping)
        for name in self.outputs:
            new = mapping[name] = fresh(f"{name}/{tag}") if name else ""
            draft.output.append(new)
        return draft


@dataclass(slots=True)
class Draft:
    """The inputs and outputs of a node, which may still change, and its pattern, with the rest.

    `tag` belongs to a copy of a pattern.
    """

    pattern: Pattern
    input: list[str]
    output: list[str]
    tag: str = ""

    @classmethod
    def of(cls, node: NodeProto) -> Draft:
        """A draft of an existing node, which is changed only if the draft is to stay."""
        pattern = Pattern(*_parts(node, node))
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
        """The names that it reads, in its bodies, too."""
        return scoping.free_names(self.node()) if self.pattern.nests else self.input

    def rename(self, mapping: Mapping[str, str]) -> None:
        """Rename what it reads, in its bodies, too."""
        if self.pattern.nests:  # renaming looks through all names that it is given, so few
            captured = {name: mapping[name] for name in self.reads() if name in mapping}
            for _, graph in scoping.subgraphs(self.pattern.rest) if captured else ():
                scoping.rename_captures(graph, captured)
        if not mapping.keys().isdisjoint(self.input):
            self.input = [mapping.get(name, name) for name in self.input]

    def node(self, make: Callable[[], NodeProto] = NodeProto) -> NodeProto:
        """The node; for a copy, a new one."""
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


def _parts(
    node: NodeProto, rest: NodeProto
) -> tuple[NodeProto, str, bool, str, tuple[str, ...], tuple[str, ...]]:
    nests = scoping.holds_graphs(node)
    return rest, op_of(node), nests, node.name, tuple(node.input), tuple(node.output)


def drafts_of(nodes: Iterable[NodeProto]) -> list[Draft]:
    """Drafts of existing nodes."""
    return list(map(Draft.of, nodes))


def nodes_of(drafts: Iterable[Draft]) -> list[NodeProto]:
    """The nodes, copies in one graph: a message of its own takes several times as long."""
    make = GraphProto().node.add
    return [draft.node(make) for draft in drafts]
