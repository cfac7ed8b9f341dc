"""What stops a model on its way to another opset."""

from __future__ import annotations

import pytest
from proving import converted, parsed

from passes.rule import Refused


def refusal(graph: str, *, opset: int, target: int) -> str:
    """The code and the sentence with which the conversion of a graph in ONNX text is refused."""
    with pytest.raises(Refused) as refused:
        converted(parsed(graph, opset), target)
    return str(refused.value)
