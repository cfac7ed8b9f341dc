"""The commands that write no model. Each imports what it needs, so help is quick."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from passes.builds.task import reproduced
from passes.cli.parameters import give_parameters, model_arguments, options_from, parameters_of
from passes.cli.running import (
    check_reports,
    complain,
    fail,
    failing,
    progress,
    show,
    tell,
    write_page,
)
from passes.commands.declaring import Help, WrongValue, flags_of
from passes.commands.delivery import Paged, Reporting
from passes.commands.options import Executing
from passes.errors import MISMATCH, NOT_PRODUCED, USAGE

app = typer.Typer()


@dataclass(frozen=True, kw_only=True)
class Verify(Executing, Reporting, Paged):
    """The options of `verify`."""

    exact: Annotated[bool, Help("Floats must be equal to the bit.")] = False
    atol: Annotated[
        float | None,
        Help("Floats may be off by this much, and by --rtol.", least=0, metavar="E"),
    ] = None
    rtol: Annotated[
        float | None,
        Help("Floats may be off by this part of themselves, and by --atol.", least=0, metavar="E"),
    ] = None

    def check(self) -> None:
        """See that one thing is asked of floats."""
        if self.exact and self.tolerance is not None:
            raise WrongValue("exact", "cannot be combined with --atol and --rtol")

    @property
    def tolerance(self) -> tuple[float, float] | None:
        """The absolute and the relative error that the user allows."""
        if self.atol is None and self.rtol is None:
            return None
        return self.atol or 0.0, self.rtol or 0.0


def _verify(before: Path, after: Path, **given: Any) -> None:
    """Execute two models on the same inputs and compare their outputs.

    Exit 0 if they agree, 4 with a reproducer folder if they do not, 3 if no case could be
    compared.
    """
    from passes.check import load_checked
    from passes.comparing import compare_models
    from passes.errors import Disagreement
    from passes.reports.report import Report, Size
    from passes.reports.report_file import ReportFile
    from passes.verify.inputs.given import load
    from passes.verify.requirements import Inputs, Limits, Requirements

    options = options_from(Verify, given)
    inputs = None if options.inputs is None else Path(options.inputs)
    with failing():
        check_reports((options.json, options.html), (before, after, *filter(None, [inputs])))
        old, new = (load_checked(path)[0] for path in (before, after))
        own = () if inputs is None else (load(inputs, old.proto),)
        terms = Requirements(
            (),
            exact=options.exact,
            inputs=Inputs(options.seed, given=own),
            limits=Limits(options.verify_budget),
            tolerance=options.tolerance,
        )
        with progress("verifying"):
            verification = compare_models(old, new, options.executor, terms)
    opsets, sizes = (old.opset(), new.opset()), (Size.of(old), Size.of(new))
    checked = verification.short
    report = Report("verify", str(before), opsets, sizes, checked=checked)
    with nullcontext() if verification.verdict == "verified" else suppress(typer.Exit):
        show(report, options.json)
        if options.html is not None:
            flags = flags_of(options)
            write_page(options.html, ReportFile.of_comparison(report, (before, after), flags))
    if verification.verdict == "mismatch":
        folder = after.with_name(f"{after.name}.reproducer")
        found = Disagreement(
            "main",
            verification.reason,
            (old.proto, new.proto),
            verification.failure,
            (),
            exact=options.exact,
        )
        if verification.failure is not None:  # else their inputs or outputs are others
            complain(reproduced(folder, found, (before.parent, after.parent))[1])
        fail(f"{after}: does not agree with {before}: {verification.reason}", MISMATCH)
    if verification.verdict == "not-compared":
        fail(f"{before}: no case could be compared, {verification.reason}", NOT_PRODUCED)


_SIDES = {"before": "The original.", "after": "The model to compare with it."}
give_parameters(_verify, [*model_arguments(**_SIDES), *parameters_of(Verify)])
app.command("verify", short_help="Execute two models on the same inputs and compare them.")(_verify)


@app.command("list")
def list_rules() -> None:
    """List the rules."""
    from passes.reports.words import aligned
    from passes.rule import load_rules

    rules = sorted(load_rules().items())
    tell("\n".join(aligned([[name, rule.summary] for name, rule in rules], indent="")))


@app.command(short_help="Explain a rule or a code.")
def explain(
    subject: Annotated[
        str, typer.Argument(help="A rule, or the code of a refusal or a proof.", metavar="NAME")
    ],
) -> None:
    """Explain a rule, or the code of a refusal or a proof."""
    from passes.cli.explanation import explanation, unexplained

    text = explanation(subject)
    if text is None:
        fail(unexplained(subject), USAGE)
    tell(text)
