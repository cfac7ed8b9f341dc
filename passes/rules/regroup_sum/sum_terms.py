"""Sums in the body of a loop: their terms, early ones and those that depend on carried values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from onnx import NodeProto

from passes.analysis.bodies.readers import makers_in, readers_in
from passes.analysis.integers.integer_ops import is_settled
from passes.analysis.integers.plain_gemm import addend, is_plain
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.loops.form import LoopForm
from passes.vectorize.axes import attribute

_SUMS = ("Add", "Sum")
#: ONNX leaves it open in which order these add up.
_PRODUCTS = ("MatMul", "Gemm", "Conv")


def is_sum(node: NodeProto) -> bool:
    """Whether a node adds up what it reads."""
    return op_of(node) in _SUMS


@dataclass(frozen=True)
class Sum:
    """What a node adds up, together with the sums in front of it that nobody else reads.

    `early` are the terms that do not depend on a carried value, `late` the others, in the order
    in which they are read. Of the late ones, `gemms` are given by plain Gemms whose addends are
    among the early ones. `nodes` are the positions of all the sums and of these Gemms, the last
    one that of the node.
    """

    nodes: tuple[int, ...]
    early: tuple[str, ...]
    late: tuple[str, ...]
    gemms: frozenset[str]

    @property
    def root(self) -> int:
        """The position of the node that gives the sum."""
        return self.nodes[-1]


@dataclass(frozen=True)
class Sums:
    """The sums of a loop's body that have late terms, each as large as it gets.

    Where `is_free` denies it of what a node gives, the late terms must all be products.
    """

    form: LoopForm
    is_free: Callable[[str], bool]

    def found(self) -> list[Sum]:
        """The sums, in the order of the body."""
        inner = {
            self._own(self.nodes[at], name) for at in self._fit for name in self.nodes[at].input
        }
        return [self._sum(at) for at in sorted(self._fit - inner)]

    @cached_property
    def nodes(self) -> list[NodeProto]:
        """The nodes of the body."""
        return list(self.form.body.node)

    def maker(self, name: str) -> NodeProto | None:
        """The node of the body that makes a value."""
        at = self._makers.get(name)
        return None if at is None else self.nodes[at]

    @cached_property
    def late(self) -> frozenset[str]:
        """The values that depend on a carried one."""
        found = {one.body_input for one in self.form.carried}
        for node in self.nodes:
            if not found.isdisjoint(scoping.free_names(node)):
                found.update(node.output)
        return frozenset(found)

    @cached_property
    def _makers(self) -> dict[str, int]:
        return makers_in(self.form.body)

    @cached_property
    def _readers(self) -> dict[str, list[int]]:
        return readers_in(self.form.body)

    @cached_property
    def _fit(self) -> frozenset[int]:
        """The positions of nodes that add up something late, and nothing that does not fit."""
        fit: set[int] = set()
        for at, node in enumerate(self.nodes):
            if not is_sum(node) or node.output[0] not in self.late:
                continue
            late = [name for name in node.input if name in self.late]
            if self.is_free(node.output[0]) or all(
                self._is_product(name) or self._own(node, name) in fit for name in late
            ):
                fit.add(at)
        return frozenset(fit)

    def _is_product(self, name: str) -> bool:
        at = self._makers.get(name)
        if at is None:
            return False
        node = self.nodes[at]
        return op_of(node) in _PRODUCTS

    def _own(self, reader: NodeProto, name: str) -> int | None:
        """The position of the node that makes a value, which nobody else reads, and this node
        once."""
        at = self._makers.get(name)
        alone = at is not None and len(self._readers[name]) == 1
        return at if alone and list(reader.input).count(name) == 1 else None

    def _sum(self, root: int) -> Sum:
        nodes, terms, gemms = [root], list[str](), dict[str, int]()
        pending = [(root, name) for name in self.nodes[root].input]
        while pending:
            reader, name = pending.pop(0)
            at = self._own(self.nodes[reader], name)
            if at is not None and at in self._fit:
                nodes.append(at)
                pending[:0] = [(at, one) for one in self.nodes[at].input]
                continue
            terms.append(name)
            if at is not None and self._adds_early(self.nodes[at]):
                gemms[name] = at
        early = [name for name in terms if name not in self.late]
        early += [addend(self.nodes[at]) for at in gemms.values()]
        late = [name for name in terms if name in self.late]
        return Sum((*sorted([*nodes, *gemms.values()]),), (*early,), (*late,), frozenset(gemms))

    def _adds_early(self, node: NodeProto) -> bool:
        """Whether a node is a plain Gemm whose product alone is late."""
        if op_of(node) != "Gemm" or not is_settled(node):
            return False
        turned = attribute(node, "transB", 0) and node.input[1] in self.late
        early = bool(addend(node)) and addend(node) not in self.late
        return early and is_plain(node) and not turned and node.output[0] in self.late
