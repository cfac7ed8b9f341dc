"""What the commands share: run, report, save, and leave with the right exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from passes.command_options import CommonOptions, ModelFile, Output

if TYPE_CHECKING:
    from onnx import ModelProto

    from passes.report import Report
    from passes.session import Progress, Result
    from passes.verify.verdicts import Failure

DONE, FAILED, USAGE, NOT_PRODUCED, MISMATCH = range(5)


def rewriting(
    app: typer.Typer, name: str, *, short_help: str, suffix: str
) -> Callable[[Callable[..., Result]], None]:
    """Make a command of a function that takes a model, options of its own, and those of all.

    The function's parameters become options of the command, those of `CommonOptions` with them.
    The outcome goes beside the model by default, under `suffix`, which may name own options.
    """

    def enter(call: Callable[..., Result]) -> None:
        # what only type checkers import is not there when the annotations are read
        unread = {"Options": Any, "Result": Any}
        parameters = signature(call, locals=unread, eval_str=True).parameters.values()
        own = [one for one in parameters if one.kind == Parameter.KEYWORD_ONLY]

        def command(model: Path, output: Path | None, **given: Any) -> None:
            mine = {one.name: given.pop(one.name) for one in own}
            common = CommonOptions(**given)
            ending = f".{suffix.format(**mine)}{model.suffix}"
            target = output or model.parent / f"{model.stem}{ending}"

            def run(say: Progress | None) -> Result:
                return call(model, **mine, **common.for_library(say))

            named = tuple(mine.get("rule") or ())
            _rewrite(model, target, run, output is not None, common, named)

        head = [_parameter("model", ModelFile), _parameter("output", Output, None)]
        everyone = signature(CommonOptions, eval_str=True).parameters.values()
        _give_parameters(command, [*head, *own, *everyone])
        command.__doc__ = call.__doc__
        app.command(name, short_help=short_help)(command)

    return enter


def _parameter(name: str, annotation: Any, default: Any = Parameter.empty) -> Parameter:
    return Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation)


def _give_parameters(command: Callable[..., None], parameters: list[Parameter]) -> None:
    """Make typer see these parameters."""
    ordered = [one.replace(kind=Parameter.KEYWORD_ONLY) for one in parameters]
    # read by inspect.signature; functions have no such attribute in the type stubs
    command.__signature__ = Signature(ordered)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in ordered}


def _rewrite(
    model: Path,
    target: Path,
    run: Callable[[Progress | None], Result],
    write_unchanged: bool,
    common: CommonOptions,
    named: Sequence[str],
) -> None:
    """Run a rewriting command on `model`, write `target` and leave with its exit code.

    A model that was left as it is gets written only if `write_unchanged`; `named` are the rules
    that were asked for by name.
    """
    from passes import session
    from passes.check_output import NameTaken
    from passes.dims import UnknownDim
    from passes.errors import PassesError
    from passes.plugins import UnknownRule
    from passes.save import check_target, save

    try:
        check_target(target, force=common.force)
        check_report(common.json, (model, target))
        with progress() as say:
            result = run(say)
            refused = _refused(result, named) if common.strict else ""
            idle = result.report.unchanged and not write_unchanged
            if not idle and not refused:
                save(
                    result.model, target, base_dir=result.base_dir, force=common.force, progress=say
                )
        show(result.report, common.json)
        if refused:
            fail(f"{refused}, and --strict was given", NOT_PRODUCED)
        if not idle:
            typer.echo(f"wrote {target}")
    except session.Mismatch as error:
        show(error.report, common.json)
        folder = target.with_name(f"{target.name}.reproducer")
        reproduce(folder, error.sides, error.failure, (model.parent, model.parent))
        fail(f"{error}", MISMATCH)
    except session.NotProduced as error:
        show(error.report, common.json)
        fail(f"{error}", NOT_PRODUCED)
    except (session.UnknownOpset, UnknownDim, UnknownRule, NameTaken) as error:
        fail(f"{error}", USAGE)
    except PassesError as error:
        fail(f"{error}", FAILED)


def _refused(result: Result, named: Sequence[str]) -> str:
    """What the command set out to rewrite and is there still; empty where there is no such."""
    from passes.pipelines import aims_of
    from passes.scope import walk_model

    report = result.report
    aims = aims_of(report.command, named)
    left = {place.node.op_type for place in walk_model(result.model)}
    stay = [one for one in report.refusals if one.rule in aims and one.op in left]
    if not stay:
        return ""
    more = f" (and {len(stay) - 1} more)" if len(stay) > 1 else ""
    return f"{stay[0].path} stays{more}"


def check_report(json: Path | None, models: Sequence[Path]) -> None:
    """See that the report can be written, and over no model, before any work is done."""
    if json is None:
        return
    if json.resolve() in {path.resolve() for path in models}:
        fail(f"{json}: is a model of this command, not a place for its report", USAGE)
    if not json.parent.is_dir() or json.is_dir() or not os.access(json.parent, os.W_OK):
        fail(f"{json}: cannot be written (no such folder, or it is one)", FAILED)


def show(report: Report, json: Path | None) -> None:
    typer.echo(report.to_text())
    if json is not None:
        write(json, report.to_json())


def write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        fail(f"{path}: cannot be written ({error.strerror})", FAILED)


def reproduce(
    folder: Path,
    sides: tuple[ModelProto, ModelProto],
    failure: Failure | None,
    base_dirs: tuple[Path, Path],
) -> None:
    """Save both sides and, where the outputs differ, the inputs that show it."""
    from passes.verify.reproducer import save

    written = save(
        folder,
        *sides,
        {} if failure is None else failure.case.feeds,
        sentence="the signatures differ" if failure is None else failure.sentence,
        expected=None if failure is None else failure.expected,
        base_dir=base_dirs[0],
        base_dir_after=base_dirs[1],
    )
    typer.echo(f"reproducer in {written}", err=True)


def fail(sentence: str, code: int) -> NoReturn:
    typer.echo(sentence, err=True)
    raise typer.Exit(code)


@contextmanager
def progress() -> Iterator[Callable[[str], None] | None]:
    """A line on stderr that says what goes on, where stderr is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield status.update
