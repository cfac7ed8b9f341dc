"""The command line: parse, call, print. A command imports what it needs, so help is quick."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from onnx import ModelProto

    from passes.report import Report
    from passes.verify.verdicts import Failure

DONE, FAILED, USAGE, NOT_PRODUCED, MISMATCH = range(5)

app = typer.Typer(
    name="passes",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich takes longer to import than all else that help needs
    help="""Rewrite the control flow of ONNX models, and execute every rewrite before and after.

    Exit codes: 0 done; 1 failed, or the input is no valid model; 2 wrong usage; 3 the requested
    result could not be produced (under --strict also: an optional rule refused); 4 a rewrite, or
    a model given to `verify`, does not agree with the original.""",
)


class Batch(StrEnum):
    """Ways of upgrading a Scan-8."""

    auto = "auto"
    vectorize = "vectorize"
    nest = "nest"
    unroll = "unroll"


class Executors(StrEnum):
    """What runs the models."""

    reference = "reference"
    onnxruntime = "onnxruntime"
    both = "both"


class Assumption(StrEnum):
    """What may be taken for granted."""

    valid_inputs = "valid-inputs"
    non_empty = "non-empty"


ModelFile = Annotated[Path, typer.Argument(help="The model: binary, or .onnxtxt, .json, ...")]
Opset = Annotated[
    int, typer.Option("--opset", min=9, help="The opset to upgrade to.", show_default=True)
]
BatchOption = Annotated[
    Batch,
    typer.Option(
        help="How a Scan-8 handles its batch: `vectorize` handles all rows at once, `nest` runs a "
        "loop over the batch around the loop over time, `unroll` writes out each row of a static "
        "batch, `auto` chooses."
    ),
]
Json = Annotated[
    Path | None,
    typer.Option("--json", help="Write the report as JSON, too.", metavar="FILE"),
]
ExecutorOption = Annotated[
    Executors,
    typer.Option(help="What executes the models; `both` leaves out what is not installed."),
]
Inputs = Annotated[
    Path | None,
    typer.Option(
        help="Run on these inputs too: an .npz with an array per input, or a folder of "
        "input_N.pb as in ONNX's test data."
    ),
]
Budget = Annotated[
    float, typer.Option(min=0.0, help="Seconds that verification may take.", metavar="S")
]
Seed = Annotated[int, typer.Option(help="Seed of the drawn inputs.", metavar="N")]


@app.command(short_help="Upgrade a model to a newer opset, its Scan-8 loops included.")
def upgrade(
    model: ModelFile,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Where to write; beside the model by default.", metavar="OUT"
        ),
    ] = None,
    opset: Opset = 26,
    batch: BatchOption = Batch.auto,
    verify: Annotated[
        bool, typer.Option("--verify/--no-verify", help="Execute before and after.")
    ] = True,
    executor: ExecutorOption = Executors.both,
    inputs: Inputs = None,
    verify_budget: Budget = 60.0,
    seed: Seed = 0,
    json: Json = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit 3 if an optional rule refused, too.")
    ] = False,
    allow_unverified: Annotated[
        bool,
        typer.Option("--allow-unverified", help="Write rewrites that could not be compared."),
    ] = False,
    assume: Annotated[
        list[Assumption] | None,
        typer.Option(
            help="`valid-inputs` leaves out the guards that make the new model fail on inputs "
            "on which the old one fails; `non-empty` what handles a batch, time or length of 0."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over OUT if it exists.")] = False,
) -> None:
    """Upgrade a model to a newer opset: Scan-8, with its batch and sequence_lens, and all else.

    Nothing is written unless every node got there and every rewrite was verified.
    """
    from passes import api, session
    from passes.errors import PassesError
    from passes.save import check_target, save

    target = output or model.with_name(f"{model.stem}.opset{opset}{model.suffix}")
    try:
        check_target(target, force=force)
        with _progress() as say:
            result = api.upgrade(
                model,
                opset=opset,
                batch=batch.value,
                verify=verify,
                executor=executor.value,
                inputs=inputs,
                verify_budget=verify_budget,
                seed=seed,
                allow_unverified=allow_unverified,
                assume=[one.value for one in assume or []],
                progress=say,
            )
            report = result.report
            refused = strict and bool(report.refusals)
            idle = report.unchanged and output is None
            if not idle and not refused:
                save(result.model, target, base_dir=result.base_dir, force=force, progress=say)
        _show(report, json)
        if refused:
            _fail("an optional rule refused, and --strict was given", NOT_PRODUCED)
        if not idle:
            typer.echo(f"wrote {target}")
    except session.Mismatch as error:
        _show(error.report, json)
        folder = target.with_name(f"{target.name}.reproducer")
        _reproduce(folder, error.sides, error.failure, (model.parent, model.parent))
        _fail(f"{error}", MISMATCH)
    except session.NotProduced as error:
        _show(error.report, json)
        _fail(f"{error}", NOT_PRODUCED)
    except PassesError as error:
        _fail(f"{error}", FAILED)


@app.command(short_help="Execute two models on the same inputs and compare them.")
def verify(
    before: Annotated[Path, typer.Argument(help="The original.")],
    after: Annotated[Path, typer.Argument(help="What is to do the same.")],
    executor: ExecutorOption = Executors.both,
    inputs: Inputs = None,
    verify_budget: Budget = 60.0,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Execute two models on the same inputs and compare what they answer.

    Exit 0 if they agree, 4 with a reproducer folder if they do not, 3 if no case could be
    compared.
    """
    from passes.comparing import compare_files
    from passes.errors import PassesError

    try:
        with _progress() as say:
            sides, verification, report = compare_files(
                before, after, executor.value, inputs, verify_budget, seed, say
            )
    except PassesError as error:
        _fail(f"{error}", FAILED)
    _show(report, json)
    if verification.verdict == "mismatch":
        folder = after.with_name(f"{after.name}.reproducer")
        _reproduce(folder, sides, verification.failure, (before.parent, after.parent))
        _fail(f"{after}: does not agree with {before}: {verification.reason}", MISMATCH)
    if verification.verdict == "not-compared":
        _fail(f"{before}: no case could be compared, {verification.reason}", NOT_PRODUCED)


