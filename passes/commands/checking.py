"""The commands about where a model runs: `check` and `measure`."""

from __future__ import annotations

import os
import shlex
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from passes.commands.declaring import (
    Place,
    Source,
    WrongValue,
    argument,
    flags_of,
    option,
    options_of,
)
from passes.commands.delivery import CLI, Force, Paged, Reporting, Summarized
from passes.commands.options import Binding, Executing, MaxTrips, feeds_of, rule_options
from passes.commands.registry import command
from passes.commands.standalone import Output, Say, Standalone, TheModel, path_of, silent
from passes.errors import (
    DONE,
    FAILED,
    NOT_PRODUCED,
    DoesNotFit,
    End,
    PassesError,
    WrongUsage,
)

if TYPE_CHECKING:
    from passes.binding.inputs import Binding as BoundInputs
    from passes.reports.measured import Measured
    from passes.reports.summary import Row
    from passes.targets.checking import TargetCheck
    from passes.targets.profile import Profile

#: Ends of a model that is checked, as its summary calls them.
_WORDS = {End.UNCHANGED: "fits", End.INCOMPLETE: "does not fit"}


@command("check", short_help="Report what keeps a model from running on a target.")
@dataclass(frozen=True)
class Check(Executing, Binding, Reporting, Summarized, Paged, Standalone):
    """Report what keeps a model from running on a target, and the commands that clear it.

    What clears it was tried; nothing is executed without --fix and --run. Many models are checked
    one after the other; a file that is no valid model is one of those that fail. Exit 0 if every
    model fits, or with --fix the outcome does, else 3.
    """

    model: TheModel
    target: Place | None = option(
        None, "A target by name, or the path of a profile that ends in .toml.", metavar="TARGET"
    )
    _: KW_ONLY
    others: Sequence[Place] = argument(
        "More models: files, folders or patterns.",
        metavar="[MODEL]...",
        shown=CLI,
        default=(),
    )
    all_targets: bool = option(False, "Check the model against every target.", shown=CLI)
    fix: bool = option(
        False,
        "Run the commands that clear most findings, verified, and write the outcome.",
        shown=CLI,
    )
    run_there: bool = option(
        False,
        "Execute the model, or with --fix the outcome, in the target's runtime, and compare "
        "it with the original in the reference executor.",
        flag="run",
        shown=CLI,
    )
    max_trips: MaxTrips = None
    save_culprits: Place | None = option(
        None,
        "Write a small model of the first node of each kind of finding to this folder.",
        metavar="DIR",
        shown=CLI,
    )
    output: Place | None = option(
        None, "Where to write it; beside the model by default.", metavar="OUT", shown=CLI
    )
    force: Force = False

    def run(self, say: Say = silent) -> TargetCheck:
        """Return the findings, and the remedies that were tried. Nothing is executed.

        Raises:
            BadModel: the input is no valid model.
            BadProfile: there is no such target, or its profile has an error.
            CannotBind: an input cannot be bound so.
        """
        from passes.session import loaded
        from passes.targets.checking import TargetCheck
        from passes.targets.findings import check, precision
        from passes.targets.remedies import Remedies, fixing, plan

        profile = self._profile()
        model, _ = loaded(self.model)
        checked, bound = check(model, profile), self._bound()
        planned = bool(bound) or not checked.fits
        made = plan(model, profile, bound, self.max_trips) if planned else Remedies([], checked)
        facts = {name: getattr(self, name) or {} for name in options_of(Binding)}
        how = {name: getattr(self, name) for name in options_of(Executing)}
        return TargetCheck(
            profile.name,
            checked.findings,
            made.taken,
            made.left.findings,
            made.offered,
            fixing(made, facts, **how),
            made.missing,
            profile.summary,
            planned,
            precision(model, profile),
        )

    def outputs(self, say: Say = silent) -> Iterator[Output]:
        from passes.builds.sources import found

        if self.all_targets == (self.target is not None):
            raise WrongUsage("name a --target, or take --all-targets")
        if self.all_targets and self.html is not None:
            raise WrongUsage("--html is for one --target")
        models = found([path_of(self.model), *self.others])
        if models != [os.path.normpath(path_of(self.model))] or self.markdown or self.github:
            yield from self._many(models, say)
        else:
            yield from self._matrix() if self.all_targets else self._one(say)

    def _many(self, models: Sequence[str], say: Say) -> Iterator[Output]:
        """What is shown of each of many models, and at the end."""
        from passes.reports.summary import Summary

        for name in ("all_targets", "fix", "run_there", "save_culprits", "output", "json", "html"):
            if getattr(self, name):
                raise WrongUsage(f"--{options_of(Check)[name].key} is for one model")
        self._profile()
        summary = Summary(words=_WORDS)
        for model in models:
            say(f"{summary.total} of {len(models)} models")
            row, text = replace(self, model=model, others=())._row(say)
            summary.add(row)
            yield Output(text, remarks=[] if text else [row.error])
        yield Output(summary.to_text())
        yield self.told(summary)

    def _row(self, say: Say) -> tuple[Row, str]:
        """The row of one of many models, and what is shown of it, unless the row's error is."""
        from passes.reports.summary import Row

        model, started = f"{path_of(self.model)}", time.monotonic()
        try:
            found = self.run(say)
        except PassesError as error:
            sentence = f"{model}: {error}" if isinstance(error, DoesNotFit) else f"{error}"
            code = error.exit_code
            end = End.INVALID if code == FAILED else End.USAGE
            return Row(model, "", end, code, sentence), ""
        text = "\n".join([found.to_text(model), *self._advice(found)])
        seconds = time.monotonic() - started
        if found.fits:
            return Row(model, "", End.UNCHANGED, DONE, seconds=seconds), text
        codes = Counter(one.code for one in found.findings)
        row = Row(model, "", End.INCOMPLETE, NOT_PRODUCED, text, codes, seconds)
        return row, text

    def _matrix(self) -> Iterator[Output]:
        from passes.session import loaded
        from passes.targets.checking import Matrix
        from passes.targets.findings import check
        from passes.targets.profile import load, names

        model, _ = loaded(self.model)
        found = {name: check(model, load(name)).findings for name in names()}
        matrix = Matrix(f"{path_of(self.model)}", found)
        code = NOT_PRODUCED if any(found.values()) else DONE
        yield Output(matrix.to_text(), {"json": matrix.to_json}, exit_code=code)

    def _one(self, say: Say) -> Iterator[Output]:
        """What is shown of one target, and of the outcome, if it is made."""
        from passes.reports.report_file import ReportFile
        from passes.session import loaded
        from passes.targets.culprits import save
        from passes.targets.findings import TargetFindings

        model, found = path_of(self.model), self.run(say)

        def page() -> str:
            made = ReportFile.of_findings(model, f"{found}", found.findings, flags_of(self))
            return made.to_html(found.clearing())

        fixing = self.fix and found.planned
        files = {"json": lambda: found.to_json(f"{model}")}
        text = "\n".join([found.to_text(f"{model}"), *self._advice(found)])
        yield Output(text, files if fixing else {**files, "html": page})
        if self.save_culprits is not None:
            written = save(
                loaded(model)[0],
                TargetFindings(found.target, found.findings),
                Path(self.save_culprits),
            )
            yield Output("\n".join(f"wrote {path}" for path in written))
        if fixing:
            yield from self._fixed(model, found, say)
        elif found.planned:
            yield Output(exit_code=NOT_PRODUCED)
        elif self.run_there:
            yield self._ran(model, say)

    def _fixed(self, model: Path, found: TargetCheck, say: Say) -> Iterator[Output]:
        """What is shown of the outcome of the remedies, which is verified and checked."""
        from passes.commands.task import Task, perform
        from passes.reports.report_file import Ran, ReportFile
        from passes.session import loaded
        from passes.targets.findings import check

        target = Path(self.target or "").name.removesuffix(".toml")
        output = model.with_name(f"{model.stem}.{target}{model.suffix}")
        task = Task(f"{model}", found.fix, os.fspath(self.output or output), force=self.force)
        done = perform(task, say)
        left = check(loaded(done.output)[0], self._profile()) if done.output else None

        def page() -> str:
            ran = [Ran("check", {}, flags_of(self))]
            report = replace(ReportFile.of(task, done), commands=ran)
            if left is not None:
                report = replace(report, findings=left.findings)
            return report.to_html(found.clearing())

        if left is None or done.report is None:
            yield Output("", {"html": page}, done.remarks, done.sentence, done.exit_code)
            return
        verdict = f"{left}" if left.fits else f"still does not fit, {left}"
        text = f"{done.report.to_text()}\nwrote {done.output}\n{done.output}: {verdict}"
        code = DONE if left.fits else NOT_PRODUCED
        yield Output(text, {"html": page}, done.remarks, exit_code=code)
        if left.fits and self.run_there:
            yield self._ran(Path(done.output), say)

    def _ran(self, outcome: Path, say: Say) -> Output:
        """Execute an outcome where it is to run, and compare it with the original.

        Raises:
            WrongUsage: there is no executor for the target.
            NoRuntime: the runtime is not installed.
        """
        from passes.verify.runtimes.comparing import compared_files

        profile = self._profile()
        if not profile.runtime:
            raise WrongUsage(f"--run: there is no executor for {profile.name}")
        say(f"running on {profile.runtime}")
        inputs = None if self.inputs is None else Path(self.inputs)
        how = (inputs, self.verify_budget, self.seed, self._bound())
        found = compared_files(path_of(self.model), outcome, profile.runtime, *how)
        return Output(f"{outcome}: {found}", exit_code=DONE if found.agrees else NOT_PRODUCED)

    def _bound(self) -> BoundInputs:
        """The facts that the options give about the inputs."""
        from passes.binding.inputs import Binding as BoundInputs

        facts = rule_options(self)
        return BoundInputs(facts.dims, facts.shapes, facts.values)

    def _profile(self) -> Profile:
        """The profile of the target. Raises BadProfile."""
        from passes.targets.profile import load

        return load(os.fspath(self.target or ""))

    def _advice(self, found: TargetCheck) -> list[str]:
        """What to run next, or what is left after that."""
        from passes.targets.findings import verdict

        if not found.planned:
            return []
        options = options_of(Check)
        names = ("dims", "shapes", "values", "max_trips")
        given = [flag for name in names for flag in options[name].flags(getattr(self, name))]
        if not found.remedies and not given:
            known = found.offered or found.missing
            return [] if known else ["no known command fixes any of it"]
        after = f"after this: {verdict(len(found.left), found.target)}"
        if self.fix:
            return [after]
        words = [
            "passes",
            "check",
            f"{path_of(self.model)}",
            "--target",
            os.fspath(self.target or ""),
        ]
        return [f"run: {shlex.join([*words, '--fix', *given])}  ({after})"]


