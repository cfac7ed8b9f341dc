"""What If and loops share: values chosen by row, and bodies that all rows run."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import GraphProto, NodeProto

from passes.analysis.safety.speculation import speculatable
from passes.ir.operators import op_of
from passes.vectorize.selection import choose, row_mask
from passes.vectorize.vectorizer import Vectorizer
from passes.writing import spelling


def may_run_for_all(at: Vectorizer, node: NodeProto, bodies: Sequence[GraphProto]) -> None:
    """Refuse where bodies would run on values of rows that never saw them, and might fail.

    Raises:
        Refused: `not-speculatable`.
    """
    culprits = [
        culprit
        for body in bodies
        for culprit in speculatable(body, at.rows.constants, at.rows.types)
    ]
    if culprits:
        ops = ", ".join(sorted({op_of(one) for one in culprits}))
        at.refuse(
            "not-speculatable",
            f"the rows may take {op_of(node)} {list(node.output)} each in its own way, and "
            f"{ops} in it may fail on rows that do not go there",
            *(name for one in culprits for name in one.output),
        )


def one_shape(at: Vectorizer, node: NodeProto, *names: str) -> None:
    """Refuse where values that rows may choose from have not provably one shape.

    Raises:
        Refused: `ragged-rows`.
    """
    first, *others = [at.dims(name) for name in names]
    if None in first or any(other != first for other in others):
        shapes = ", ".join(f"{name} {list(at.dims(name))}" for name in names)
        at.refuse(
            "ragged-rows",
            f"{op_of(node)} {list(node.output)} may give each row another shape: {shapes}",
            *names,
        )


def flat(at: Vectorizer, value: str, rank: int) -> str:
    """What holds one element for each row, of this rank, as a vector [B]."""
    for _ in range(rank):
        value = spelling.squeeze(at.author, value, -1)
    return value


def chosen(at: Vectorizer, mask: str, new: str, old: str, like: str) -> str:
    """Per row `new` where `mask` (bool [B]) holds, else `old`; `like` has their type in a row."""
    wide = row_mask(at.author, mask, at.rank(like))
    return choose(at.author, wide, new, old, at.elem_type(like))
