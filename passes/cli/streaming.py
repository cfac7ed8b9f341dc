"""The commands `stream` and `close`: chunk by chunk, and back."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from passes.cli.parameters import (
    THE_MODEL,
    give_parameters,
    model_arguments,
    options_from,
    parameters_of,
)
from passes.cli.running import beside, check_report, complain, failing, progress, write
from passes.commands.declaring import Help, WrongValue
from passes.commands.delivery import CLI, Force, Reporting
from passes.commands.options import ExecutingBoth
from passes.errors import PassesError, WrongUsage

if TYPE_CHECKING:
    from passes.streaming.chunks import Judge, Streamed
    from passes.streaming.plan import State

app = typer.Typer()
_PAIR = "IN=OUT"


class States(StrEnum):
    """Of which frames of a chunk the states are outputs."""

    last = "last"
    every = "every"


@dataclass(frozen=True, kw_only=True)
class _Writing(ExecutingBoth, Reporting):
    """The options that both commands have."""

    state: Annotated[
        Sequence[str],
        Help(
            "An input that is a state, and the output that returns it; repeatable.", metavar=_PAIR
        ),
    ] = ()
    output: Annotated[
        str | os.PathLike[str] | None,
        Help("Where to write the model; beside it by default.", metavar="OUT", shown=CLI),
    ] = None
    force: Force = False

    def check(self) -> None:
        """See that the executor runs both models, and that states have an input and an output."""
        super().check()
        _pairs("state", self.state)


def _pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    """The outputs by input of texts as `h=new_h`."""
    found = {}
    for text in texts:
        name, _, found[name] = text.partition("=")
        if not name or not found[name]:
            raise WrongValue(option, f"is {text!r}, not of the form {_PAIR}")
    return found


@dataclass(frozen=True, kw_only=True)
class Stream(_Writing):
    """The options of `stream`."""

    axis: Annotated[
        str,
        Help(
            "The dim of time: its name in the inputs, or axes of inputs, as `x=1,y=0`.",
            metavar="DIM|INPUT=AXIS,...",
        ),
    ] = ""
    loop: Annotated[
        str,
        Help(
            "In place of an axis, the path of a Scan or a recurrent operator: inputs that it reads "
            "step by step have time, and what depends on others runs as a whole.",
            metavar="PATH",
        ),
    ] = ""
    names: Annotated[
        str, Help("The names of states that are added, as input and as output.", metavar=_PAIR)
    ] = "{}=new_{}"
    chunk: Annotated[
        int,
        Help(
            "The number of frames of every chunk, if it is fixed; 1 leaves no loop over time.",
            least=0,
            metavar="N",
        ),
    ] = 0
    states: Annotated[
        str,
        Help(
            "The states that are outputs: after the `last` frame, or after `every` one, too.",
            States,
        ),
    ] = States.last
    initial: Annotated[
        str | os.PathLike[str] | None,
        Help(
            "Where to write a model that computes what states start with, if that is computed from "
            "inputs.",
            metavar="FILE",
            shown=CLI,
        ),
    ] = None

    def check(self) -> None:
        """See that the axis is given, and that names have a place for that of a value."""
        super().check()
        if bool(self.axis) == bool(self.loop):
            raise WrongValue("axis", "is needed, or --loop; not both")
        if self.chunk and self.states == States.every:
            raise WrongValue("states", "is `every` for chunks of any length: without --chunk")
        for pair in _pairs("names", [self.names]).items():
            if not all("{}" in name for name in pair) or len(set(pair)) < 2:
                raise WrongValue("names", f"is {self.names!r}, not of the form {{}}=new_{{}}")


@dataclass(frozen=True, kw_only=True)
class Close(_Writing):
    """The options of `close`."""

    axis: Annotated[
        str,
        Help(
            "The name of the dim of time: that of inputs which have it, else of a new first axis.",
            metavar="DIM",
        ),
    ] = "time"
    same: Annotated[
        Sequence[str], Help("An input that is the same in every step; repeatable.", metavar="INPUT")
    ] = ()
    trips: Annotated[
        str,
        Help(
            "The name of a new input, the number of steps, if no input has frames.", metavar="NAME"
        ),
    ] = ""
    initial: Annotated[
        Mapping[str, Any] | None,
        Help(
            "What a state starts with, which is no input then: a number, as `h=0`, a list, or the "
            "array in a file, as `h=@file.npy`; repeatable.",
            metavar="INPUT=VALUE",
        ),
    ] = None


def _stream(model: Path, **given: Any) -> None:
    """Make a model that runs a chunk of any length, with its states as inputs and outputs.

    It is run chunk by chunk, cut at random, and compared with the whole; a model that does not
    agree is never written. Exit 3 if a node cannot be computed chunk by chunk; its path and the
    reason are named.
    """
    _deliver(model, options_from(Stream, given), "stream")


def _close(model: Path, **given: Any) -> None:
    """Turn a model of one step, whose states are inputs and outputs, into a loop over time.

    The loop is compared with the model run step by step; one that does not agree is never written.
    """
    _deliver(model, options_from(Close, given), "closed")


def _deliver(model: Path, options: Stream | Close, suffix: str) -> None:
    """Make the outcome, and write it with its report."""
    from passes.builds.task import refuse_weights
    from passes.check import load_checked
    from passes.ir.save import check_target, save
    from passes.streaming.chunks import Judge
    from passes.verify.inputs.given import load

    target = Path(options.output or model.with_name(f"{model.stem}.{suffix}{model.suffix}"))
    given = options.initial if isinstance(options, Stream) else None
    first = None if given is None else Path(given)
    with failing():
        for path in (target, *([first] if first else ())):
            check_target(path, force=options.force)
            refuse_weights(model, [path])
        if first == target:
            raise WrongUsage(f"--initial is {given}, where the model itself is written")
        check_report(options.json, (model, target, *filter(None, [first])))
        proto = load_checked(model)[0].proto
        inputs = [] if options.inputs is None else [load(Path(options.inputs), proto)]
        judge = Judge(options.executor, options.verify_budget, options.seed, inputs)
        with progress("running chunks"):
            made = _made(model, options, judge, target)
        if first and made.initial is None:
            raise WrongUsage(f"{model}: no state needs --initial, none is computed from inputs")
        if first and made.initial is not None:
            save(made.initial, first, base_dir=made.base_dir, force=options.force)
        save(made.model, target, base_dir=made.base_dir, force=options.force)
        checked = made.verification.short
        notes = [f"          note: {note}" for note in checked.notes]
        lines = [*_lines(model, made), f"  chunk by chunk {checked}", *notes]
        written = [f"wrote {path}" for path in (target, first) if path]
        beside(options.json)("\n".join([*lines, *written]))
        if options.json is not None:
            said = {"schema_version": 1, "file": f"{model}", "output": f"{target}"}
            said |= {"stream": json.loads(made.plan.to_json()), "checked": asdict(checked)}
            write(options.json, json.dumps(said, indent=2) + "\n")


def _made(model: Path, options: Stream | Close, judge: Judge, target: Path) -> Streamed:
    from passes.builds.task import reproduced
    from passes.streaming.chunks import NotSame
    from passes.streaming.close import close
    from passes.streaming.stream import stream

    states = _pairs("state", options.state)
    try:
        if isinstance(options, Stream):
            (naming,) = _pairs("names", [options.names]).items()
            return stream(
                model,
                options.axis,
                loop=options.loop,
                states=states,
                naming=naming,
                chunk=options.chunk,
                each=options.states == States.every,
                initial=options.initial is not None,
                judge=judge,
            )
        return close(
            model,
            options.axis,
            states=states,
            same=options.same,
            trips=options.trips,
            initial=options.initial,
            judge=judge,
        )
    except PassesError as error:
        if isinstance(error, NotSame):
            folder = target.with_name(f"{target.name}.reproducer")
            complain(reproduced(folder, error.found, (model.parent, model.parent))[1])
        if not f"{error}".startswith(f"{model}: "):
            error.args = (f"{model}: {error}",)
        raise


def _lines(model: Path, made: Streamed) -> list[str]:
    plan = made.plan
    least = (
        f", a multiple of {plan.chunk_multiple}"
        if plan.chunk_multiple > 1 and not plan.chunk
        else ""
    )
    number = f"{plan.chunk} frame{'s' * (plan.chunk > 1)}" if plan.chunk else "any number of frames"
    lines = [f"{model}: chunks of {number} along {plan.axis}{least}"]
    lines += [f"  input {port.name}: frames on axis {port.time_axis}" for port in plan.inputs]
    if plan.look_ahead:
        lines.append(f"  looks ahead: a chunk is followed by {plan.look_ahead} frames of the next")
        lines.append(f"  input {plan.frames_left}: the number of frames from this chunk to the end")
    for port in plan.outputs:
        every = f", one for {port.every} of the inputs" if port.every > 1 else ""
        lines.append(f"  output {port.name}: frames on axis {port.time_axis}{every}")
    lines += [f"  output {name}: holds after the last chunk" for name in plan.last]
    return [*lines, *(f"  state {_told(state)}" for state in plan.states)]


def _told(state: State) -> str:
    first = "fed by the caller" if state.value is None else "a value in the description"
    first = first if state.fill is None else f"{state.fill:g}"
    first = "what the initial model computes" if state.computed else first
    node = f" ({state.node})" if state.node else ""
    kind = f"{state.type}[{','.join(map(str, state.shape))}]"
    each = f", after each frame {state.each}" if state.each else ""
    return f"{state.input} -> {state.output}: {kind}, at first {first}{each}{node}"


_ARGUMENTS = model_arguments(model=THE_MODEL)
give_parameters(_stream, [*_ARGUMENTS, *parameters_of(Stream)])
app.command("stream", short_help="Make a model that runs a sequence chunk by chunk.")(_stream)
give_parameters(_close, [*_ARGUMENTS, *parameters_of(Close)])
app.command("close", short_help="Turn a model of one step into a loop over time.")(_close)
