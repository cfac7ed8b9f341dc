"""The table of vectorisation rules: how each op runs over one more leading axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from onnx import NodeProto

if TYPE_CHECKING:
    from passes.vectorize.vectorizer import Vectorizer

#: Writes what does the work of `node` for every row. It is called where an input carries the
#: axis; the outputs it writes carry it, except those that it answers with.
BatchRule = Callable[[NodeProto, "Vectorizer"], "set[str] | None"]

TABLE: dict[str, BatchRule] = {}


def batched(*ops: str) -> Callable[[BatchRule], BatchRule]:
    """Enter a rule for some ops of the standard domain."""

    def enter(rule: BatchRule) -> BatchRule:
        for op in ops:
            if op in TABLE:
                raise ValueError(f"{op} has two vectorisation rules")
            TABLE[op] = rule
        return rule

    return enter
