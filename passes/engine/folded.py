"""Removes nodes that only compute inputs which a conversion read as constants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from onnx import NodeProto

from passes.engine.rounds import Rewritten, Round
from passes.ir import scope as scoping
from passes.ir.live import keep_nodes, live
from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.ir.scope import Scope
from passes.rule import Edit


def drop_folded(round_: Round) -> None:
    """Drop, from the outcome of a round, the nodes whose values were fixed before the model runs
    and that nothing reads any more, with what was refused of them: they cannot fail."""
    folded: set[str] = set()
    for rewritten in round_.rewritten:
        for name in _read_as_fixed(rewritten):
            _collect(round_.model, rewritten.scope, name, folded)
    if not folded:
        return
    for rewritten in round_.rewritten:
        if _is_among(rewritten.node, folded):
            folded.update(name for node in rewritten.edit.nodes for name in node.output)
    graphs = [graph for _, graphs in round_.model.graphs for graph in graphs]
    defined = Counter(name for graph in graphs for name in scoping.defined(graph))
    folded -= {name for name, times in defined.items() if times > 1}

    for _, owner in scoping.owners(round_.proto):
        for graph in reversed(list(scoping.graphs_below(owner))):
            kept, _ = live(
                graph.node,
                scoping.ends(graph),
                scoping.free_names,
                stays=lambda node: not _is_among(node, folded),
            )
            folded.difference_update(name for node in kept for name in node.output)
            if len(kept) < len(graph.node):
                keep_nodes(graph, kept)
    round_.refused[:] = [one for one in round_.refused if not _is_among(one.place.node, folded)]


def _is_among(node: NodeProto, names: set[str]) -> bool:
    written = [name for name in node.output if name]
    return bool(written) and names.issuperset(written)


def _read_as_fixed(rewritten: Rewritten) -> Iterator[str]:
    """The values that a conversion read, computed by other nodes before the model runs; a template
    reads none."""
    if rewritten.rule.name == "opset" and isinstance(rewritten.written, Edit):
        yield from (name for node in rewritten.written.context for name in node.output)


def _collect(model: Model, scope: Scope, name: str, found: set[str]) -> None:
    """Add what is computed for a value, from constants and sizes alone."""
    home = model.home(scope, name) if name else None
    node = model.producer(home.owner, name) if home else None
    if home is None or node is None or name in found:
        return
    found.update(filter(None, node.output))
    if op_of(node) == "Shape":  # what it reads is no constant
        return
    for read in node.input:
        _collect(model, home, read, found)
