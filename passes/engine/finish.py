"""Finishes an outcome after the rules: dead nodes are removed, new nodes are named, and an
output tells whether all promises of the user about its loops were kept."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from passes.analysis.safety.may_fail import may_go
from passes.analysis.safety.randomness import is_pure
from passes.analysis.safety.shapes_fit import Known
from passes.engine.rounds import Round
from passes.errors import DoesNotFit
from passes.ir import scope as scoping
from passes.ir.live import drop_unread, keep_nodes, live
from passes.ir.model import Model
from passes.ir.names import Names
from passes.ir.operators import bare_op, op_of
from passes.ir.protos import copied
from passes.ir.scope import Owner
from passes.ir.versions import FREE_INITIALIZERS


def name_nodes(model: ModelProto, original: ModelProto, rounds: Sequence[Round]) -> None:
    """Name, in place, the nodes without a name that are new."""
    naming = _Naming(original, rounds)
    nodes = [node for _, owner in scoping.owners(model) for node in _all_nodes(owner)]
    names = Names(node.name for node in nodes)
    for node in nodes:
        if not node.name and naming.is_new(node):
            node.name = names.fresh(naming.name_of(node))


@dataclass(frozen=True)
class Cleaner:
    """Drops what is unused and cannot fail; what was unused in the original stays."""

    original: Model

    def clean(self, model: ModelProto) -> None:
        """Drop dead nodes and initializers, in place."""
        listed = model.ir_version < FREE_INITIALIZERS
        seen = Model(model)

        @cache  # of the main graph, once they are asked for
        def facts() -> Known:
            return Known.of_graph(Model(model), next(scoping.scopes(model)), trusted=False)

        for _, owner in scoping.owners(model):
            main = isinstance(owner, GraphProto)
            self._clean(seen, owner, listed, facts if main else Known.nothing)

    def _clean(self, model: Model, owner: Owner, listed: bool, facts: Callable[[], Known]) -> None:
        """The same for a graph, its bodies first."""
        index = model.index(owner)
        for bodies in index.holders.values():
            for _, graph in bodies:
                self._clean(model, graph, listed, Known.nothing)
        read = index.read
        wanted = read | scoping.ends(owner)
        if any(map(wanted.isdisjoint, index.writes)):
            kept = self._kept(owner, index.nodes, facts)
            if len(kept) < len(index.nodes):
                keep_nodes(owner, kept)
                read = scoping.all_reads(kept)
        if isinstance(owner, GraphProto):
            unread = scoping.initializer_names(owner) - read
            if unread:
                drop_unread(owner, unread - self._unread, listed)

    def _kept(
        self, owner: Owner, nodes: Sequence[NodeProto], facts: Callable[[], Known]
    ) -> list[NodeProto]:
        """The nodes that are read, may be read, or may fail."""

        nothing = Known.nothing()

        def stays(node: NodeProto) -> bool:
            outputs = [name for name in node.output if name]
            if not self._unread.isdisjoint(outputs) or not outputs:
                return True
            return not may_go(node, nothing) and not (is_pure(node) and may_go(node, facts()))

        return live(nodes, scoping.ends(owner), scoping.free_names, stays)[0]

    @cached_property
    def _unread(self) -> set[str]:
        """The values that nothing reads in some graph of the original that defines them, but for
        those of nodes of which something else is read: what takes their place need not have them.
        """
        found: set[str] = set()
        for _, graphs in self.original.graphs:
            for owner in graphs:
                index = self.original.index(owner)
                read = scoping.ends(owner) | index.read
                several = (names for names in index.writes if len(names) > 1)
                used = {name for names in several if not read.isdisjoint(names) for name in names}
                found |= scoping.defined(owner) - read - used
        return found


@dataclass(frozen=True)
class _Naming:
    original: ModelProto
    rounds: Sequence[Round]

    def is_new(self, node: NodeProto) -> bool:
        """Return whether the original has no such node."""
        return (op_of(node), *node.output[:1]) not in self._known

    def name_of(self, node: NodeProto) -> str:
        """The name of a new node: its first output, or one made of the site whose output it
        writes."""
        output = next(filter(None, node.output), "")
        site = self._sites.get(output)
        plain = _kind(node)
        return f"{site}/{plain}" if site else output or plain

    @cached_property
    def _known(self) -> set[tuple[str, ...]]:
        return {(op_of(node), *node.output[:1]) for node in self._nodes}

    @cached_property
    def _sites(self) -> dict[str, str]:
        """The prefix of the names of new values, by the outputs that were rewritten."""
        found: dict[str, str] = {}
        for round_ in self.rounds:
            for rewrite in round_.rewritten:
                label = rewrite.node.name or _kind(rewrite.node)
                for name in rewrite.node.output:
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
    """Return whether a node's name is like those that new nodes get."""
    hints = [re.escape(output) for output in node.output[:1]]
    hints.append(f".*/{re.escape(_kind(node))}")
    return re.fullmatch(rf"({'|'.join(hints)})(_\d+)?", node.name) is not None


def _kind(node: NodeProto) -> str:
    """The operator, as names of values begin with it."""
    return bare_op(node).lower()


class NameTaken(DoesNotFit):
    """The output that is to be added would have a name that the model uses."""


def refuse_taken(model: ModelProto, name: str) -> None:
    """See that a new output may be called `name`.

    Raises:
        NameTaken: a value of the model is called so.
    """
    if name in _names(model):
        raise NameTaken(f"the model has a value called {name!r} already")


def checks_of(rounds: Iterable[Round]) -> list[str]:
    """Return the values in which rewrites store whether a promise was kept."""
    limits = [rewrite.limit for round_ in rounds for rewrite in round_.rewritten]
    return [limit.check for limit in limits if limit is not None and limit.check]


def with_check_output(model: ModelProto, name: str, checks: Sequence[str]) -> ModelProto:
    """The model with an output `name`, bool [], the last: whether all `checks` hold."""
    made = copied(model)
    names = Names(_names(model) | {name})
    if checks:
        held, *others = checks
        for other in others:
            both = names.fresh(f"{name}/and")
            made.graph.node.add(op_type="And", input=[held, other], output=[both])
            held = both
        made.graph.node.add(op_type="Identity", input=[held], output=[name])
    else:
        one = names.fresh(f"{name}/one")  # a float, of which Constants hold nothing else at first
        value = helper.make_tensor("value", TensorProto.FLOAT, [], [1])
        made.graph.node.append(helper.make_node("Constant", [], [one], value=value))
        made.graph.node.append(helper.make_node("Cast", [one], [name], to=TensorProto.BOOL))
    made.graph.output.append(helper.make_tensor_value_info(name, TensorProto.BOOL, []))
    return made


def _names(model: ModelProto) -> set[str]:
    return scoping.all_names(owner for _, owner in scoping.owners(model))
