"""Commands one after the other, with their options: what a build runs on a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from passes.commands.declaring import refuse_unknown
from passes.commands.options import Options
from passes.commands.registry import command_named, command_of

if TYPE_CHECKING:
    from passes.ir.save import Progress
    from passes.session import Result, Source

#: A command by its name, with options or without, or the options of one.
Step = str | tuple[str, Mapping[str, Any]] | Options


@dataclass(frozen=True)
class Pipeline:
    """Commands that run one after the other on a model, which is verified once: each rewrite in its
    region, and the last outcome against the model.

        Pipeline(["upgrade", ("unroll", {"max_nodes": 5_000}), Simplify(only=["main/*"])])

    `dims` are fixed, or declared equal to others, first; `lenient`: as far as the model has them.
    The options of the first command specify how to verify, and whom to tell of progress.

    Raises:
        UnknownCommand: there is no command of a name.
        TypeError: there is no option of a name, or it has a value of another type.
        ValueError: an option has a value that it cannot have, or there is no command.
    """

    steps: Sequence[Step]
    dims: Mapping[str, int | str] = field(default_factory=dict)
    lenient: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.steps, str):
            raise TypeError(f"steps is {self.steps!r}, not a list of commands")
        steps = tuple(map(_options_of, self.steps))
        if not steps:
            raise ValueError("a pipeline has at least one command")
        object.__setattr__(self, "steps", steps)

    @property
    def commands(self) -> tuple[Options, ...]:
        """The options of each command."""
        return tuple(step for step in self.steps if isinstance(step, Options))

    def run(self, model: Source, say: Progress | None = None) -> Result:
        """Run the commands on a model, which is not changed, and verify the outcome; `say` is told
        of progress. Raises what the commands raise."""
        from passes.session import Session

        told = (
            self.commands if say is None else [replace(one, progress=say) for one in self.commands]
        )
        return Session.of(told, self.dims, lenient=self.lenient).run(model)


def _options_of(step: Step) -> Options:
    if isinstance(step, Options):
        command_of(step)
        return step
    pair: Any = (step, {}) if isinstance(step, str) else step
    if not isinstance(pair, Sequence) or len(pair) != 2:
        raise TypeError(f"a step is {step!r}, not a name or a pair of a name and its options")
    name, keywords = pair
    declared = command_named(name).options
    refuse_unknown(name, declared, keywords)
    options: Options = declared(**keywords)
    return options
