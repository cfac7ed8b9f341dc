"""A loader of Polygraphy that rewrites the model of another loader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from onnx import ModelProto
from polygraphy.backend.base import BaseLoader
from polygraphy.util import invoke_if_callable

from passes.commands.pipeline import Pipeline

if TYPE_CHECKING:
    from passes.commands.pipeline import Step
    from passes.session import Source


class RewriteOnnx(BaseLoader):
    """Loads the verified outcome of commands, which are the steps of a `Pipeline`, on a model, or
    on the model that a loader returns. Raises what `Pipeline` raises."""

    def __init__(self, model: Source | Callable[[], Any], steps: Sequence[Step]) -> None:
        self._model = model
        self._pipeline = Pipeline(steps)

    def call_impl(self) -> ModelProto:
        """Return the outcome, with its weights. Raises what the commands raise."""
        model, _ = invoke_if_callable(self._model)
        return self._pipeline.run(model).to(ModelProto)
