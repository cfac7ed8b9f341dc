"""The runtimes beside onnxruntime that are known here, and one that runs the outcome alone."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from pathlib import Path

from onnx import ModelProto

from passes.errors import PassesError
from passes.verify.executor import CannotRun, Executor, Feeds, Outcome
from passes.verify.onnxruntime.executor import ProcessExecutor

#: The packages of runtimes, by name.
PACKAGES = {"openvino": "openvino", "tract": "tract"}


class NoRuntime(PassesError):
    """A runtime is not installed."""


def runtime(name: str) -> ProcessExecutor:
    """The executor of a runtime, which is one of `PACKAGES`.

    Raises:
        NoRuntime: it is not installed.
    """
    package = PACKAGES[name]
    if importlib.util.find_spec(package) is None:
        raise NoRuntime(f"{name} is not installed: pip install {package}")
    return ProcessExecutor(name, ("passes.verify.runtimes.worker", name))


#: Marks the model that a runtime does not run.
_MARK = "passes.original"


def marked(model: ModelProto) -> ModelProto:
    """A copy of a model that `OutcomeOnly` knows as the original."""
    copy = ModelProto()
    copy.CopyFrom(model)
    copy.metadata_props.add(key=_MARK)
    return copy


@dataclass(frozen=True)
class OutcomeOnly:
    """An executor that does not run a `marked` model, whose answers are those of the reference
    executor: a runtime may answer wrongly both before and after. `refusals` is why it did not run
    the outcome."""

    executor: Executor
    refusals: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.executor.name

    @property
    def version(self) -> str:
        return self.executor.version

    def load(
        self, model: ModelProto, *, base_dir: Path | None = None, timeout: float | None = None
    ) -> None:
        """See that a model loads. Raises CannotRun."""
        self.executor.load(model, base_dir=base_dir, timeout=timeout)

    def run(
        self,
        model: ModelProto,
        feeds: Feeds,
        *,
        base_dir: Path | None = None,
        timeout: float | None = None,
    ) -> Outcome:
        """Run the outcome. Raises CannotRun for the original."""
        if any(entry.key == _MARK for entry in model.metadata_props):
            raise CannotRun("the original runs in the reference executor")
        try:
            return self.executor.run(model, feeds, base_dir=base_dir, timeout=timeout)
        except CannotRun as error:
            self.refusals.append(str(error))
            raise
