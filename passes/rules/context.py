"""The nodes in front of a loop on which proofs rest: sizes, conditions, empty sequences."""

from __future__ import annotations

from onnx import NodeProto

from passes import scope as scoping
from passes.rule import Site
from passes.rules.integer_ops import FOLLOWED
from passes.rules.integers import Integers
from passes.rules.sizes_through import SIZED

_CONDITIONS = ("And", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Not", "Or")
_SEQUENCES = ("SequenceConstruct", "SequenceEmpty", "Split", "SplitToSequence")
_SHAPED = (*SIZED, "ConstantOfShape", "Expand")
_TOLD = {*FOLLOWED, *_CONDITIONS, *_SEQUENCES, *_SHAPED, "Constant", "Div", "Range", "Where"}
_MOST = 256


def context_of(site: Site) -> tuple[NodeProto, ...]:
    """What tells the numbers, conditions and sequences that a loop reads, in order."""
    walk = _Walk(site)
    for name in scoping.free_names(site.node):
        walk.visit(name, 0)
    return tuple(walk.found.values())


class _Walk:
    def __init__(self, site: Site) -> None:
        self.integers = Integers(site)
        self.found: dict[str, NodeProto] = {}
        self._seen: set[str] = set()

    def visit(self, name: str, depth: int) -> None:
        """Take the node behind a value, behind the nodes that it reads."""
        node = self.integers.producer(name)
        if node is None or name in self._seen or depth > _MOST or len(self.found) > _MOST:
            return
        self._seen.update(node.output)
        known = scoping.is_onnx_domain(node.domain) and node.op_type in _TOLD
        if not known or not self.integers.same_meaning(node, name):
            return
        for one in filter(None, node.input):
            self.visit(one, depth + 1)
        self.found[node.output[0]] = node
