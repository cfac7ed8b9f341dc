"""The commands about two models: executed, proven equal, searched for the first difference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, replace
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from passes.choices import PROOF_BUDGET, Assumption, Executors
from passes.commands.declaring import Place, Source, WrongValue, argument, flags_of, option
from passes.commands.delivery import API, CLI, Paged, Reporting
from passes.commands.options import (
    Binding,
    BothExecutors,
    Comparing,
    Executing,
    ProofBudget,
    Ranges,
    feeds_of,
    rule_options,
)
from passes.commands.registry import command
from passes.commands.standalone import Output, Say, Standalone, path_of, silent
from passes.errors import DONE, FAILED, MISMATCH, NOT_PRODUCED, WrongUsage

if TYPE_CHECKING:
    from passes.bisection.result import Bisection
    from passes.ir.model import Model
    from passes.proving.prover import Attempt
    from passes.reports.precision import Within
    from passes.reports.proof import Proof
    from passes.reports.report import Checked
    from passes.verify.compare.verdicts import Failure, Verification

_MEGABYTE = 1 << 20


@command("verify", short_help="Execute two models on the same inputs and compare them.")
@dataclass(frozen=True)
class Verify(Comparing, Reporting, Paged, Standalone):
    """Execute two models on the same inputs and compare their outputs.

    Exit 0 if they agree, 4 with a reproducer folder if they do not, 3 if no case could be
    compared. With --within, exit 4 if an error is larger.
    """

    before: Source = argument("The original.")
    after: Source = argument("The model to compare with it.")
    _: KW_ONLY
    tolerance: tuple[float, float] | None = option(
        None, "Floats may be off by this absolute and this relative error.", shown=API
    )
    atol: float | None = option(
        None, "Floats may be off by this much, and by --rtol.", least=0, metavar="E", shown=CLI
    )
    rtol: float | None = option(
        None,
        "Floats may be off by this part of themselves, and by --atol.",
        least=0,
        metavar="E",
        shown=CLI,
    )
    within: float | None = option(
        None,
        "Judge the models as before and after a cast: at several lengths, an output of floats may "
        "be off by this part of its largest element. Floats may be of other types; what else "
        "differs is counted.",
        least=0,
        metavar="E",
    )

    def check(self) -> None:
        """See that one thing is asked of floats."""
        super().check()
        if self.exact and self._allowed is not None:
            raise WrongValue("exact", "cannot be combined with --atol and --rtol")
        if self.within is not None and (self.exact or self._allowed is not None):
            raise WrongValue("within", "cannot be combined with --exact, --atol and --rtol")

    @property
    def _allowed(self) -> tuple[float, float] | None:
        """The absolute and the relative error that the user allows."""
        if self.atol is None and self.rtol is None:
            return self.tolerance
        return self.atol or 0.0, self.rtol or 0.0

    def run(self, say: Say = silent) -> Checked:
        """Return the verdict: `verified` if their outputs agree, `within` if they do within an
        error, `mismatch`, or `not-compared` if no case could be compared.

        Raises:
            BadModel: one of them is no valid model.
            NoExecutor: onnxruntime is asked for, and not installed.
            NoRuntime: the runtime of that name is not installed.
        """
        old, new = _both(self.before, self.after)
        if self.within is None:
            return self._verified(old, new, say).short
        from passes.reports.report import Checked

        found = self._judged(old, new, say)
        return Checked(found.verdict, found.sentence)

    def outputs(self, say: Say = silent) -> Iterator[Output]:
        from passes.reports.report import Report, Size
        from passes.reports.report_file import ReportFile
        from passes.verify.compare.verdicts import Verification

        before, after = path_of(self.before), path_of(self.after)
        old, new = _both(before, after)
        opsets, sizes = (old.opset(), new.opset()), (Size.of(old), Size.of(new))
        report = Report("verify", f"{before}", opsets, sizes)
        found: Verification | Within
        if self.within is None:
            found = self._verified(old, new, say)
            report, reason = replace(report, checked=found.short), found.reason
        else:
            found = self._judged(old, new, say)
            report, reason = replace(report, within=found), found.sentence

        def page() -> str:
            return ReportFile.of_comparison(report, (before, after), flags_of(self)).to_html()

        shown = Output(report.to_text(), {"json": report.to_json, "html": page})
        if found.verdict == "mismatch":
            sentence = f"{after}: does not agree with {before}: {reason}"
            shown = replace(shown, failure=sentence, exit_code=MISMATCH)
            if isinstance(found, Verification) and found.failure is not None:
                remark = _reproduced(self, (old, new), found.reason, found.failure, self.exact)
                shown = replace(shown, remarks=[remark])
        elif found.verdict == "not-compared":
            sentence = f"{before}: no case could be compared, {reason}"
            shown = replace(shown, failure=sentence, exit_code=NOT_PRODUCED)
        yield shown

    def _judged(self, old: Model, new: Model, say: Say) -> Within:
        """The verdict on two valid models that are equal within an error."""
        from passes.verify.within.judging import Terms, judged

        say("executing both")
        given = feeds_of(self.inputs, old.proto)
        terms = Terms(self.within, self.executor, self.seed, given, self.budget)
        return judged(old, new, terms).within

    def _verified(self, old: Model, new: Model, say: Say) -> Verification:
        """The verification of two valid models."""
        from passes.verify.inputs.hints import model_hints
        from passes.verify.installed import executors, is_runtime
        from passes.verify.requirements import Inputs, Limits, Models, Requirements
        from passes.verify.runtimes.comparing import compared
        from passes.verify.verification import verify

        say("verifying")
        given = feeds_of(self.inputs, old.proto)
        inputs = Inputs(self.seed, model_hints(old), given)
        limits, allowed = Limits(self.budget), self._allowed

        def judge(original: Any, chosen: Sequence[Any]) -> Verification:
            sides = Models(original, new.proto, old.base_dir, new.base_dir)
            terms = Requirements(
                chosen,
                exact=self.exact,
                inputs=inputs,
                limits=limits,
                tolerance=allowed,
                portable=self.executor == "both",
            )
            return verify(sides, terms)

        if is_runtime(self.executor):
            return compared(self.executor, old.proto, judge).verification
        with executors(self.executor) as chosen:
            return judge(old.proto, chosen)


@command("prove", short_help="Prove two models equal, or show inputs on which they differ.")
@dataclass(frozen=True)
class Prove(Executing, Binding, Reporting, Standalone):
    """Prove that a model answers as another one does, or execute both to find a difference.

    Exit 0 if it is proven: for all sizes, else for those that the verdict names, else there up to
    the order of summation, else up to rounding. Exit 4, with a reproducer folder, if the two models
    were executed and differ; 3 if there is neither a proof nor such inputs, with the term or the
    operator at which the proof ended: such a model may still be right.
    """

    before: Source = argument("The original.")
    after: Source = argument("The model that is to answer as it does.")
    _: KW_ONLY
    executor: BothExecutors = Executors.both
    budget: ProofBudget = PROOF_BUDGET
    assume: Sequence[str] = option(
        (),
        "What was promised to the command that made the new model: `non-empty` that no input, "
        "batch, time or length is empty; `valid-inputs` is always assumed; repeatable.",
        Assumption,
    )
    ranges: Ranges = None
    max_trips: int | None = option(
        None,
        "Promised: no Loop whose trip count is unknown runs more than N times.",
        least=1,
        metavar="N",
    )
    check_output: str = option(
        "",
        "With --max-trips: the output of the new model that tells whether the promise was "
        "kept; it is not compared.",
        metavar="NAME",
    )
    certify: Place | None = option(
        None,
        "If it is proven, write its certificate to this file, for `certificate check`.",
        metavar="FILE",
        shown=CLI,
        report=True,
    )

    def check(self) -> None:
        """See that no option rests on one that is missing, or cannot be combined with."""
        super().check()
        if self.check_output and self.max_trips is None:
            raise WrongValue("check_output", "needs --max-trips")
        bound = self.dims or self.shapes or self.values
        promised = self.max_trips is not None or Assumption.non_empty in self.assume
        if self.certify is not None and (bound or promised):
            raise WrongValue("certify", "is for a proof without promises, bound dims or inputs")

    def run(self, say: Say = silent) -> Proof:
        """Return the proof. If there is none for all sizes within `budget` seconds, both are
        executed for `verify_budget` seconds; if they differ, the verdict is `disproven`.

        Raises:
            BadModel: one of them is no valid model.
            DoesNotFit: a dim, shape or value does not fit the original.
            NoExecutor: only onnxruntime was requested, and it is not installed.
        """
        return self._judged(say)[1].proof

    def outputs(self, say: Say = silent) -> Iterator[Output]:
        from passes.proving.certificate import Certificate

        sides, found = self._judged(say)
        shown = _shown(self.after, found.proof)
        if found.failure is not None:
            remark = _reproduced(self, sides, found.proof.detail, found.failure, False)
            shown = replace(shown, remarks=[remark], exit_code=MISMATCH)
        elif found.proof.is_proven and self.certify is not None:
            certificate = Certificate.of(*sides, found.proof).to_json(2) + "\n"
            shown = replace(shown, files={**shown.files, "certify": lambda: certificate})
        yield shown

    def _judged(self, say: Say) -> tuple[tuple[Model, Model], Attempt]:
        """Both models, with their inputs bound, and what was found."""
        from passes.binding.bound import both_bound
        from passes.proving.narrowing import Executing, prove
        from passes.proving.promises import Promises

        promised = rule_options(self)
        old, new = both_bound(promised, *_both(self.before, self.after))
        given = feeds_of(self.inputs, old.proto)
        executing = Executing(self.executor, self.verify_budget, self.seed, given)
        say("proving")
        return (old, new), prove(old, new, self.budget, Promises.of([promised]), executing)


@command(
    "certificate check",
    short_help="Prove again what a certificate states of two models.",
    group="Check the certificate of a proof.",
)
@dataclass(frozen=True)
class CheckCertificate(Reporting, Standalone):
    """Prove again what a certificate states of two models.

    Exit 0 if the certificate holds; 3 if it does not, with what differs: a model, the proof, or
    the version; 1 if it is not a certificate.
    """

    before: Source = argument("The original.")
    after: Source = argument("The model that is to answer as it does.")
    certificate: Source | None = argument(
        "The certificate; that in the metadata of AFTER by default.", default=None
    )
    _: KW_ONLY
    budget: ProofBudget = PROOF_BUDGET

    def run(self, say: Say = silent) -> Proof:
        """Return the proof.

        Raises:
            BadModel: one of the models is invalid.
            BadCertificate: it is no certificate.
            DoesNotHold: it is, but not of these models.
        """
        from passes.proving.certificate import BadCertificate, Certificate, embedded

        old, new = _both(self.before, self.after)
        file = self.certificate
        try:
            text = embedded(new) if file is None else path_of(file).read_text("utf-8")
        except UnicodeDecodeError as error:
            raise BadCertificate("is no certificate, but a binary file") from error
        except OSError as error:
            raise BadCertificate(f"cannot be read ({error.strerror})") from error
        return Certificate.read(text).check(old, new, self.budget)

    def outputs(self, say: Say = silent) -> Iterator[Output]:
        from passes.proving.certificate import BadCertificate, DoesNotHold

        stated = path_of(self.after if self.certificate is None else self.certificate)
        try:
            yield _shown(self.after, self.run(say))
        except (BadCertificate, DoesNotHold) as error:
            yield Output(failure=f"{stated}: {error}", exit_code=error.exit_code)


@command("bisect", short_help="Find the first value in which two models differ, and why.")
@dataclass(frozen=True)
class Bisect(Comparing, Reporting, Standalone):
    """Find the first value in which two models differ that should be equal, and why.

    BEFORE alone is a folder with both sides and inputs, as a command that exits with 4 writes it.
    Exit 0 if the models agree, 4 with a folder if they do not, 3 if that cannot be decided.
    """

    before: Source = argument("The original, or a folder.")
    after: Source | None = argument("The model to compare with it.", default=None)
    _: KW_ONLY
    executor: BothExecutors = Executors.both
    cases: int | None = option(None, "The most inputs to try.", least=1, metavar="N")
    memory: int = option(
        1024 * _MEGABYTE, "Bytes of values to hold while they are compared.", least=1, shown=API
    )
    megabytes: int = option(
        1024,
        "Megabytes of values to hold while they are compared.",
        least=1,
        flag="memory",
        metavar="MB",
        shown=CLI,
    )
    output: Place | None = option(
        None,
        "The folder to write the parts to; beside AFTER, or in the folder, by default.",
        metavar="DIR",
        shown=CLI,
    )

    def run(self, say: Say = silent) -> Bisection:
        """Return the first difference, if there is one. Both are run until their outputs differ by
        more than verification allows; then every value of both runs is compared, in every
        iteration of every loop.

        Raises:
            BadModel: one of them is no valid model.
            NoExecutor: onnxruntime is asked for, and not installed.
        """
        from passes.bisection.bisecting import Search, bisect_models

        asked = self._unpacked()
        assert asked.after is not None
        old, new = _both(asked.before, asked.after)
        say("running both")
        search = Search(
            feeds_of(asked.inputs, old.proto),
            self.seed,
            self.cases,
            self.executor,
            self.budget,
            self.memory,
            self.exact,
        )
        return bisect_models(old, new, search)

    def outputs(self, say: Say = silent) -> Iterator[Output]:
        asked = replace(self._unpacked(), memory=self.megabytes * _MEGABYTE)
        found = asked.run(say)
        try:
            written = self._written(found)
        except OSError as error:
            sentence = f"the parts cannot be written ({error.strerror})"
            yield Output(failure=sentence, exit_code=FAILED)
            return
        before, after = path_of(asked.before), path_of(asked.after or "")
        failure = f"{after}: does not agree with {before}"
        yield Output(
            "\n".join(filter(None, (found.to_text(), written))),
            {"json": found.to_json},
            failure=failure if found.verdict == "differ" else "",
            exit_code={"agree": DONE, "differ": MISMATCH, "unknown": NOT_PRODUCED}[found.verdict],
        )

    def files(self) -> Sequence[Path]:
        return super(Bisect, self._unpacked()).files()

    def _unpacked(self) -> Bisect:
        """The same for the models, and the inputs, in a folder that is named in their place."""
        from passes.verify.reproducer import AFTER, BEFORE, DATA_SET

        if self.after is not None:
            return self
        folder = path_of(self.before)
        if not folder.is_dir():
            wrong = "is no folder" if folder.exists() else "there is no such folder"
            asked = f"name two models, or a folder that holds {BEFORE} and {AFTER}"
            raise WrongUsage(f"{folder}: {wrong}; {asked}")
        packed = self.inputs is None and any((folder / DATA_SET).glob("*"))
        inputs = folder / DATA_SET if packed else self.inputs
        return replace(self, before=folder / BEFORE, after=folder / AFTER, inputs=inputs)

    def _written(self, found: Bisection) -> str:
        """Write the parts, and tell where; empty if there are none. Raises OSError."""
        from passes.commands.task import command_line
        from passes.verify.reproducer import Circumstances, save

        if found.first is None:
            return ""
        cut = found.first.cut
        if cut is None:
            return "not written      what differs cannot be cut out"
        if self.after is None:
            folder = path_of(self.before) / "parts"
        else:
            after = path_of(self.after)
            folder = after.with_name(f"{after.name}.bisect")
        folder = folder if self.output is None else Path(self.output)
        seen = Circumstances(command_line(), found.first.after.path, (), exact=self.exact)
        path = save(folder, cut.before, cut.after, cut.failure, sentence=found.text, seen=seen)
        old, new = cut.nodes
        size = f"{new} nodes" if old == new else f"{old} and {new} nodes"
        contents = f"both sides cut to {size.replace('1 nodes', '1 node')}, the inputs, the command"
        return f"{'written':<15}  {path}: {contents}"


def _both(before: Source, after: Source) -> tuple[Model, Model]:
    """Two valid models. Raises BadModel."""
    from passes.session import loaded

    return loaded(before)[0], loaded(after)[0]


def _shown(after: Source, proof: Proof) -> Output:
    """What is shown of a proof."""
    lines = [f"{path_of(after)}: {proof.sentence()}", *(f"  {one}" for one in proof.rests_on)]
    text = "\n".join(lines)
    files = {"json": lambda: dumps(asdict(proof), indent=2) + "\n"}
    if proof.is_proven:
        return Output(text, files)
    return Output("", files, failure=text, exit_code=NOT_PRODUCED)


def _reproduced(
    asked: Verify | Prove, sides: tuple[Model, Model], reason: str, failure: Failure, exact: bool
) -> str:
    """Write the folder with both sides of a mismatch, and return a sentence on it."""
    from passes.commands.task import reproduced
    from passes.errors import Disagreement

    before, after = path_of(asked.before), path_of(asked.after)
    protos = (sides[0].proto, sides[1].proto)
    shown = Disagreement("main", reason, protos, failure, (), exact=exact)
    folder = after.with_name(f"{after.name}.reproducer")
    return reproduced(folder, shown, (before.parent, after.parent))[1]
