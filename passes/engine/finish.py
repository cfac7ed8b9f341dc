"""The last touch to an outcome: nothing that nobody reads stays, and new nodes have names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from onnx import GraphProto, ModelProto, NodeProto

from passes.analysis.safety.speculation import SPECULATABLE
from passes.engine.rounds import Round
from passes.ir import scope as scoping
from passes.ir.names import Names
from passes.ir.operators import called_key, op_of
from passes.ir.repeated import replace_all
from passes.ir.scope import Owner
from passes.ir.versions import FREE_INITIALIZERS
from passes.writing.splicing import drop_unread

#: A string may be no number, and an operand may not fit another one.
_MAY_FAIL = ("Cast", "CastLike")


def finish(model: ModelProto, original: ModelProto, rounds: Sequence[Round]) -> None:
    """Drop, in place, what nobody reads any more and cannot fail, and name the nodes without a name
    that are new. What the original has like that stays as it is."""
    finishing = _Finishing(original, rounds)
    listed = model.ir_version < FREE_INITIALIZERS
    tops = [owner for _, owner in scoping.owners(model)]
    for owner in tops:
        finishing.clean(owner, listed)
    names = Names(node.name for owner in tops for node in _all_nodes(owner))
    for owner in tops:
        for node in _all_nodes(owner):
            if not node.name and finishing.is_new(node):
                node.name = names.fresh(finishing.name_of(node))


@dataclass(frozen=True)
class _Finishing:
    original: ModelProto
    rounds: Sequence[Round]

    def clean(self, owner: Owner, listed: bool) -> None:
        """Drop dead nodes and initializers of a graph, those in its bodies first."""
        for node in owner.node:
            for _, graph in scoping.subgraphs(node):
                self.clean(graph, listed)
        nodes = list(owner.node)
        kept = self._kept(owner, nodes)
        if len(kept) < len(nodes):
            replace_all(owner.node, kept)
            defined = scoping.defined(owner)
            replace_all(owner.value_info, [one for one in owner.value_info if one.name in defined])
        if isinstance(owner, GraphProto):
            drop_unread(owner, scoping.initializer_names(owner) - self._unread, listed)

    def _kept(self, owner: Owner, nodes: Sequence[NodeProto]) -> list[NodeProto]:
        """Those that somebody reads, or may, or that may fail."""
        read = set(scoping.output_names(owner))
        if isinstance(owner, GraphProto):
            for annotation in owner.quantization_annotation:
                read.update(one.value for one in annotation.quant_parameter_tensor_names)
        kept = []
        for node in reversed(nodes):
            outputs = [name for name in node.output if name]
            live = not outputs or any(name in read or name in self._unread for name in outputs)
            if live or not _cannot_fail(node):
                read.update(scoping.free_names(node))
                kept.append(node)
        return kept[::-1]

    def is_new(self, node: NodeProto) -> bool:
        """Whether the original has no such node."""
        return (op_of(node), *node.output[:1]) not in self._known

    def name_of(self, node: NodeProto) -> str:
        """What to call a new node: as its first output, or by the site whose output it writes."""
        output = next(filter(None, node.output), "")
        site = self._sites.get(output)
        plain = _kind(node)
        return f"{site}/{plain}" if site else output or plain

    @cached_property
    def _known(self) -> set[tuple[str, ...]]:
        return {(op_of(node), *node.output[:1]) for node in self._nodes}

    @cached_property
    def _unread(self) -> set[str]:
        """What nobody reads in some graph of the original that defines it."""
        found: set[str] = set()
        for _, top in scoping.owners(self.original):
            for owner in scoping.graphs_below(top):
                read = set(scoping.output_names(owner))
                for node in owner.node:
                    read.update(scoping.free_names(node))
                found |= scoping.defined(owner) - read
        return found

    @cached_property
    def _sites(self) -> dict[str, str]:
        """For the outputs of what was rewritten, how new values of that site begin."""
        found: dict[str, str] = {}
        for round_ in self.rounds:
            for one in round_.rewritten:
                label = one.node.name or _kind(one.node)
                for name in one.node.output:
                    found.setdefault(name, label)
        return found

    @property
    def _nodes(self) -> Iterator[NodeProto]:
        for _, owner in scoping.owners(self.original):
            yield from _all_nodes(owner)


def _all_nodes(owner: Owner) -> Iterator[NodeProto]:
    for graph in scoping.graphs_below(owner):
        yield from graph.node


def is_given_name(node: NodeProto) -> bool:
    """Whether a node is called as new nodes are."""
    hints = [re.escape(output) for output in node.output[:1]]
    hints.append(f".*/{re.escape(_kind(node))}")
    return re.fullmatch(rf"({'|'.join(hints)})(_\d+)?", node.name) is not None


def _kind(node: NodeProto) -> str:
    """The operator as names of values begin with it."""
    return called_key(node)[1].lower()


def _cannot_fail(node: NodeProto) -> bool:
    """Whether a node gives a result whatever it reads: it has no second operand to fit."""
    op = op_of(node)
    return len(node.input) < 2 and op in SPECULATABLE and op not in _MAY_FAIL
