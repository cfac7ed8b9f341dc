"""The command `bisect`: the first value in which two models differ."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from passes.cli.parameters import give_parameters, model_arguments, options_from, parameters_of
from passes.cli.running import beside, check_report, fail, progress, write
from passes.cli.showing import Verify
from passes.commands.declaring import Help, options_of
from passes.commands.delivery import CLI, Reporting
from passes.commands.options import ExecutingBoth
from passes.errors import FAILED, MISMATCH, NOT_PRODUCED, PassesError, WrongUsage

if TYPE_CHECKING:
    from passes.bisection.result import Bisection

app = typer.Typer()
_MEGABYTE = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Bisect(ExecutingBoth, Reporting):
    """The options of `bisect`."""

    exact: Annotated[bool, options_of(Verify)["exact"].help] = False
    cases: Annotated[
        int | None, Help("The most inputs to try.", least=1, metavar="N", shown=CLI)
    ] = None
    memory: Annotated[
        int,
        Help("Megabytes of values to hold while they are compared.", least=1, metavar="MB"),
    ] = 1024
    output: Annotated[
        str | os.PathLike[str] | None,
        Help(
            "The folder to write the parts to; beside AFTER, or in the folder, by default.",
            metavar="DIR",
        ),
    ] = None


def _bisect(before: Path, after: Path | None, **given: Any) -> None:
    """Find the first value in which two models differ that should be equal, and why.

    BEFORE alone is a folder with both sides and inputs, as a command that exits with 4 writes it.
    Exit 0 if the models agree, 4 with a folder if they do not, 3 if that cannot be decided.
    """
    options = options_from(Bisect, given)
    try:
        before, after, inputs, folder = _sources(before, after, options)
        check_report(options.json, (before, after, *filter(None, [inputs])))
        found = _searched(before, after, inputs, options)
        written = "" if found.first is None else _written(found, folder, options.exact)
    except PassesError as error:
        fail(f"{error}", error.exit_code)
    except OSError as error:
        fail(f"the parts cannot be written ({error.strerror})", FAILED)
    beside(options.json)("\n".join(filter(None, (found.to_text(), written))))
    if options.json is not None:
        write(options.json, found.to_json())
    if found.verdict == "differ":
        fail(f"{after}: does not agree with {before}", MISMATCH)
    if found.verdict == "unknown":
        raise typer.Exit(NOT_PRODUCED)


def _sources(
    before: Path, after: Path | None, options: Bisect
) -> tuple[Path, Path, Path | None, Path]:
    """Both models, the inputs, and the folder to write to."""
    from passes.verify.reproducer import AFTER, BEFORE, DATA_SET

    inputs = None if options.inputs is None else Path(options.inputs)
    if after is None:
        folder = before / "parts"
        if not before.is_dir():
            wrong = "is no folder" if before.exists() else "there is no such folder"
            asked = f"name two models, or a folder that holds {BEFORE} and {AFTER}"
            raise WrongUsage(f"{before}: {wrong}; {asked}")
        if inputs is None and any((before / DATA_SET).glob("*")):
            inputs = before / DATA_SET
        before, after = before / BEFORE, before / AFTER
    else:
        folder = after.with_name(f"{after.name}.bisect")
    return before, after, inputs, folder if options.output is None else Path(options.output)


def _searched(before: Path, after: Path, inputs: Path | None, options: Bisect) -> Bisection:
    from passes.bisection.bisecting import Search, bisect_models
    from passes.check import load_checked
    from passes.verify.inputs.given import load

    first, second = (load_checked(path)[0] for path in (before, after))
    given = [] if inputs is None else [load(inputs, first.proto)]
    search = Search(
        given,
        options.seed,
        options.cases,
        options.executor,
        options.verify_budget,
        options.memory * _MEGABYTE,
        options.exact,
    )
    with progress("running both"):
        return bisect_models(first, second, search)


def _written(found: Bisection, folder: Path, exact: bool) -> str:
    """Write the parts, and tell where. Raises OSError."""
    from passes.builds.task import command_line
    from passes.verify.reproducer import Circumstances, save

    assert found.first is not None
    cut = found.first.cut
    if cut is None:
        return "not written      what differs cannot be cut out"
    seen = Circumstances(command_line(), found.first.after.path, (), exact=exact)
    path = save(folder, cut.before, cut.after, cut.failure, sentence=found.text, seen=seen)
    old, new = cut.nodes
    size = f"{new} nodes" if old == new else f"{old} and {new} nodes"
    contents = f"both sides cut to {size.replace('1 nodes', '1 node')}, the inputs, the command"
    return f"{'written':<15}  {path}: {contents}"


_SIDES = {"before": "The original, or a folder.", "after": "The model to compare with it."}
give_parameters(_bisect, [*model_arguments("after", **_SIDES), *parameters_of(Bisect)])
app.command("bisect", short_help="Find the first value in which two models differ, and why.")(
    _bisect
)
