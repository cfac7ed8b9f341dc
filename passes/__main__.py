"""The command line: parse, call, print. A command imports what it needs, so help is quick."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from passes.command_options import (
    Batch,
    BatchOption,
    Bounded,
    BoundedOption,
    Budget,
    CheckOutput,
    Dims,
    ExecutorOption,
    Executors,
    Factor,
    Inputs,
    Json,
    MaxBytes,
    MaxNodes,
    MaxTrips,
    ModelFile,
    Only,
    Opset,
    PeelOption,
    Reassociation,
    RuleOption,
    Seed,
    Skip,
    Target,
    TargetOption,
    sizes_of,
)
from passes.command_running import (
    FAILED,
    MISMATCH,
    NOT_PRODUCED,
    fail,
    progress,
    reproduce,
    rewriting,
    show,
    write,
)

if TYPE_CHECKING:
    from passes.api import Options
    from passes.session import Result

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


@rewriting(app, "upgrade", short_help="Upgrade a model to a newer opset.", suffix="opset{opset}")
def upgrade(
    model: Path, *, opset: Opset = 26, batch: BatchOption = Batch.auto, **common: Unpack[Options]
) -> Result:
    """Upgrade a model to a newer opset: Scan-8, with its batch and sequence_lens, and all else.

    Nothing is written unless every node got there and every rewrite was verified.
    """
    from passes import api

    return api.upgrade(model, opset=opset, batch=batch.value, **common)


@rewriting(app, "lower", short_help="Turn every Scan into a Loop.", suffix="lowered")
def lower(
    model: Path, *, opset: Opset = 26, only: Only = None, **common: Unpack[Options]
) -> Result:
    """Turn every Scan into a Loop; a model with a Scan-8 is upgraded to --opset first.

    Nothing is written unless every Scan became one and every rewrite was verified.
    """
    from passes import api

    return api.lower(model, opset=opset, only=only or (), **common)


@rewriting(app, "raise", short_help="Turn Loops into Scans, where that is proven.", suffix="raised")
def raise_(
    model: Path, *, opset: Opset = 26, only: Only = None, **common: Unpack[Options]
) -> Result:
    """Turn Loops into Scans, and whiles into fors, where that is proven to be the same.

    A Loop that stays is reported with what its proof lacks; under --strict that exits with 3.
    """
    from passes import api

    return api.raise_(model, opset=opset, only=only or (), **common)


@rewriting(app, "unroll", short_help="Write out loops of a static length.", suffix="unrolled")
def unroll(
    model: Path,
    *,
    opset: Opset = 26,
    only: Only = None,
    max_nodes: MaxNodes = 100_000,
    dim: Dims = None,
    factor: Factor = None,
    max_trips: MaxTrips = None,
    bounded: BoundedOption = Bounded.auto,
    check_output: CheckOutput = None,
    peel: PeelOption = None,
    **common: Unpack[Options],
) -> Result:
    """Write out every iteration of the loops whose trip count is static, or bounded.

    A loop that stays is reported with the reason; under --strict that exits with 3.
    """
    from passes import api

    mode = None if peel is None else peel.value
    try:
        api.check_unrolling(factor, max_trips, bounded.value, check_output, mode)
    except ValueError as error:
        raise typer.BadParameter(f"{error}") from error
    return api.unroll(
        model,
        opset=opset,
        only=only or (),
        max_nodes=max_nodes,
        dims=sizes_of(dim),
        factor=factor,
        max_trips=max_trips,
        bounded=bounded.value,
        check_output=check_output,
        peel=mode,
        **common,
    )


@rewriting(app, "hoist", short_help="Move work and constants out of loops.", suffix="hoisted")
def hoist(
    model: Path,
    *,
    opset: Opset = 26,
    only: Only = None,
    rule: RuleOption = None,
    skip: Skip = None,
    max_bytes: MaxBytes = 1 << 28,
    **common: Unpack[Options],
) -> Result:
    """Move out of loops and branches what is the same every time, and constants to the top."""
    from passes import api

    chosen = {"only": only or (), "rules": rule or (), "skip": skip or ()}
    return api.hoist(model, opset=opset, max_bytes=max_bytes, **chosen, **common)


@rewriting(app, "simplify", short_help="Drop what loops do in vain.", suffix="simplified")
def simplify(
    model: Path,
    *,
    opset: Opset = 26,
    only: Only = None,
    rule: RuleOption = None,
    skip: Skip = None,
    **common: Unpack[Options],
) -> Result:
    """Drop what loops and branches do in vain or twice, and those that are none.

    What might fail stays, for the new model must fail where the old one does; --assume
    valid-inputs lets it go.
    """
    from passes import api

    chosen = {"only": only or (), "rules": rule or (), "skip": skip or ()}
    return api.simplify(model, opset=opset, **chosen, **common)


@rewriting(app, "optimize", short_help="Do all that helps, for a --target.", suffix="optimized")
def optimize(
    model: Path,
    *,
    target: TargetOption = Target.onnxruntime,
    opset: Opset = 26,
    only: Only = None,
    rule: RuleOption = None,
    skip: Skip = None,
    dim: Dims = None,
    max_nodes: MaxNodes = 100_000,
    max_bytes: MaxBytes = 1 << 28,
    allow_reassociation: Reassociation = False,
    **common: Unpack[Options],
) -> Result:
    """Make the control flow of a model quick, or such that a runtime can take it.

    Loops that stay what they are are reported with the reason; under --strict that exits with 3.
    """
    from passes import api

    return api.optimize(
        model,
        target=target.value,
        opset=opset,
        only=only or (),
        rules=rule or (),
        skip=skip or (),
        dims=sizes_of(dim),
        max_nodes=max_nodes,
        max_bytes=max_bytes,
        allow_reassociation=allow_reassociation,
        **common,
    )


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
        with progress() as say:
            sides, verification, report = compare_files(
                before, after, executor.value, inputs, verify_budget, seed, say
            )
    except PassesError as error:
        fail(f"{error}", FAILED)
    show(report, json)
    if verification.verdict == "mismatch":
        folder = after.with_name(f"{after.name}.reproducer")
        reproduce(folder, sides, verification.failure, (before.parent, after.parent))
        fail(f"{after}: does not agree with {before}: {verification.reason}", MISMATCH)
    if verification.verdict == "not-compared":
        fail(f"{before}: no case could be compared, {verification.reason}", NOT_PRODUCED)


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
        fail(f"{error}", FAILED)
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        console = Console(width=150)
    console.print(to_table(loops) if loops else f"{model}: no Scan and no Loop")
    if json is not None:
        write(json, to_json(loops))


@app.command("list")
def list_rules() -> None:
    """List the rules."""
    from passes.plugins import load_rules

    rules = load_rules()
    width = max(map(len, rules)) + 2
    for name, rule in sorted(rules.items()):
        typer.echo(f"{name:<{width}}{rule.summary}")


@app.command()
def explain(
    subject: Annotated[str, typer.Argument(help="A rule, or the code of a refusal.")],
) -> None:
    """Explain a rule, or what the code of a refusal means."""
    from passes.explanation import explanation

    text = explanation(subject)
    if text is None:
        fail(f"{subject!r} is neither a rule nor a code; `passes list` shows the rules", FAILED)
    typer.echo(text)


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
