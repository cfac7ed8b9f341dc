"""A pass of onnx_ir for each command that rewrites, by the name of the command: `Upgrade`,
`Unroll`, `Optimize`, ..., those of other distributions with them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import onnx_ir

from passes.commands.pipeline import Pipeline
from passes.commands.registry import rewriting_commands

if TYPE_CHECKING:
    from passes.reports.report import Report


class CommandPass(onnx_ir.passes.FunctionalPass):
    """Runs a command on a model and verifies the outcome; `report` is that of the last run.

    The arguments are the options of the command. A model that cannot be rewritten, or that differs
    from the original, raises the error of the command.

    Raises:
        TypeError: there is no option of a name, or it has a value of another type.
        ValueError: an option has a value that it cannot have.
    """

    command: ClassVar[str]

    def __init__(self, **options: Any) -> None:
        self._pipeline = Pipeline([(self.command, options)])
        self.report: Report | None = None

    def call(self, model: onnx_ir.Model) -> onnx_ir.passes.PassResult:
        """Return a new model, which shares the weights that were not changed."""
        result = self._pipeline.run(model)
        self.report = result.report
        changed = not result.report.unchanged
        return onnx_ir.passes.PassResult(result.to(onnx_ir.Model), changed)


@cache
def __getattr__(name: str) -> type[CommandPass]:
    for command, declared in rewriting_commands().items():
        if declared.options.__name__ == name:
            more = {"command": command, "__module__": __name__, "__doc__": declared.options.__doc__}
            return type(name, (CommandPass,), more)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    names = [declared.options.__name__ for declared in rewriting_commands().values()]
    return sorted(["CommandPass", *names])
