"""The commands `stream` and `close`: a model in chunks of a sequence, and back."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from passes.choices import Executors
from passes.commands.declaring import Place, WrongValue, option
from passes.commands.delivery import API, CLI, Force, Reporting
from passes.commands.options import BothExecutors, Executing, feeds_of
from passes.commands.registry import command
from passes.commands.standalone import Output, Say, Standalone, TheModel, path_of, silent
from passes.errors import PassesError, WrongUsage

if TYPE_CHECKING:
    from passes.streaming.chunks import Judge, NotSame, Streamed
else:
    Judge = Any

_PAIR = "IN=OUT"


class States(StrEnum):
    """Of which frames of a chunk the states are outputs."""

    last = "last"
    every = "every"


@dataclass(frozen=True, kw_only=True)
class _Writing(Executing, Reporting, Standalone):
    """What both commands have: the options, and the delivery of the outcome."""

    executor: BothExecutors = Executors.both
    states: Mapping[str, str] | None = option(
        None,
        "An input that is a state, and the output that returns it; repeatable.",
        flag="state",
        metavar=_PAIR,
    )
    output: Place | None = option(
        None, "Where to write the model; beside it by default.", metavar="OUT", shown=CLI
    )
    force: Force = False
    judge: Judge | None = option(
        None, "How chunks are compared with the whole, in place of the other options.", shown=API
    )

    @abstractmethod
    def run(self, say: Say = silent) -> Streamed:
        """Return the outcome."""

    @property
    @abstractmethod
    def _paths(self) -> tuple[Path, Path, Path | None]:
        """The model, where the outcome is written, and where what states start with is."""

    def _judge(self) -> Judge:
        from passes.session import loaded
        from passes.streaming.chunks import Judge

        if self.judge is not None:
            return self.judge
        model = self._paths[0] if self.inputs is not None else None
        given = () if model is None else feeds_of(self.inputs, loaded(model)[0].proto)
        return Judge(self.executor, self.verify_budget, self.seed, given)

    def files(self) -> Sequence[Path]:
        return [*super().files(), *filter(None, self._paths)]

    def outputs(self, say: Say = silent) -> Iterator[Output]:
        from passes.commands.places import refuse_weights
        from passes.ir.save import check_target, save
        from passes.streaming.chunks import NotSame

        model, target, first = self._paths
        for path in filter(None, (target, first)):
            check_target(path, force=self.force)
            refuse_weights(model, [path])
        if first == target:
            raise WrongUsage(f"--initial is {first}, where the model itself is written")
        say("running chunks")
        try:
            made = self.run()
        except PassesError as error:
            told = f"{error}"
            told = told if told.startswith(f"{model}: ") else f"{model}: {told}"
            remarks = [self._reproduced(error)] if isinstance(error, NotSame) else []
            yield Output(remarks=remarks, failure=told, exit_code=error.exit_code)
            return
        if first and made.initial is None:
            raise WrongUsage(f"{model}: no state needs --initial, none is computed from inputs")
        if first and made.initial is not None:
            save(made.initial, first, base_dir=made.base_dir, force=self.force)
        save(made.model, target, base_dir=made.base_dir, force=self.force)
        checked = made.verification.short
        lines = [f"{model}: {made.plan.to_text()}", f"  chunk by chunk {checked}"]
        lines += [f"          note: {note}" for note in checked.notes]
        lines += [f"wrote {path}" for path in (target, first) if path]
        said = {"schema_version": 1, "file": f"{model}", "output": f"{target}"}
        said |= {"stream": json.loads(made.plan.to_json()), "checked": asdict(checked)}
        yield Output("\n".join(lines), {"json": lambda: json.dumps(said, indent=2) + "\n"})

    def _reproduced(self, error: NotSame) -> str:
        """Write the folder with both sides of a mismatch, and return a sentence on it."""
        from passes.commands.task import reproduced

        model, target, _ = self._paths
        folder = target.with_name(f"{target.name}.reproducer")
        return reproduced(folder, error.found, (model.parent, model.parent))[1]


@command("stream", short_help="Make a model that runs a sequence chunk by chunk.")
@dataclass(frozen=True)
class Stream(_Writing):
    """Make a model that runs a chunk of any length, with its states as inputs and outputs.

    It is run chunk by chunk, cut at random, and compared with the whole; a model that does not
    agree is never written. Exit 3 if a node cannot be computed chunk by chunk; its path and the
    reason are named.
    """

    model: TheModel
    axis: str = option(
        "",
        "The dim of time: its name in the inputs, or axes of inputs, as `x=1,y=0`.",
        metavar="DIM|INPUT=AXIS,...",
    )
    _: KW_ONLY
    loop: str = option(
        "",
        "In place of an axis, the path of a Scan or a recurrent operator: inputs that it reads "
        "step by step have time, and what depends on others runs as a whole.",
        metavar="PATH",
    )
    naming: tuple[str, str] = option(
        ("{}", "new_{}"),
        "The names of states that are added, as input and as output.",
        flag="names",
        metavar=_PAIR,
    )
    chunk: int = option(
        0,
        "The number of frames of every chunk, if it is fixed; 1 leaves no loop over time.",
        least=0,
        metavar="N",
    )
    each: bool = option(
        False, "The states after each frame are outputs, too, to roll back to.", shown=API
    )
    frames: str = option(
        States.last,
        "The states that are outputs: after the `last` frame, or after `every` one, too.",
        States,
        flag="states",
        shown=CLI,
    )
    initial: bool | Place | None = option(
        None,
        "Where to write a model that computes what states start with, if that is computed from "
        "inputs.",
        metavar="FILE",
    )

    def check(self) -> None:
        """See that the axis is given, and that names have a place for that of a value."""
        super().check()
        if bool(self.axis) == bool(self.loop):
            raise WrongValue("axis", "is needed, or --loop; not both")
        if self.chunk and self.frames == States.every:
            raise WrongValue("frames", "is `every` for chunks of any length: without --chunk")
        if not all("{}" in name for name in self.naming) or len(set(self.naming)) < 2:
            names = "=".join(self.naming)
            raise WrongValue("naming", f"is {names!r}, not of the form {{}}=new_{{}}")

    @property
    def _paths(self) -> tuple[Path, Path, Path | None]:
        first = self.initial
        return *_places(self, "stream"), None if isinstance(first, bool | None) else Path(first)

    def run(self, say: Say = silent) -> Streamed:
        """Return the model of a chunk, its description and how it was verified. Loops are made
        Scans first, if that is proven.

        Raises:
            BadModel: the input is no valid model.
            CannotStream: a node reads more than the frames of a chunk and those before it.
            NotSame, NotCompared: the outcome was not shown to be right.
            WrongUsage: there is no such dim, input or output.
        """
        from passes.streaming.stream import streamed
        from passes.streaming.streamer import WantedStates

        each = self.each or self.frames == States.every
        wanted = WantedStates(self.naming, self.chunk, each, bool(self.initial))
        states = self.states or {}
        return streamed(self.model, self.axis, self.loop, states, wanted, self._judge())


@command("close", short_help="Turn a model of one step into a loop over time.")
@dataclass(frozen=True)
class Close(_Writing):
    """Turn a model of one step, whose states are inputs and outputs, into a loop over time.

    The loop is compared with the model run step by step; one that does not agree is never written.
    """

    model: TheModel
    axis: str = option(
        "time",
        "The name of the dim of time: that of inputs which have it, else of a new first axis.",
        metavar="DIM",
    )
    _: KW_ONLY
    same: Sequence[str] = option(
        (), "An input that is the same in every step; repeatable.", metavar="INPUT"
    )
    trips: str = option(
        "", "The name of a new input, the number of steps, if no input has frames.", metavar="NAME"
    )
    initial: Mapping[str, Any] | None = option(
        None,
        "What a state starts with, which is no input then: a number, as `h=0`, a list, or the "
        "array in a file, as `h=@file.npy`; repeatable.",
        metavar="INPUT=VALUE",
    )

    @property
    def _paths(self) -> tuple[Path, Path, Path | None]:
        return *_places(self, "closed"), None

    def run(self, say: Say = silent) -> Streamed:
        """Return the loop, its description and how it was verified. Without `states` they are those
        that `stream` described in the model.

        Raises:
            BadModel: the input is no valid model.
            NotSame, NotCompared: the outcome was not shown to be right.
            WrongUsage: there is no input or output of a name, or nothing that the loop could count.
        """
        from passes.streaming.close import closed

        first, judge = dict(self.initial or {}), self._judge()
        return closed(self.model, self.axis, self.states, self.same, self.trips, first, judge)


def _places(command: Stream | Close, suffix: str) -> tuple[Path, Path]:
    """The path of the model, and that of the outcome."""
    model = path_of(command.model)
    return model, Path(command.output or model.with_name(f"{model.stem}.{suffix}{model.suffix}"))
