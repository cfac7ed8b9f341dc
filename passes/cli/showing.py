"""The commands that write no model. Each imports what it needs, so help is quick."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Annotated, Any

import typer

from passes.builds.task import reproduced
from passes.choices import Batch, RuleOptions
from passes.cli.parameters import (
    THE_MODEL,
    give_parameters,
    model_arguments,
    options_from,
    parameters_of,
)
from passes.cli.running import check_report, complain, fail, failing, progress, show, tell, write
from passes.commands.declaring import Says, WrongValue, options_of
from passes.commands.delivery import Reporting
from passes.commands.options import Converting, Executing
from passes.commands.rewriting import Upgrade
from passes.errors import FAILED, MISMATCH, NOT_PRODUCED

app = typer.Typer()


@dataclass(frozen=True, kw_only=True)
class Verify(Executing, Reporting):
    """The options of `verify`."""

    exact: Annotated[bool, Says("Floats must be equal to the bit.")] = False
    atol: Annotated[
        float | None,
        Says("Floats may be off by this much, and by --rtol.", least=0, metavar="E"),
    ] = None
    rtol: Annotated[
        float | None,
        Says("Floats may be off by this part of themselves, and by --atol.", least=0, metavar="E"),
    ] = None

    def check(self) -> None:
        """See that one thing is asked of floats."""
        if self.exact and self.tolerance is not None:
            raise WrongValue("exact", "does not go together with atol and rtol")

    @property
    def tolerance(self) -> tuple[float, float] | None:
        """The absolute and the relative error that the user allows."""
        if self.atol is None and self.rtol is None:
            return None
        return self.atol or 0.0, self.rtol or 0.0


@dataclass(frozen=True, kw_only=True)
class Inspect(Converting, Reporting):
    """The options of `inspect`."""

    batch: Annotated[str, options_of(Upgrade)["batch"].says] = Batch.auto


def _verify(before: Path, after: Path, **given: Any) -> None:
    """Execute two models on the same inputs and compare their outputs.

    Exit 0 if they agree, 4 with a reproducer folder if they do not, 3 if no case could be
    compared.
    """
    from passes.cli.comparing import compare_files
    from passes.not_produced import Disagreement

    options = options_from(Verify, given)
    inputs = None if options.inputs is None else Path(options.inputs)
    with failing():
        check_report(options.json, (before, after, *filter(None, [inputs])))
        with progress() as say:
            sides, verification, report = compare_files(
                before,
                after,
                options.executor,
                inputs,
                options.verify_budget,
                options.seed,
                say,
                exact=options.exact,
                tolerance=options.tolerance,
            )
    with nullcontext() if verification.verdict == "verified" else suppress(typer.Exit):
        show(report, options.json)
    if verification.verdict == "mismatch":
        folder = after.with_name(f"{after.name}.reproducer")
        found = Disagreement(
            "main", verification.reason, sides, verification.failure, (), exact=options.exact
        )
        complain(reproduced(folder, found, (before.parent, after.parent)))
        fail(f"{after}: does not agree with {before}: {verification.reason}", MISMATCH)
    if verification.verdict == "not-compared":
        fail(f"{before}: no case could be compared, {verification.reason}", NOT_PRODUCED)


def _inspect(model: Path, **given: Any) -> None:
    """Show every loop of a model, and what the rules would do with it, or why not."""
    from passes.cli.inspection import inspect_model, to_json, to_table
    from passes.engine.target_opset import TooNew
    from passes.errors import PassesError

    options = options_from(Inspect, given)
    try:
        check_report(options.json, (model,))
        asked, release = options.asked()
        loops = inspect_model(model, asked, RuleOptions(batch=options.batch), release)
    except TooNew as error:
        fail(f"{model}: {error}", NOT_PRODUCED)
    except PassesError as error:
        fail(f"{error}", error.exit_code)
    from rich.console import Console

    out = Console()
    printed = StringIO()  # rich would print itself, and not mind what becomes of it
    width = out.width if out.is_terminal else 150
    console = Console(file=printed, width=width, force_terminal=out.is_terminal)
    console.print(to_table(loops) if loops else f"{model}: no Scan and no Loop")
    tell(printed.getvalue().removesuffix("\n"))
    if options.json is not None:
        write(options.json, to_json(loops))


_SIDES = {"before": "The original.", "after": "The model to compare with it."}
give_parameters(_verify, [*model_arguments(**_SIDES), *parameters_of(Verify)])
app.command("verify", short_help="Execute two models on the same inputs and compare them.")(_verify)
give_parameters(_inspect, [*model_arguments(model=THE_MODEL), *parameters_of(Inspect)])
app.command("inspect", short_help="Show every loop, and what the rules would do with it.")(_inspect)


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
