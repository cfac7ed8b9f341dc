"""Runs a pipeline on one model file, writes the outcome, and returns the result."""

from __future__ import annotations

import os
import shlex
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from passes.choices import DEFAULT_OPSET
from passes.commands.pipeline import Pipeline
from passes.commands.places import refuse_same, refuse_weights
from passes.errors import DONE, FAILED, NOT_PRODUCED, DoesNotFit, End, PassesError

if TYPE_CHECKING:
    from passes.errors import Disagreement
    from passes.ir.save import Progress
    from passes.reports.measured import Measured
    from passes.reports.report import Report
    from passes.session import Result
    from passes.targets.findings import TargetFindings


#: The ends after which something can be done next.
_ADVISED = frozenset({End.WRITTEN, End.UNCHANGED, End.INCOMPLETE, End.REFUSED})


@dataclass(frozen=True)
class Task:
    """A pipeline for the model at a path.

    `output` is where the outcome is written, a path in which `{opset}` is its opset; without it,
    and if the model changed, beside the model, under the suffix `ending`. `strict`: nothing is
    written while something stays that the pipeline is to rewrite. `kept` are files that must not
    be written over.
    """

    model: str
    pipeline: Pipeline
    output: str | None = None
    ending: str = "rewritten"
    strict: bool = False
    force: bool = False
    kept: tuple[str, ...] = ()

    def target(self, opset: int) -> Path:
        """The path of the outcome if it is of this opset."""
        if self.output is not None:
            return Path(self.output.replace("{opset}", str(opset)))
        model = Path(self.model)
        return model.parent / f"{model.stem}.{self.ending.format(opset=opset)}{model.suffix}"

    def expected(self) -> Path:
        """The path of the outcome as far as it is known before the model is read.

        Raises:
            UnknownRelease: it is for a release of onnxruntime that is not known.
        """
        asked = [options.asked()[0] for options in self.pipeline.commands]
        return self.target(next(filter(None, reversed(asked)), DEFAULT_OPSET))


@dataclass(frozen=True)
class Done:
    """The result of a task: its end, the exit code and sentence that belong to it, the report, if
    the pipeline got that far, and the path of the outcome, if it was written. `remarks` are further
    sentences on what was found or written; `reproducer` is the folder with both sides of a
    mismatch."""

    end: End
    exit_code: int
    sentence: str = ""
    report: Report | None = None
    output: str = ""
    remarks: tuple[str, ...] = ()
    reproducer: str = ""
    seconds: float = field(default=0.0, compare=False)


def perform(task: Task, say: Progress | None = None) -> Done:
    """Run the pipeline on the model, and write the outcome if all is well.

    Never raises for what is wrong with the model, the options or the files.
    """
    from passes.ir.save import check_target

    started = time.monotonic()
    try:
        target = task.expected()
        check_target(target, force=task.force)
        refuse_weights(Path(task.model), [target])
        refuse_same(target, task.kept)
        done = _delivered(task, task.pipeline.run(task.model, say), say)
    except PassesError as error:
        done = _failed(task, error)
    return replace(done, seconds=round(time.monotonic() - started, 3))


def with_advice(task: Task, done: Done, say: Progress | None = None) -> Done:
    """What was done for one command, with what to do next in its report."""
    if done.report is None or done.end not in _ADVISED or len(task.pipeline.commands) > 1:
        return done
    from passes.reports.advice import advised

    def gain(result: Result) -> float | None:
        return _measured(task, result, say).gain

    (options,) = task.pipeline.commands
    measures = gain if options.least_gain is not None else None
    return replace(
        done, report=advised(Path(task.model), options, done.report, done.output, measures)
    )


def _failed(task: Task, error: PassesError) -> Done:
    """The end of a task of which the pipeline, or the place of its outcome, raised an error."""
    from passes.errors import Mismatch, NotProduced, NotVerified

    sentence = f"{task.model}: {error}" if isinstance(error, DoesNotFit) else f"{error}"
    if not isinstance(error, NotProduced):
        end = End.INVALID if error.exit_code == FAILED else End.USAGE
        return Done(end, error.exit_code, sentence)
    if not isinstance(error, Mismatch):
        end = End.UNVERIFIED if isinstance(error, NotVerified) else End.REFUSED
        return Done(end, error.exit_code, sentence, error.report)
    folder = task.expected().with_name(f"{task.expected().name}.reproducer")
    base_dir = Path(task.model).parent
    written, remark = reproduced(folder, error.found, (base_dir, base_dir))
    found = Done(End.MISMATCH, error.exit_code, sentence, error.report, remarks=(remark,))
    return replace(found, reproducer=written)


