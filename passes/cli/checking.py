"""The command `check`: what keeps a model from running on a target, and the commands that clear
it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
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
from passes.cli.running import (
    beside,
    check_reports,
    complain,
    fail,
    failing,
    progress,
    write,
    write_page,
)
from passes.commands.declaring import Help, flags_of, options_of
from passes.commands.delivery import CLI, Force, Paged, Reporting
from passes.commands.options import Binding, Executing, MaxTrips
from passes.errors import NOT_PRODUCED, WrongUsage

if TYPE_CHECKING:
    from passes.binding.inputs import Binding as BoundInputs
    from passes.targets.findings import Checked
    from passes.targets.remedies import Remedies

app = typer.Typer()
#: What a remedy of each kind demands.
_KINDS = {
    "exact": " without changing results",
    "regroups sums": ", regrouping sums",
    "needs a promise of yours": " with a promise of yours",
}


@dataclass(frozen=True, kw_only=True)
class Check(Executing, Binding, Reporting, Paged):
    """The options of `check`."""

    target: Annotated[
        str | None,
        Help("A target by name, or the path of a profile that ends in .toml.", metavar="TARGET"),
    ] = None
    all_targets: Annotated[bool, Help("Check the model against every target.", shown=CLI)] = False
    fix: Annotated[
        bool,
        Help(
            "Run the commands that clear most findings, verified, and write the outcome.",
            shown=CLI,
        ),
    ] = False
    run: Annotated[
        bool,
        Help(
            "Execute the model, or with --fix the outcome, in the target's runtime, and compare "
            "it with the original in the reference executor.",
            shown=CLI,
        ),
    ] = False
    max_trips: MaxTrips = None
    save_culprits: Annotated[
        str | os.PathLike[str] | None,
        Help(
            "Write a small model of the first node of each kind of finding to this folder.",
            metavar="DIR",
            shown=CLI,
        ),
    ] = None
    output: Annotated[
        str | os.PathLike[str] | None,
        Help("Where to write it; beside the model by default.", metavar="OUT", shown=CLI),
    ] = None
    force: Force = False


def _check(model: Path, **given: Any) -> None:
    """Report what keeps a model from running on a target, and the commands that clear it.

    What clears it was tried; nothing is executed without --fix and --run. Exit 0 if the model
    fits, or with --fix the outcome does, else 3.
    """
    options = options_from(Check, given)
    with failing(model):
        check_reports((options.json, options.html), (model,))
        if options.all_targets == (options.target is not None):
            raise WrongUsage("name a --target, or take --all-targets")
        if options.all_targets and options.html is not None:
            raise WrongUsage("--html is for one --target")
        fits = _matrix(model, options) if options.all_targets else _one(model, options)
    if not fits:
        raise typer.Exit(NOT_PRODUCED)


def _one(model: Path, options: Check) -> bool:
    """Check a model at one target, and whether it, or what was made of it, fits."""
    from passes.check import load_checked
    from passes.reports.report_file import ReportFile
    from passes.targets.findings import check
    from passes.targets.profile import load
    from passes.targets.remedies import plan

    profile = load(options.target or "")
    loaded, _ = load_checked(model)
    checked = check(loaded, profile)
    bound = _binding(options)
    made = None if checked.fits and not bound else plan(loaded, profile, bound, options.max_trips)
    say = beside(options.json)
    say("\n".join(_lines(model, checked, profile.summary, made, options)))
    if options.json is not None:
        write(options.json, _as_json(model, checked, made))
    if options.html is not None and not (made and options.fix):
        report = ReportFile.of_findings(model, f"{checked}", checked.findings, flags_of(options))
        write_page(options.html, report, remedies=[] if made is None else _clearing(made))
    if options.save_culprits is not None:
        from passes.targets.culprits import save

        for path in save(loaded, checked, Path(options.save_culprits)):
            say(f"wrote {path}")
    if made is not None and options.fix:
        return _fixed(model, made, options)
    return made is None and (not options.run or _ran(model, model, options))


def _binding(options: Check) -> BoundInputs:
    """Return the facts that the options give about the inputs."""
    from passes.binding.inputs import Binding as BoundInputs

    shapes = {name: tuple(shape) for name, shape in (options.shapes or {}).items()}
    return BoundInputs(options.dims or {}, shapes, options.values or {})


def _fixed(model: Path, made: Remedies, options: Check) -> bool:
    """Run the remedies of a plan, verified, and check the outcome."""
    from passes.builds.task import Task, perform
    from passes.check import load_checked
    from passes.reports.report_file import Ran, ReportFile
    from passes.targets.findings import check
    from passes.targets.profile import load
    from passes.targets.remedies import fixing

    pipeline = fixing(
        made,
        {name: getattr(options, name) for name in ("dims", "shapes", "values")},
        executor=options.executor,
        inputs=options.inputs,
        verify_budget=options.verify_budget,
        seed=options.seed,
    )
    output = _output(model, options)
    task = Task(str(model), pipeline, output, force=options.force)
    with progress() as say:
        done = perform(task, say)
    for remark in done.remarks:
        complain(remark)
    left = check(load_checked(done.output)[0], load(options.target or "")) if done.output else None
    if options.html is not None:
        ran = [Ran("check", {}, flags_of(options))]
        found = replace(ReportFile.of(task, done), commands=ran)
        if left is not None:
            found = replace(found, findings=left.findings)
        write_page(options.html, found, remedies=_clearing(made))
    if done.exit_code:
        fail(done.sentence, done.exit_code)
    assert done.report is not None
    assert left is not None
    verdict = f"{left}" if left.fits else f"still does not fit, {left}"
    beside(options.json)(f"{done.report.to_text()}\nwrote {done.output}\n{done.output}: {verdict}")
    return left.fits and (not options.run or _ran(model, Path(done.output), options))


def _ran(original: Path, outcome: Path, options: Check) -> bool:
    """Execute an outcome where it is to run; whether it agrees with the original there.

    Raises:
        WrongUsage: there is no executor for the target.
        NoRuntime: the runtime is not installed.
    """
    from passes.targets.profile import load
    from passes.verify.runtimes.comparing import compared_files

    profile = load(options.target or "")
    if not profile.runtime:
        raise WrongUsage(f"--run: there is no executor for {profile.name}")
    inputs = None if options.inputs is None else Path(options.inputs)
    with progress(f"running on {profile.runtime}"):
        budget, seed = options.verify_budget, options.seed
        bound = _binding(options)
        found = compared_files(original, outcome, profile.runtime, inputs, budget, seed, bound)
    beside(options.json)(f"{outcome}: {found}")
    return found.agrees


def _output(model: Path, options: Check) -> str:
    if options.output is not None:
        return os.fspath(options.output)
    name = Path(options.target or "").name.removesuffix(".toml")
    return str(model.with_name(f"{model.stem}.{name}{model.suffix}"))


def _lines(
    model: Path, checked: Checked, summary: str, made: Remedies | None, options: Check
) -> list[str]:
    """The report for people."""
    from passes.reports.text import described

    lines = [f"{model}: {checked}, {summary}"]
    lines += [f"  {line}" for line in described(checked.findings)]
    if made is None:
        return lines
    lines += _clearing(made)
    if not made.taken and not _given(options):
        known = made.offered or made.missing
        return [*lines, *(["no known command fixes any of it"] * (not known))]
    after = f"after this: {made.left}"
    if options.fix:
        return [*lines, after]
    command = ["passes", "check", str(model), "--target", options.target or "", "--fix"]
    command += _given(options)
    return [*lines, f"run: {shlex.join(command)}  ({after})"]


def _clearing(made: Remedies) -> list[str]:
    """Return a line for each remedy."""
    lines = []
    for remedy in made.taken:
        cleared = sum(remedy.cleared.values())
        lines.append(f"fixes {cleared}{_KINDS[remedy.kind]}: {remedy}")
    for remedy in made.offered:
        cleared = sum(remedy.cleared.values())
        lines.append(f"would fix {cleared} more{_KINDS[remedy.kind]}: {remedy}")
    more = "more" if lines else "some"
    return [*lines, *(f"may fix {more}, if you know it: {option}" for option in made.missing)]


def _given(options: Check) -> list[str]:
    """The options that bind inputs, and what is promised, as they were given."""
    known = options_of(Check)
    names = ("dims", "shapes", "values", "max_trips")
    return [flag for name in names for flag in known[name].flags(getattr(options, name))]


def _as_json(model: Path, checked: Checked, made: Remedies | None) -> str:
    from passes.reports.json_values import as_json

    report: dict[str, Any] = {
        "schema_version": 1,
        "file": str(model),
        "target": checked.target,
        "fits": checked.fits,
        "findings": [asdict(finding) for finding in checked.findings],
    }
    if made is not None:
        report["remedies"] = [
            {"command": str(one), "kind": one.kind, "cleared": one.cleared, "taken": taken}
            for taken, remedies in ((True, made.taken), (False, made.offered))
            for one in remedies
        ]
        report["left"] = [asdict(finding) for finding in made.left.findings]
        report["missing"] = list(made.missing)
    return as_json(report, indent=2) + "\n"


def _matrix(model: Path, options: Check) -> bool:
    """Print the findings at every target, and return whether the model fits them all."""
    from passes.check import load_checked
    from passes.reports.words import aligned
    from passes.targets.findings import check
    from passes.targets.profile import load, names

    loaded, _ = load_checked(model)
    every = {name: check(loaded, load(name)) for name in names()}
    lines = aligned([[name, _counts(checked)] for name, checked in every.items()])
    beside(options.json)("\n".join([f"{model}:", *lines]))
    if options.json is not None:
        from passes.reports.json_values import as_json

        report: Mapping[str, Any] = {
            name: [asdict(finding) for finding in checked.findings]
            for name, checked in every.items()
        }
        write(options.json, as_json({"file": str(model), "targets": report}, indent=2) + "\n")
    return all(checked.fits for checked in every.values())


def _counts(checked: Checked) -> str:
    if checked.fits:
        return "fits"
    counted: dict[str, int] = {}
    for finding in checked.findings:
        name = f"{finding.op or 'model'} ({finding.code})"
        counted[name] = counted.get(name, 0) + 1
    return ", ".join(f"{count} x {name}" for name, count in counted.items())


give_parameters(_check, [*model_arguments(model=THE_MODEL), *parameters_of(Check)])
app.command("check", short_help="Report what keeps a model from running on a target.")(_check)
