"""The common part of If and loops: values chosen by row, and bodies that all rows run."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import GraphProto, NodeProto

from passes.analysis.safety.may_fail import failing_on_other_values
from passes.ir.operators import op_of
from passes.vectorize.selection import choose, row_mask
from passes.vectorize.vectorizer import Vectorizer
from passes.writing import spelling


def may_run_for_all(ctx: Vectorizer, node: NodeProto, bodies: Sequence[GraphProto]) -> None:
    """Refuse where bodies would run on values of rows that never saw them, and might fail.

    Raises:
        Refused: `not-speculatable`.
    """
    culprits = [
        culprit
        for body in bodies
        for culprit in failing_on_other_values(body, ctx.rows.known(ctx.opset))
    ]
    if culprits:
        ops = ", ".join(sorted({op_of(culprit) for culprit in culprits}))
        ctx.refuse(
            "not-speculatable",
            f"rows may take different branches of {op_of(node)} {list(node.output)}, and "
            f"{ops} in it may fail for rows that take another one",
            *(name for culprit in culprits for name in culprit.output),
        )


def one_shape(ctx: Vectorizer, node: NodeProto, *names: str) -> None:
    """Refuse where values that rows may choose from have not provably one shape.

    Raises:
        Refused: `ragged-rows`.
    """
    first, *others = [ctx.dims(name) for name in names]
    if None in first or any(other != first for other in others):
        shapes = ", ".join(f"{name} {list(ctx.dims(name))}" for name in names)
        ctx.refuse(
            "ragged-rows",
            f"{op_of(node)} {list(node.output)} may give each row another shape: {shapes}",
            *names,
        )


def flat(ctx: Vectorizer, value: str, rank: int) -> str:
    """Return a value with one element for each row, of this rank, as a vector [B]."""
    for _ in range(rank):
        value = spelling.squeeze(ctx, value, -1)
    return value


def chosen(ctx: Vectorizer, mask: str, new: str, old: str, like: str) -> str:
    """Per row `new` where `mask` (bool [B]) holds, else `old`; `like` has their type in a row."""
    wide = row_mask(ctx, mask, ctx.rank(like))
    return choose(ctx, wide, new, old, ctx.elem_type(like))
