"""The logs of decays that are never negative."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from onnx import NodeProto

from passes.bodies.time_body import TimeBody
from passes.ir.operators import op_of
from passes.rules.recurrences.index_notation import Factor, Notation, NotLinear
from passes.rules.recurrences.layout import Writer

#: What gives elements of its first operand and no others: a decay is followed through these.
_MOVES = ("Identity", "Unsqueeze", "Squeeze", "Reshape", "Transpose", "Expand", "Slice", "Split")
#: What is never negative.
_POSITIVE = ("Exp", "Sigmoid", "Softplus", "Abs", "ReduceSumSquare")


@dataclass(frozen=True)
class Logs:
    """Writes logs; `context` are the nodes outside of the loop from which it follows that a decay
    is never negative."""

    body: TimeBody
    notation: Notation
    writer: Writer
    context: list[NodeProto] = field(default_factory=list)

    def of(self, factor: Factor, order: Sequence[int]) -> str:
        """The log of a factor: of an Exp in the loop, what it was computed of.

        Raises:
            Refused: `negative`.
        """
        author, plain = self.writer.author, replace(factor, inverse=False)
        constant = self.body.rows.constants.get(factor.name)
        if constant is not None and bool(np.all(constant >= 0)):
            with np.errstate(divide="ignore"):
                logs = np.log(constant.astype(np.float64)).astype(np.float32)
            log = self.writer.moved(author.value(logs, "log"), factor.at, order)
            return author.op("Neg", log) if factor.inverse else log
        source = self._source(plain)
        node = self.notation.index.producers.get(source.name)
        if node is not None and op_of(node) == "Exp":
            log = self.writer.factor(replace(source, name=node.input[0]), order)
        elif (node is not None and op_of(node) in _POSITIVE) or self._is_positive(source.name):
            log = author.op("Log", self.writer.factor(plain, order))
        else:
            what = f"the decay {factor.name!r} may be negative, and has no log"
            raise self.body.site.refused("negative", what, factor.name)
        return author.op("Neg", log) if factor.inverse else log

    def _source(self, factor: Factor) -> Factor:
        """Return the source that nodes of the body only move to a factor."""
        node = self.notation.index.producers.get(factor.name)
        while node is not None and op_of(node) in _MOVES:
            try:
                (term,) = self.notation.step(factor)
            except NotLinear:
                break
            (factor,) = term.factors
            node = self.notation.index.producers.get(factor.name)
        return factor

    def _is_positive(self, name: str) -> bool:
        """Return whether nodes before the loop show that a value is never negative."""
        site = self.body.site
        scanned = {one.body_input: one.tensor for one in self.body.form.scanned}
        name, chain = scanned.get(name, name), list[NodeProto]()
        while (node := site.graph.producers.get(name)) is not None:
            chain.append(node)
            if op_of(node) in _POSITIVE:
                self.context.extend(reversed(chain))
                return True
            if op_of(node) not in _MOVES:
                return False
            name = node.input[0]
        return False
