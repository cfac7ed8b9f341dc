"""Tracks which sites `--only` selects, also once rules have rewritten, moved or copied them.

The patterns are matched once, against the paths and names of the nodes of the original model:
paths count the nodes, so each rewrite changes those after it. From then on the metadata of every
node tells whether it is selected. The mark follows the node, into the copies of a body too,
and nodes that a rule writes are selected if its site was. Before the model is written, the marks
are removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from onnx import ModelProto, NodeProto

from passes.errors import DoesNotFit, nearest
from passes.ir import scope as scoping
from passes.ir.protos import copied

_KEY = "passes.only"
_MEANT, _NOT_MEANT = "meant", "not meant"


class NothingMatches(DoesNotFit):
    """A pattern of `--only`, `--keep` or `--half` matches no node."""


def marked(model: ModelProto, patterns: Sequence[str]) -> ModelProto:
    """A copy of a model, its nodes marked by whether a pattern matches their path or name.

    Raises:
        NothingMatches: one of the patterns matches no node.
    """
    copy = copied(model)
    matched: set[str] = set()
    sites: list[str] = []
    for place in scoping.walk_model(copy):
        names = [name for name in (place.path, place.node.name) if name]
        meant = {pattern for pattern in patterns if matches(pattern, names)}
        matched |= meant
        place.node.metadata_props.add(key=_KEY, value=_MEANT if meant else _NOT_MEANT)
        if scoping.holds_graphs(place.node):
            sites.append(place.path)
    for pattern in patterns:
        if pattern not in matched:
            close = nearest(pattern, sites) if sites else "the model has no loop and no branch"
            raise NothingMatches(f"no node has a path or name that matches {pattern!r}; {close}")
    return copy


def matches(pattern: str, names: Sequence[str]) -> bool:
    """Return whether a pattern is one of the names, which may hold brackets, or matches it."""
    return any(name == pattern or fnmatchcase(name, pattern) for name in names)


def is_meant(node: NodeProto) -> bool:
    """Return whether a node of a marked model is selected, or is new: then its site was
    selected."""
    return all(entry.key != _KEY or entry.value == _MEANT for entry in node.metadata_props)


def hand_on(site: NodeProto, nodes: Iterable[NodeProto]) -> None:
    """Mark, in place, the nodes that replace a node that is not selected; nodes from a body of that
    node have marks of their own."""
    if is_meant(site):
        return
    for node in _below(nodes):
        if all(entry.key != _KEY for entry in node.metadata_props):
            node.metadata_props.add(key=_KEY, value=_NOT_MEANT)


def unmark(model: ModelProto) -> None:
    """Remove the marks, in place."""
    for _, owner in scoping.owners(model):
        for node in _below(owner.node):
            for position in reversed(range(len(node.metadata_props))):
                if node.metadata_props[position].key == _KEY:
                    del node.metadata_props[position]


def _below(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """These nodes and those in their bodies."""
    for node in nodes:
        yield node
        for _, graph in scoping.subgraphs(node):
            yield from _below(graph.node)
