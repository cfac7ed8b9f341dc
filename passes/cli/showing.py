"""The commands that write no model. Each imports what it needs, so help is quick."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from io import StringIO
from pathlib import Path
from typing import Annotated

import typer

from passes.choices import Batch, Executors, RuleOptions
from passes.cli.options import (
    BatchOption,
    Budget,
    ExecutorOption,
    For,
    Inputs,
    Json,
    ModelFile,
    Opset,
    Seed,
    refuse_both,
)
from passes.cli.running import (
    FAILED,
    MISMATCH,
    NOT_PRODUCED,
    USAGE,
    check_report,
    fail,
    progress,
    reproduce,
    show,
    tell,
    write,
)

app = typer.Typer()


@app.command(short_help="Execute two models on the same inputs and compare them.")
def verify(
    before: Annotated[Path, typer.Argument(help="The original.")],
    after: Annotated[Path, typer.Argument(help="What is to do the same.")],
    executor: ExecutorOption = Executors.both,
    inputs: Inputs = None,
    verify_budget: Budget = 60.0,
    seed: Seed = 0,
    exact: Annotated[
        bool, typer.Option("--exact", help="Floats must be equal to the bit.")
    ] = False,
    json: Json = None,
) -> None:
    """Execute two models on the same inputs and compare what they answer.

    Exit 0 if they agree, 4 with a reproducer folder if they do not, 3 if no case could be
    compared.
    """
    from passes.cli.comparing import compare_files
    from passes.errors import PassesError
    from passes.not_produced import Disagreement

    check_report(json, (before, after, *filter(None, [inputs])))
    try:
        with progress() as say:
            sides, verification, report = compare_files(
                before, after, executor.value, inputs, verify_budget, seed, say, exact=exact
            )
    except PassesError as error:
        fail(f"{error}", FAILED)
    with nullcontext() if verification.verdict == "verified" else suppress(typer.Exit):
        show(report, json)
    if verification.verdict == "mismatch":
        folder = after.with_name(f"{after.name}.reproducer")
        found = Disagreement(
            "main", verification.reason, sides, verification.failure, (), exact=exact
        )
        reproduce(folder, found, (before.parent, after.parent))
        fail(f"{after}: does not agree with {before}: {verification.reason}", MISMATCH)
    if verification.verdict == "not-compared":
        fail(f"{before}: no case could be compared, {verification.reason}", NOT_PRODUCED)


@app.command(short_help="Show every loop, and what the rules would do with it.")
def inspect(
    model: ModelFile,
    opset: Opset = None,
    for_: For = None,
    batch: BatchOption = Batch.auto,
    json: Json = None,
) -> None:
    """Show every loop of a model, and what the rules would do with it, or why not."""
    from passes.cli.inspection import inspect_model, to_json, to_table
    from passes.engine.target_opset import TooNew, UnknownOpset
    from passes.errors import PassesError
    from passes.onnxruntime.releases import UnknownRelease
    from passes.options import asked_for

    refuse_both(opset, for_)
    check_report(json, (model,))
    try:
        asked, release = asked_for(opset, for_)
        loops = inspect_model(model, asked, RuleOptions(batch=batch), release)
    except TooNew as error:
        fail(f"{model}: {error}", NOT_PRODUCED)
    except (UnknownOpset, UnknownRelease) as error:
        fail(f"{error}", USAGE)
    except PassesError as error:
        fail(f"{error}", FAILED)
    from rich.console import Console

    out = Console()
    printed = StringIO()  # rich would print itself, and not mind what becomes of it
    width = out.width if out.is_terminal else 150
    console = Console(file=printed, width=width, force_terminal=out.is_terminal)
    console.print(to_table(loops) if loops else f"{model}: no Scan and no Loop")
    tell(printed.getvalue().removesuffix("\n"))
    if json is not None:
        write(json, to_json(loops))


@app.command("list")
def list_rules() -> None:
    """List the rules."""
    from passes.engine.plugins import load_rules

    rules = load_rules()
    width = max(map(len, rules)) + 2
    tell("\n".join(f"{name:<{width}}{rule.summary}" for name, rule in sorted(rules.items())))


@app.command()
def explain(
    subject: Annotated[str, typer.Argument(help="A rule, or the code of a refusal.")],
) -> None:
    """Explain a rule, or what the code of a refusal means."""
    from passes.cli.explanation import explanation

    text = explanation(subject)
    if text is None:
        fail(f"{subject!r} is neither a rule nor a code; `passes list` shows the rules", FAILED)
    tell(text)
