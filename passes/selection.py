"""Which loops `--only` means, also once a stage has rewritten or moved them."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from onnx import ModelProto, NodeProto

from passes import scope as scoping
from passes.engine import Round

_LOOPS = ("Loop", "Scan")


def matches(path: str, patterns: Sequence[str]) -> bool:
    """Whether a path is meant; all are where there is no pattern."""
    return not patterns or any(fnmatchcase(path, pattern) for pattern in patterns)


def followed(model: ModelProto, patterns: Sequence[str], rounds: Sequence[Round]) -> list[str]:
    """Patterns for a model behind a stage: the paths of the loops that were meant in `model`.

    A loop is known by what it defines; where a rule rewrote it, so are those in its place.
    """
    meant = set(_defined(_loops(model, patterns)))
    for round_ in rounds:
        for one in round_.rewritten:
            if not meant.isdisjoint(one.place.node.output):
                meant.update(_defined(one.edit.nodes))
    after = rounds[-1].proto if rounds else model
    places = scoping.walk_model(after)
    found = [
        place.path
        for place in places
        if place.node.op_type in _LOOPS and not meant.isdisjoint(place.node.output)
    ]
    # a pattern that nothing matches: no pattern at all would mean every loop
    return [glob.escape(path) for path in found] or ["no loop is left"]


def _loops(model: ModelProto, patterns: Sequence[str]) -> Iterable[NodeProto]:
    for place in scoping.walk_model(model):
        if place.node.op_type in _LOOPS and matches(place.path, patterns):
            yield place.node


def _defined(nodes: Iterable[NodeProto]) -> Iterable[str]:
    """What these loops define, those in the branches of an If too."""
    for node in nodes:
        if node.op_type in _LOOPS:
            yield from filter(None, node.output)
        elif node.op_type == "If":
            for _, graph in scoping.subgraphs(node):
                yield from _defined(graph.node)