@command("measure", short_help="Measure models in the runtimes, side by side.")
@dataclass(frozen=True)
class Measure(Reporting, Standalone):
    """Measure the time and memory of models in the runtimes that are installed, side by side.

    All models get the same inputs and are called in turn, each in a process of its own. Times are
    medians of calls, with half the distance between their quartiles; the last line compares the
    first model with the last one at the largest sizes.
    """

    before: TheModel
    after: Sequence[Source] = argument(
        "Models to compare with it.", metavar="[AFTER]...", default=()
    )
    _: KW_ONLY
    dims: Sequence[str] = option(
        (),
        "Sizes of a free dim to measure at, as `T=64,256,1024`; repeatable. By default 16, 64, "
        "256 and 1024 for the trip count of a loop, and 1 for others.",
        flag="dim",
        metavar="NAME=SIZE,...",
    )
    inputs: Place | None = option(
        None,
        "Measure on these inputs: an .npz file with an array for each input, or a folder of "
        "input_N.pb files as in ONNX's test data. By default they are drawn.",
    )
    runtimes: Sequence[str] = option(
        (),
        "A runtime to measure in: `onnxruntime`, `openvino`, `tract` or another one that is "
        "registered; repeatable. By default all that are installed.",
        flag="runtime",
        metavar="RUNTIME",
    )
    threads: str = option(
        "1", "The threads of the runtime: 1, `all`, or both, as `1,all`.", metavar="1|all|1,all"
    )
    budget: float = option(60.0, "Seconds that the measurement may take.", least=0, metavar="S")
    require_gain: float | None = option(
        None, "Exit 3 unless the last model is so many times as fast as the first.", least=0
    )
    seed: int = option(0, "Seed of the drawn inputs.", metavar="N")
    html: Place | None = option(
        None, "Write a page with a plot of the times.", metavar="FILE", shown=CLI, report=True
    )

    def check(self) -> None:
        """See that sizes and threads can be read."""
        super().check()
        self.sizes()
        self.counts()

    def sizes(self) -> dict[str, list[int]]:
        """The sizes by name of the dim."""
        found: dict[str, list[int]] = {}
        for text in self.dims:
            name, _, sizes = text.rpartition("=")
            if not name or not all(size.strip().isdecimal() for size in sizes.split(",")):
                raise WrongValue("dims", f"is {text!r}, not of the form NAME=SIZE,SIZE,...")
            if not all(map(int, sizes.split(","))):
                raise WrongValue("dims", f"is {text!r}, a size must be 1 or more")
            found.setdefault(name, []).extend(map(int, sizes.split(",")))
        return found

    def counts(self) -> list[int]:
        """The numbers of threads, 0 for all."""
        words = {"1": 1, "all": 0}
        if not all(word in words for word in self.threads.split(",")):
            raise WrongValue("threads", f"is {self.threads!r}, not one of 1, all, 1,all")
        return [words[word] for word in dict.fromkeys(self.threads.split(","))]

    def run(self, say: Say = silent) -> Measured:
        from passes.measuring.measuring import Settings, measure_models
        from passes.session import loaded

        models = [loaded(model)[0] for model in (self.before, *self.after)]
        inputs = next(iter(feeds_of(self.inputs, models[0].proto)), None)
        say("measuring")
        how = (self.seed, self.runtimes, self.counts(), self.budget)
        return measure_models(models, Settings(self.sizes(), inputs, *how))

    def outputs(self, say: Say = silent) -> Iterator[Output]:
        from passes.reports.pages.measured import as_html

        found = self.run(say)
        paths, least = self.files(), self.require_gain
        failure = ""
        if found.headline is None:
            failure = f"{paths[0]}: {found.line}"
        elif least is not None and (found.gain or 0.0) < least:
            asked = f"--require-gain asks for {least:g}x"
            failure = f"{paths[-1]}: the gain is {found.gain:.2f}x, {asked}"
        files = {"json": found.to_json, "html": lambda: as_html(found)}
        code = NOT_PRODUCED if failure else DONE
        yield Output(found.to_text(), files, failure=failure, exit_code=code)
