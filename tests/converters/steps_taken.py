"""Which steps a conversion took, and which of them a test has run before and after."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from onnx import ModelProto

from passes.converters import table
from passes.converters.steps import Identical, Step
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.operators import is_onnx_domain

Key = tuple[str, int]

#: Per step, how tests proved it: "onnxruntime", "reference". Filled while tests run.
PROVEN: dict[Key, set[str]] = {}


def proved(taken: set[Key], how: str) -> None:
    """Say that a model gave the same after these steps."""
    for key in taken:
        PROVEN.setdefault(key, set()).add(how)


@contextmanager
def recorded(model: ModelProto, target: int) -> Iterator[set[Key]]:
    """The steps that the conversion of a model takes, those of the nodes it makes included."""
    taken: set[Key] = set()
    steps = table.steps

    def recording(op: str, opset: int, target: int) -> tuple[Step, ...]:
        found = steps(op, opset, target)
        for step in found:
            taken.add((step.op, step.version))
            if not isinstance(step, Identical):
                break  # what it makes takes the later ones
        return found

    read = Model(model)
    for place in scoping.walk_model(model):
        *_, top = place.scope.chain()
        if is_onnx_domain(place.node.domain):
            recording(place.node.op_type, read.opset(top.owner), target)
    with patch.object(table, "steps", recording):
        yield taken
