"""Ops that draw: one draw for all rows would not be what each row draws."""

from __future__ import annotations

from onnx import NodeProto

from passes.operators.table import where
from passes.vectorize.vectorizer import Vectorizer, batched


@batched(*where(lambda row: row.draws) - {"Dropout"})
def random(node: NodeProto, ctx: Vectorizer) -> None:
    """The number of draws and their order would change.

    Raises:
        Refused: `random`, always.
    """
    ctx.refuse_node("random", node, "draws other numbers for each row")
