"""Random operators: two runs of one model draw the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import NodeProto
from onnx.reference.op_run import OpRun

from passes.ir.attributes import has
from passes.ir.operators import op_of
from passes.verify.executor import Value
from passes.verify.reference.machine import Frame, Machine

#: Dropout draws when it trains.
RANDOM = frozenset(
    {
        "Bernoulli",
        "Dropout",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
    }
)


def draws_anew(node: NodeProto) -> bool:
    """Return whether `node` draws random numbers without a seed of its own."""
    return op_of(node) in RANDOM and not has(node, "seed")


def numbered(kernel: OpRun, machine: Machine) -> Callable[[list[Value], Frame], Sequence[Any]]:
    """The kernel of a random node: the k-th draw of a run has seed k.

    So a rewrite that neither drops, doubles nor reorders draws compares equal.
    """
    run: Callable[..., Sequence[Any]] = kernel.run

    def draw(operands: list[Value], frame: Frame) -> Sequence[Any]:
        machine.draws += 1
        setattr(kernel, "seed", machine.draws)  # noqa: B010 (not declared by onnx)
        like = operands[0] if operands else None
        if isinstance(like, np.ndarray) and like.ndim == 0:  # onnx's kernels draw no scalars
            return [np.reshape(value, ()) for value in run(like.reshape(1), *operands[1:])]
        return run(*operands)

    return draw