@app.command(short_help="Show every loop, and what the rules would do with it.")
def inspect(
    model: ModelFile,
    opset: Opset = 26,
    batch: BatchOption = Batch.auto,
    json: Json = None,
) -> None:
    """Show every loop of a model, and what the rules would do with it, or why not."""
    from passes.errors import PassesError
    from passes.inspection import inspect_model, to_json, to_table

    try:
        loops = inspect_model(model, opset, {"batch": batch.value})
    except PassesError as error:
        _fail(f"{error}", FAILED)
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        console = Console(width=150)
    console.print(to_table(loops) if loops else f"{model}: no Scan and no Loop")
    if json is not None:
        _write(json, to_json(loops))


@app.command("list")
def list_rules() -> None:
    """List the rules."""
    from passes.plugins import load_rules

    for name, rule in sorted(load_rules().items()):
        typer.echo(f"{name:<16}{rule.summary}")


@app.command()
def explain(
    subject: Annotated[str, typer.Argument(help="A rule, or the code of a refusal.")],
) -> None:
    """Explain a rule, or what the code of a refusal means."""
    from passes.explanation import explanation

    text = explanation(subject)
    if text is None:
        _fail(f"{subject!r} is neither a rule nor a code; `passes list` shows the rules", FAILED)
    typer.echo(text)


def _show(report: Report, json: Path | None) -> None:
    typer.echo(report.to_text())
    if json is not None:
        _write(json, report.to_json())


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        _fail(f"{path}: cannot be written ({error.strerror})", FAILED)


def _reproduce(
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


def _fail(sentence: str, code: int) -> NoReturn:
    typer.echo(sentence, err=True)
    raise typer.Exit(code)


@contextmanager
def _progress() -> Iterator[Callable[[str], None] | None]:
    """A line on stderr that says what goes on, where stderr is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield status.update


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
