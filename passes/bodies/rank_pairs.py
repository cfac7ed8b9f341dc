"""Axes of size 1 that are inserted and removed again."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from onnx import NodeProto

from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.ir.protos import copied
from passes.operators.table import traits_of
from passes.operators.traits import Shape


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
        if not _is(node, "Squeeze") or len(node.input) < 2 or node.output[0] in self.keep:
            return []
        found: list[NodeProto] = []
        name = node.input[0]
        while (producer := self.producers.get(name)) is not None and self.reads[name] == 1:
            found.append(producer)
            if _is(producer, "Unsqueeze"):
                return found if list(producer.input[1:]) == list(node.input[1:]) else []
            if traits_of(producer).shape is not Shape.ELEMENTWISE:
                return []
            name = producer.input[0]
        return []


def _is(node: NodeProto, op_type: str) -> bool:
    return op_of(node) == op_type


def _reading(node: NodeProto, same: dict[str, str]) -> NodeProto:
    """The node with its inputs replaced."""
    if not any(name in same for name in scoping.free_names(node)):
        return node
    copy = copied(node)
    scoping.rename_free(copy, same)
    return copy
