"""The commands `stream` and `close`: chunk by chunk, and back."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from passes.choices import Executors
from passes.cli.parameters import (
    THE_MODEL,
    give_parameters,
    model_arguments,
    options_from,
    parameters_of,
)
from passes.cli.running import check_report, failing, progress, tell, write
from passes.commands.declaring import Says, WrongValue
from passes.commands.delivery import Force, Reporting
from passes.commands.options import Executing

if TYPE_CHECKING:
    from passes.ir.model import Model
    from passes.streaming.chunks import Judge, Streamed
    from passes.streaming.plan import State

app = typer.Typer()
_CLI = frozenset({"cli"})


@dataclass(frozen=True, kw_only=True)
class _Writing(Executing, Reporting):
    """The options that both commands have."""

    state: Annotated[
        Sequence[str],
        Says(
            "An input that holds a state, and the output that returns it, as `h=h_out`; "
            "repeatable.",
            metavar="IN=OUT",
        ),
    ] = ()
    output: Annotated[
        str | os.PathLike[str] | None,
        Says("Where to write the model; beside it by default.", metavar="OUT", shown=_CLI),
    ] = None
    force: Force = False

    @property
    def states(self) -> dict[str, str]:
        """The outputs that return states, by input."""
        return dict(_pair(one, "state", "IN=OUT") for one in self.state)

    def check(self) -> None:
        """See that the executor runs both models."""
        super().check()
        if self.executor not in set(Executors):
            raise WrongValue("executor", "is `reference`, `onnxruntime` or `both` here")
        assert self.states is not None


def _pair(text: str, option: str, form: str) -> tuple[str, str]:
    left, _, right = text.partition("=")
    if not left or not right:
        raise WrongValue(option, f"is {text!r}, not of the form {form}")
    return left, right


@dataclass(frozen=True, kw_only=True)
class Stream(_Writing):
    """The options of `stream`."""

    axis: Annotated[
        str,
        Says(
            "The dim of time: its name in the inputs, or axes of inputs, as `x=1,y=0`.",
            metavar="DIM|INPUT=AXIS,...",
        ),
    ] = ""
    names: Annotated[
        str,
        Says("The names of states that are added, as input and as output.", metavar="IN=OUT"),
    ] = "{}=new_{}"

    @property
    def naming(self) -> tuple[str, str]:
        """The templates of names."""
        return _pair(self.names, "names", "IN=OUT")

    def check(self) -> None:
        """See that the axis is given, and that names have a place for that of a value."""
        super().check()
        if not self.axis:
            raise WrongValue("axis", "is needed: the dim of time")
        if not all("{}" in name for name in self.naming) or len(set(self.naming)) < 2:
            raise WrongValue("names", f"is {self.names!r}, not of the form {{}}=new_{{}}")


def _stream(model: Path, **given: Any) -> None:
    """Make a model that runs a chunk of any length, with its states as inputs and outputs.

    It is run chunk by chunk, cut at random, and compared with the whole; a model that does not
    agree is never written. Exit 3 if a node reads more than a chunk and what came before it.
    """
    options = options_from(Stream, given)

    def make(loaded: Model, judge: Judge) -> Streamed:
        from passes.streaming.stream import stream

        return stream(
            loaded.proto if loaded.path is None else loaded.path,
            options.axis,
            states=options.states,
            naming=options.naming,
            judge=judge,
        )

    _deliver(model, options, "stream", make)


@dataclass(frozen=True, kw_only=True)
class Close(_Writing):
    """The options of `close`."""

    axis: Annotated[
        str,
        Says(
            "The name of the dim of time: that of inputs which have it, else of a new first axis.",
            metavar="DIM",
        ),
    ] = "time"
    same: Annotated[
        Sequence[str],
        Says("An input that is the same in every step; repeatable.", metavar="INPUT"),
    ] = ()
    trips: Annotated[
        str,
        Says(
            "The name of a new input, the number of steps, if no input has frames: the loop is a "
            "Loop.",
            metavar="NAME",
        ),
    ] = ""
    initial: Annotated[
        Mapping[str, Any] | None,
        Says(
            "What a state starts with, which is no input then: a number, as `h=0`, a list, or the "
            "array in a file, as `h=@file.npy`; repeatable.",
            metavar="INPUT=VALUE",
        ),
    ] = None


def _close(model: Path, **given: Any) -> None:
    """Make a loop over time of a model of one step, whose states are inputs and outputs.

    The loop is compared with the model run step by step; one that does not agree is never written.
    """
    options = options_from(Close, given)

    def make(loaded: Model, judge: Judge) -> Streamed:
        from passes.streaming.close import close

        return close(
            loaded.proto if loaded.path is None else loaded.path,
            options.axis,
            states=options.states,
            same=options.same,
            trips=options.trips,
            initial=options.initial,
            judge=judge,
        )

    _deliver(model, options, "closed", make)


def _deliver(
    model: Path, options: _Writing, suffix: str, make: Callable[[Model, Judge], Streamed]
) -> None:
    """Make the outcome, and write it with its report."""
    from passes.check import load_checked
    from passes.errors import PassesError
    from passes.ir.save import check_target, save
    from passes.streaming.chunks import Judge
    from passes.verify.inputs.given import load

    target = model.with_name(f"{model.stem}.{suffix}{model.suffix}")
    target = target if options.output is None else Path(options.output)
    with failing():
        check_target(target, force=options.force)
        check_report(options.json, (model, target))
        loaded, _ = load_checked(model)
        given = [] if options.inputs is None else [load(Path(options.inputs), loaded.proto)]
        judge = Judge(options.executor, options.verify_budget, options.seed, given)
        with progress() as say:
            if say is not None:
                say("running chunks")
            try:
                made = make(loaded, judge)
            except PassesError as error:
                if f"{error}".startswith(f"{model}: "):
                    raise
                error.args = (f"{model}: {error}",)
                raise
        save(made.model, target, base_dir=made.base_dir, force=options.force)
        tell("\n".join([*_lines(model, made), f"wrote {target}"]))
        if options.json is not None:
            write(options.json, _as_json(model, target, made))


def _lines(model: Path, made: Streamed) -> list[str]:
    from passes.report import Checked

    plan, checked = made.plan, Checked.of(made.verification)
    chunk = f"a multiple of {plan.chunk_multiple}" if plan.chunk_multiple > 1 else "any length"
    lines = [f"{model}: {plan.axis} is time, in chunks of {chunk}"]
    for port in plan.inputs:
        lines.append(f"  input {port.name}: time is axis {port.time_axis}")
    for port in plan.outputs:
        every = f", a frame for {port.every} of the inputs" if port.every > 1 else ""
        lines.append(f"  output {port.name}: time is axis {port.time_axis}{every}")
    lines += [f"  output {name}: holds after the last chunk" for name in plan.last]
    lines += [f"  state {_of_state(state)}" for state in plan.states]
    notes = [f"          note: {note}" for note in checked.notes]
    return [*lines, f"  chunk by chunk {checked}", *notes]


def _of_state(state: State) -> str:
    first = "its first value is an input"
    if state.fill is not None:
        first = f"first {state.fill:g}"
    elif state.value is not None:
        first = "first the value in the description"
    shape = ",".join(map(str, state.shape))
    node = f" ({state.node})" if state.node else ""
    return f"{state.input} -> {state.output}: {state.type}[{shape}], {first}{node}"


def _as_json(model: Path, target: Path, made: Streamed) -> str:
    import json

    from passes.builds.report_file import as_json
    from passes.report import Checked

    said = {
        "schema_version": 1,
        "file": str(model),
        "output": str(target),
        "stream": json.loads(made.plan.to_json()),
        "checked": asdict(Checked.of(made.verification)),
    }
    return as_json(said, indent=2) + "\n"


give_parameters(_stream, [*model_arguments(model=THE_MODEL), *parameters_of(Stream)])
app.command("stream", short_help="Make a model that runs a sequence chunk by chunk.")(_stream)
give_parameters(_close, [*model_arguments(model=THE_MODEL), *parameters_of(Close)])
app.command("close", short_help="Make a loop over time of a model of one step.")(_close)
