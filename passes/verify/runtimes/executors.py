"""The runtimes beside onnxruntime, of this package and of others, and one that runs the outcome
alone.

Another distribution registers one by an entry point of the group `passes.executors`: its name, and
a module with the functions of `passes.verify.runtimes.tract`; where it has a `READS_FOLDER` that is
true, as `passes.verify.runtimes.onnxruntime` has, it reads weights from the folder of a job."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

from onnx import ModelProto

from passes.errors import PassesError, WrongUsage, nearest
from passes.ir.protos import copied
from passes.verify.executor import CannotRun, Feeds, Outcome
from passes.verify.runtimes.process import ProcessExecutor

#: The entry points under which other distributions name the modules of runtimes.
GROUP = "passes.executors"
#: Those of this package, by the names of what they need.
_OWN = {name: f"passes.verify.runtimes.{name}" for name in ("openvino", "tract")}


class NoRuntime(PassesError):
    """A runtime is not installed, or does not start."""


class UnknownRuntime(WrongUsage):
    """No runtime has this name."""


def modules() -> Mapping[str, str]:
    """The modules of runtimes, by name."""
    return {**{entry.name: entry.value for entry in entry_points(group=GROUP)}, **_OWN}


def runtime(name: str) -> OutcomeOnly:
    """The executor of a runtime, which runs outcomes alone.

    Raises:
        UnknownRuntime: there is none of this name.
        NoRuntime: it is not installed.
    """
    known = modules()
    if name not in known:
        raise UnknownRuntime(f"there is no executor {name!r}; {nearest(name, known)}")
    if name in _OWN and importlib.util.find_spec(name) is None:
        raise NoRuntime(f"{name} is not installed: pip install {name}")
    return OutcomeOnly(name, known[name])


#: Marks the model that a runtime does not run.
_MARK = "passes.original"


def marked(model: ModelProto) -> ModelProto:
    """A copy of a model that an executor knows as one that it does not run itself."""
    copy = copied(model)
    copy.metadata_props.add(key=_MARK)
    return copy


def is_marked(model: ModelProto) -> bool:
    """Return whether a model is such a copy."""
    return any(entry.key == _MARK for entry in model.metadata_props)


class OutcomeOnly(ProcessExecutor):
    """An executor that does not run a `marked` model, whose answers are those of the reference
    executor: a runtime may answer wrongly both before and after. `refusals` is why it did not run
    the outcome."""

    def __init__(self, name: str, module: str) -> None:
        super().__init__(name, module)
        self.refusals: list[str] = []

    def run(self, model: ModelProto, feeds: Feeds, **limits: Any) -> Outcome:
        """Run the outcome. Raises CannotRun for the original."""
        if is_marked(model):
            raise CannotRun("the original runs in the reference executor")
        try:
            return super().run(model, feeds, **limits)
        except CannotRun as error:
            self.refusals.append(str(error))
            raise