def _delivered(task: Task, result: Result, say: Progress | None) -> Done:
    """Write an outcome if it is what the options of the task ask for."""
    from passes.ir.save import save

    pipeline = task.pipeline
    report = result.report
    if task.strict:
        unfit = _unfit(result, pipeline)
        report = replace(report, findings=[one for found in unfit for one in found.findings])
        stays = _stays(result, pipeline)
        if refused := stays or ", ".join(map(str, unfit)):
            help_ = "" if stays else "; `passes check` names what clears it"
            sentence = f"{refused}, and --strict was given{help_}"
            return Done(End.INCOMPLETE, NOT_PRODUCED, sentence, report)
    gains = [gain for one in pipeline.commands if (gain := one.least_gain) is not None]
    least = max(gains, default=0.0)
    if gains and (report.rewrites or report.bound or (least and not report.unchanged)):
        measured = _measured(task, result, say)
        report = replace(report, measured=measured)
        if least and (measured.gain or 0.0) < least:
            told = f"the gain is {measured.gain:.2f}x" if measured.gain else measured.line
            sentence = f"{task.model}: {told}, --require-gain asks for {least:g}x"
            return Done(End.INCOMPLETE, NOT_PRODUCED, sentence, report)
    target = task.target(report.opsets[1])
    remarks = tuple(f"warning: {warning}" for warning in report.warnings)
    end = End.UNCHANGED if report.unchanged else End.WRITTEN
    if end is End.UNCHANGED and task.output is None:
        return Done(end, DONE, "", report, "", remarks)
    refuse_same(target, task.kept)
    save(result.model, target, base_dir=result.base_dir, force=task.force, progress=say)
    return Done(end, DONE, "", report, str(target), remarks)


def _measured(task: Task, result: Result, say: Progress | None) -> Measured:
    """The time of the model and of its outcome in onnxruntime, on the inputs of the outcome."""
    from passes.binding.inputs import as_given
    from passes.check import load_checked
    from passes.ir.model import Model
    from passes.measuring.measuring import ONNXRUNTIME, Settings, measure_models, not_measured
    from passes.verify.inputs.given import load

    if say is not None:
        say("measuring")
    original, _ = load_checked(Path(task.model))
    outcome = Model(result.model, original.path)
    given = next((one.inputs for one in task.pipeline.commands if one.inputs is not None), None)
    inputs = None if given is None else load(Path(given), outcome.proto)
    settings = Settings(inputs=inputs, runtimes=[ONNXRUNTIME])
    sides = [as_given(original, outcome), outcome]
    try:
        return measure_models(sides, settings)
    except DoesNotFit as error:  # the outcome is right all the same
        return not_measured(sides, f"{error}")


def _unfit(result: Result, pipeline: Pipeline) -> list[TargetFindings]:
    """Return the findings in the outcome at the targets of the pipeline."""
    from passes.session import loaded
    from passes.targets.findings import check

    profiles = {one.name: one for options in pipeline.commands if (one := options.profile)}
    if not profiles:
        return []
    model, _ = loaded(result)
    found = [check(model, profile) for profile in profiles.values()]
    return [one for one in found if not one.fits]


def _stays(result: Result, pipeline: Pipeline) -> str:
    """Return a sentence on what the pipeline was to rewrite and is still there, or was left out
    since nothing verifies it or the outcome is invalid; empty if there is none, or the pipeline has
    a target.

    A loop that is quicker as it is is left on purpose, by whichever rule."""
    from passes.ir.operators import op_of
    from passes.ir.scope import walk_model

    report = result.report
    if report.left_out:
        first, *others = report.left_out
        more = f" (and {len(others)} more)" if others else ""
        return f"{first.path}: {first.sentence}{more} [{first.code}]"
    aims = {
        rule
        for options in pipeline.commands
        if options.profile is None or options.for_rules().rules
        for rule in options.schedule.aims_of(options.for_rules().rules)
    }
    left = {op_of(place.node) for place in walk_model(result.model)}
    meant = {refusal.path for refusal in report.refusals if refusal.code == "few-iterations"}
    stay = [refusal for refusal in report.refusals if refusal.rule in aims and refusal.op in left]
    stay = [refusal for refusal in stay if refusal.path not in meant]
    if not stay:
        return ""
    more = f" (and {len(stay) - 1} more)" if len(stay) > 1 else ""
    return f"{stay[0].path} stays [{stay[0].code}]{more}"


def command_line() -> str:
    """The command line with which the program was called."""
    return shlex.join(["python", "-m", "passes", *sys.argv[1:]])


def reproduced(folder: Path, found: Disagreement, base_dirs: tuple[Path, Path]) -> tuple[str, str]:
    """Save both sides and, if the outputs differ, the inputs that show it; return the path, empty
    if that is impossible, and a sentence with the path or the reason."""
    from google.protobuf.message import EncodeError

    from passes.verify.reproducer import Circumstances, save

    try:
        written = save(
            folder,
            *found.sides,
            found.failure,
            sentence=found.sentence,
            seen=Circumstances(
                command_line(), found.path, found.rules, found.exact, found.by_command
            ),
            base_dir=base_dirs[0],
            base_dir_after=base_dirs[1],
        )
    except (OSError, ValueError, EncodeError) as error:
        reason = getattr(error, "strerror", None) or error
        return "", f"no reproducer: {folder} cannot be written ({reason})"
    if found.by_command:
        return str(written), f"reproducer in {written}"
    next_step = f"`python -m passes bisect {shlex.quote(os.fspath(written))}`"
    return str(written), f"reproducer in {written}; {next_step} finds the first value that differs"
