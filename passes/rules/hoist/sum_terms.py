"""Sums in the body of a loop: their terms, those that depend on carried values and the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from onnx import NodeProto

from passes.analysis.integers.integer_ops import is_settled
from passes.ir.attributes import attribute
from passes.ir.live import dependents
from passes.ir.operators import op_of
from passes.loops.form import LoopForm
from passes.operators.functions import gemm_addend, is_plain_gemm
from passes.operators.table import traits_of
from passes.operators.traits import Work

_SUMS = ("Add", "Sum")


def is_sum(node: NodeProto) -> bool:
    """Return whether a node adds its inputs."""
    return op_of(node) in _SUMS


@dataclass(frozen=True)
class Sum:
    """The sum that a node computes, including the sums before it that nothing else reads.

    `independent` terms do not depend on a carried value, `dependent` ones do; they are in the
    order in which they are read. Of the dependent ones, `gemms` are computed by plain Gemms whose
    addends are among the independent ones. `nodes` are the positions of all the sums and of these
    Gemms, the last one that of the node.
    """

    nodes: tuple[int, ...]
    independent: tuple[str, ...]
    dependent: tuple[str, ...]
    gemms: frozenset[str]

    @property
    def root(self) -> int:
        """The position of the node that computes the sum."""
        return self.nodes[-1]


@dataclass(frozen=True)
class Sums:
    """The sums of a loop's body that have dependent terms, each as large as possible.

    Unless `is_free` holds for the output of a node, its dependent terms must all be products.
    """

    form: LoopForm
    is_free: Callable[[str], bool]

    def found(self) -> list[Sum]:
        """The sums, in the order of the body."""
        inner = {
            self._own(self.nodes[position], name)
            for position in self._fit
            for name in self.nodes[position].input
        }
        return [self._sum(position) for position in sorted(self._fit - inner)]

    @cached_property
    def nodes(self) -> list[NodeProto]:
        """The nodes of the body."""
        return list(self.form.body.node)

    def producer(self, name: str) -> NodeProto | None:
        """The node of the body that computes a value."""
        position = self._producers.get(name)
        return None if position is None else self.nodes[position]

    @cached_property
    def dependent(self) -> frozenset[str]:
        """The values that depend on a carried one."""
        return dependents(self.nodes, (carried.body_input for carried in self.form.carried))

    @cached_property
    def _producers(self) -> dict[str, int]:
        return self.form.index.positions

    @cached_property
    def _readers(self) -> dict[str, list[int]]:
        return self.form.index.readers

    @cached_property
    def _fit(self) -> frozenset[int]:
        """The positions of nodes that add a dependent term, all of which may be regrouped."""
        fit: set[int] = set()
        for position, node in enumerate(self.nodes):
            if not is_sum(node) or node.output[0] not in self.dependent:
                continue
            dependent = [name for name in node.input if name in self.dependent]
            if self.is_free(node.output[0]) or all(
                self._is_product(name) or self._own(node, name) in fit for name in dependent
            ):
                fit.add(position)
        return frozenset(fit)

    def _is_product(self, name: str) -> bool:
        position = self._producers.get(name)
        if position is None:
            return False
        node = self.nodes[position]
        return traits_of(node).work is Work.PRODUCT  # the order of its additions is unspecified

    def _own(self, reader: NodeProto, name: str) -> int | None:
        """The position of the node that computes a value, if nothing but this node reads it, and
        only once."""
        position = self._producers.get(name)
        alone = position is not None and len(self._readers[name]) == 1
        return position if alone and list(reader.input).count(name) == 1 else None

    def _sum(self, root: int) -> Sum:
        nodes, terms, gemms = [root], list[str](), dict[str, int]()
        pending = [(root, name) for name in self.nodes[root].input]
        while pending:
            reader, name = pending.pop(0)
            position = self._own(self.nodes[reader], name)
            if position is not None and position in self._fit:
                nodes.append(position)
                pending[:0] = [(position, operand) for operand in self.nodes[position].input]
                continue
            terms.append(name)
            if position is not None and self._adds_early(self.nodes[position]):
                gemms[name] = position
        independent = [name for name in terms if name not in self.dependent]
        independent += [gemm_addend(self.nodes[position]) for position in gemms.values()]
        dependent = [name for name in terms if name in self.dependent]
        return Sum(
            (*sorted([*nodes, *gemms.values()]),), (*independent,), (*dependent,), frozenset(gemms)
        )

    def _adds_early(self, node: NodeProto) -> bool:
        """Return whether a node is a plain Gemm of which only the product is dependent."""
        if op_of(node) != "Gemm" or not is_settled(node) or not is_plain_gemm(node):
            return False
        turned = attribute(node, "transB", 0) and node.input[1] in self.dependent
        added = gemm_addend(node)
        independent = bool(added) and added not in self.dependent
        return independent and not turned and node.output[0] in self.dependent
