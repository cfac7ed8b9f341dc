"""The one straight line: load, check, apply rules, verify, check, save, report."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from onnx import ModelProto

from passes.check import Survey, check_outcome, load_checked
from passes.check.as_meant import with_front_axes
from passes.check_output import checks_of, refuse_taken, with_check_output
from passes.choices import RuleOptions, Verifying
from passes.dims import as_given, with_fixed_dims
from passes.engine.finish import Cleaner, name_nodes
from passes.engine.fixpoint import Engine, settle
from passes.engine.folded import drop_folded
from passes.engine.full_check import invalidated
from passes.engine.pipelines import PIPELINES, Phase, steps_of
from passes.engine.plugins import rule
from passes.engine.rounds import Rewritten, Round
from passes.engine.selection import marked, unmark
from passes.engine.target_opset import TooNew, check_known, check_reachable, loadable, target_opset
from passes.engine.target_opset import UnknownOpset as UnknownOpset
from passes.ir import scope as scoping
from passes.ir.constant_nodes import constant_tensor
from passes.ir.model import Model
from passes.not_produced import Mismatch as Mismatch
from passes.not_produced import NotProduced as NotProduced
from passes.not_produced import NotVerified as NotVerified
from passes.onnxruntime.releases import Release
from passes.report import Checked, Record, Report, Size
from passes.verify.signature import describe
from passes.verify.signature import inputs as signature_inputs

if TYPE_CHECKING:
    from passes.verify.rewrites.verifying import Known

Source = ModelProto | str | os.PathLike[str]
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Result:
    """A model that was rewritten and verified, and what was done to it."""

    model: ModelProto
    report: Report
    base_dir: Path | None = None


@dataclass(frozen=True)
class _Outcome:
    """What the rules made of a model."""

    proto: ModelProto
    rounds: Sequence[Round]
    report: Report


class _LeaveOut(Exception):
    """Optional rewrites that nothing vouches for, by rule and path, and why."""

    def __init__(self, sites: Mapping[tuple[str, str], str]) -> None:
        super().__init__()
        self.sites = sites


@dataclass(frozen=True)
class Session:
    """One command on one model. `target`: the opset to go to; None where none was requested: then
    `DEFAULT_OPSET` for what must be converted, and else the model keeps its own. `release`: the
    onnxruntime that the target is for."""

    command: str
    target: int | None = None
    options: RuleOptions = field(default_factory=RuleOptions)
    verifying: Verifying | None = field(default_factory=Verifying)
    progress: Progress | None = None
    release: Release | None = None

    def run(self, source: Source) -> Result:
        """Take a model through the pipeline of the command; `source` is never changed.

        Raises:
            BadModel: the input is no valid model.
            UnknownRule: a rule was named that there is not, or skipped that would not run.
            NothingMatches: a pattern of `only` matches no node.
            UnknownDim: a dim is to be fixed that no input has.
            UnknownFunction: a function is to be inlined that the model does not have.
            NameTaken: the output that is to be added has the name of another value.
            NotProduced: the model is newer than the target, or a rule that the result depends on
                refused.
            NotVerified: no case of a rewrite could be compared.
            Mismatch: a rewrite disagrees with the original.
        """
        with collector_held_back() if self._converts else nullcontext():
            original, found = self._loaded(source)
        target = loadable(original, self.target, self.release)
        return replace(self, target=target)._run(original, found)

    def _run(self, original: Model, found: Survey) -> Result:
        """Take a model that was loaded through the pipeline."""
        converting = self._converts
        sizes = dict(self.options.dims)
        with collector_held_back() if converting else nullcontext():
            model = with_fixed_dims(original, sizes) if sizes else original
        fed = as_given(original, model) if sizes else original
        left_out: dict[tuple[str, str], str] = {}
        known: Known = {}
        while True:
            with collector_held_back() if converting else nullcontext():
                outcome = self._outcome(original, model, found, left_out)
            report = outcome.report
            if outcome.proto is original.proto or self.verifying is None:
                return Result(outcome.proto, report, model.base_dir)
            try:
                report = self._verified(fed, outcome, self.verifying, known)
            except _LeaveOut as more:
                left_out = {**left_out, **more.sites}
            else:
                return Result(outcome.proto, report, model.base_dir)

    def foresee(self, model: Model, found: Survey) -> Report:
        """What the command would do to a checked model, or refuses; nothing is executed."""
        try:
            return self._outcome(model, model, found, {}).report
        except NotProduced as error:
            return error.report

    def _outcome(
        self,
        original: Model,
        model: Model,
        found: Survey,
        left_out: Mapping[tuple[str, str], str],
    ) -> _Outcome:
        """What becomes of a model without the rewrites that are left out, by rule and path."""
        rounds, proto = replace(self, options=replace(self.options, left_out=left_out))._rewritten(
            model, found
        )
        report = self._report(model, proto, rounds, found)
        if any(not record.optional for record in report.refusals):
            raise NotProduced(_refused(report), report)
        as_it_was = model is original and not found.notes and not _rewrote(rounds)
        if proto is not original.proto:
            added = self.options.check_output
            if added:
                proto = with_check_output(proto, added, checks_of(rounds))
            rewrites = [rewrite for round_ in rounds for rewrite in round_.rewritten]
            quick = self._converts and model is original and not found.notes
            if not quick or any(rewrite.releases for rewrite in rewrites):
                Cleaner(model).clean(proto)
            if not quick or any(rewrite.renews for rewrite in rewrites):
                name_nodes(proto, model.proto, rounds)
        if PIPELINES[self.command].down:
            proto, report = self._fitted(original.proto, proto, report)
        if proto is not original.proto:
            check_outcome(Model(proto, model.path))
            if not as_it_was and (sentence := invalidated(original.proto, rounds, proto)):
                raise _failed(sentence, report)
        return _Outcome(proto, rounds, report)

    def _fitted(
        self, original: ModelProto, proto: ModelProto, report: Report
    ) -> tuple[ModelProto, Report]:
        """The outcome at its IR version, and the report that says so.

        Raises:
            NotProduced: it holds what that version cannot.
        """
        from converters.ir_version import fit
        from converters.model_limits import limits
        from converters.stamp import newer_domains

        asked, drop = self.options.ir_version, self.options.drop_metadata
        fitted = fit(original, proto, asked, exact=self.release is None, drop=drop)
        before, after = report.opsets
        undeclared = limits(proto, after) if after < before else []
        refused = [
            *fitted.refused,
            *(("main", "graph", "no-equivalent", one) for one in undeclared),
        ]
        report = replace(
            report,
            ir_versions=(original.ir_version, fitted.version),
            records=[*report.records, *(Record.not_held(*one) for one in refused)],
            notes=[
                *report.notes,
                *fitted.notes,
                *(newer_domains(proto, after) if after < before else ()),
            ],
        )
        if refused:
            raise NotProduced(_refused(report), report)
        return fitted.model, report

    def _loaded(self, source: Source) -> tuple[Model, Survey]:
        """The valid model, and what was found in it."""
        self._say("loading")
        check_known(self.target)
        model, found = load_checked(source)
        try:
            if not PIPELINES[self.command].down:
                asked = loadable(model, self.target, self.release)
                check_reachable(model, asked, self.release)
        except TooNew as error:
            opsets = (model.opset(), self.target or model.opset())
            size = Size.of(model)
            report = Report(self.command, model.file, opsets, (size, size))
            raise _failed(f"{error}", report) from error
        if self.options.check_output:
            refuse_taken(model.proto, self.options.check_output)
        if PIPELINES[self.command].down:
            from passes.rules.inline_function.chosen import check_named

            check_named(model.proto, self.options)
        return model, found

    def _rewritten(self, model: Model, found: Survey) -> tuple[list[Round], ModelProto]:
        """What the rules did, and the outcome: the model itself where they did nothing."""
        self._say("rewriting")
        only = self.options.only
        start = with_front_axes(model) if found.notes else model.proto
        start = marked(start, only) if only else start
        rounds = self._rounds(model, start)
        proto = rounds[-1].proto if rounds else start
        if proto is start:
            return rounds, model.proto
        if only:
            unmark(proto)
        return rounds, proto

    def _steps(self) -> tuple[tuple[Phase, ...], ...]:
        """The steps of the command, as far as the options leave them."""
        return steps_of(self.command, self.options.rules, self.options.skip)

    @property
    def _converts(self) -> bool:
        """Whether the command is there to bring a model to an opset."""
        phases = [phase for step in self._steps() for phase in step]
        return any(phase.converts and phase.when != "needed" for phase in phases)

    def _rounds(self, model: Model, proto: ModelProto) -> list[Round]:
        """Run the steps, one after the other, from `proto` on."""
        flags = PIPELINES[self.command].flags
        own = frozenset() if self._converts else frozenset(_constants(model.proto))
        options = replace(self.options.with_flags(flags), own_constants=own)
        # nothing reads the check yet
        clean = None if options.check_output else Cleaner(model).clean

        def run(phase: Phase, model: Model) -> list[Round]:
            return self._phase(phase, model, options, clean)

        current = model if proto is model.proto else Model(proto, model.path)
        rounds: list[Round] = []
        for phases in self._steps():
            rounds += settle(phases, rounds[-1].after if rounds else current, run)
        return rounds

    def _phase(
        self,
        phase: Phase,
        model: Model,
        options: RuleOptions,
        clean: Callable[[ModelProto], None] | None,
    ) -> list[Round]:
        """Run a phase where it applies; the last round has the outcome, stamped with its opset."""
        if not phase.applies_to(model, asked=self.target is not None):
            return []
        target = target_opset(model, self.target) if phase.converts else None
        rules = [rule(name) for name in phase.rules]
        engine = Engine(rules, target, options, self.progress, clean)
        if "inline-function" in phase.rules:
            return _inlined(model, options, engine)
        rounds = engine.fixpoint(model)
        if target is not None:
            drop_folded(rounds[-1])
        if target is not None and not rounds[-1].refused and not _at_opset(model, target):
            rounds[-1].proto = _stamped(rounds[-1].proto, model.proto, target)
        return rounds

    def _report(
        self, model: Model, proto: ModelProto, rounds: Sequence[Round], found: Survey
    ) -> Report:
        """The rewrites of all rounds; what a rule still refuses when it runs the last time."""
        records = [
            Record.rewritten(rewritten, None) for round_ in rounds for rewritten in round_.rewritten
        ]
        last = {name: round_ for round_ in rounds for name in round_.rules}
        records += [
            Record.refused(refusal)
            for round_ in rounds
            for refusal in round_.refused
            if last[refusal.rule.name] is round_
        ]
        outcome = Model(proto)
        before, after = model.opset(), outcome.opset()
        if any("opset" in round_.rules for round_ in rounds):
            # what was requested, also where it was refused
            after = target_opset(model, self.target)
        opsets = (before, after)
        size = Size.of(model)
        same = not _rewrote(rounds) and len(proto.functions) == len(model.proto.functions)
        sizes = (size, size if same else Size.of(outcome))
        return Report(self.command, model.file, opsets, sizes, records, notes=tuple(found.notes))

    def _verified(
        self,
        model: Model,
        outcome: _Outcome,
        verifying: Verifying,
        known: Known,
    ) -> Report:
        from passes.verify.rewrites.verifying import verify_rounds

        self._say("verifying")
        check = self.options.check_output
        rounds, proto, report = outcome.rounds, outcome.proto, outcome.report
        verdicts = verify_rounds(model, rounds, proto, verifying, self._say, check, known=known)
        rewritten = len(verdicts.rewrites)
        records = [
            replace(record, checked=checked)
            for record, checked in zip(report.records[:rewritten], verdicts.rewrites, strict=True)
        ]
        records += report.records[rewritten:]
        report = replace(report, records=records, checked=verdicts.whole)
        if verdicts.mismatch is not None:
            raise Mismatch(verdicts.mismatch, report)
        unverified = verdicts.unverified
        if self.options.dims and verdicts.whole and verdicts.whole.verdict != "verified":
            unverified = [*unverified, (None, verdicts.whole)]  # sizes were fixed everywhere
        if unverified and not verifying.allow_unverified:
            optional = [
                (rewritten, checked)
                for rewritten, checked in unverified
                if rewritten and rewritten.rule.optional
            ]
            ways = _ways(model, hurried=verdicts.hurried)
            if verdicts.hurried or len(optional) < len(unverified):
                raise NotVerified(_not_verified(unverified, ways), report)
            sentence = "no case could be compared"
            raise _LeaveOut(
                {
                    (
                        rewritten.rule.name,
                        rewritten.place.path,
                    ): f"{sentence}, {checked.reason}; {ways}"
                    for rewritten, checked in optional
                }
            )
        if verdicts.unloadable is None:
            return report
        version, sentence = verdicts.unloadable
        if verdicts.stopped or not self._may_be_for_another(version):
            hint = "" if self.target else "; --opset and --for name another opset to go to"
            raise _failed(sentence + hint, report)
        return replace(report, warnings=(sentence,))

    def _may_be_for_another(self, version: str) -> bool:
        """Whether the outcome may be for another onnxruntime than the installed one."""
        if self.release is not None:
            return not self.release.includes(version)
        return self.target is not None

    def _say(self, what: str) -> None:
        if self.progress is not None:
            self.progress(what)


@contextmanager
def collector_held_back() -> Iterator[None]:
    """Hold Python's garbage collector back for as long as this takes, also where it fails.

    What checking and converting make is kept to the end and has no cycles: to look through it
    again and again takes a tenth of the time and finds nothing.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _inlined(model: Model, options: RuleOptions, engine: Engine) -> list[Round]:
    """Rounds that inline functions; the outcome of the last one is without these."""
    from passes.rules.inline_function.chosen import chosen, with_imports, without_uncalled

    functions = chosen(model.proto, options)
    if not functions:
        return []
    start = with_imports(model.proto, functions)
    rounds = engine.fixpoint(model if start is model.proto else Model(start, model.path))
    if not rounds[-1].refused:
        rounds[-1].proto = without_uncalled(rounds[-1].proto, functions)
    return rounds


def _stamped(proto: ModelProto, original: ModelProto, target: int) -> ModelProto:
    """The outcome with the opset that it is written in; never the original itself."""
    from converters.stamp import stamp

    if proto is original:
        proto = ModelProto()
        proto.CopyFrom(original)
    stamp(proto, target)
    return proto


def _rewrote(rounds: Sequence[Round]) -> bool:
    """Whether any rule did anything."""
    return any(round_.rewritten for round_ in rounds)


def _constants(model: ModelProto) -> Iterator[str]:
    """The names of the constants outside of all bodies."""
    for _, owner in scoping.owners(model):
        yield from scoping.initializer_names(owner)
        yield from (node.output[0] for node in owner.node if constant_tensor(node) is not None)


def _at_opset(model: Model, target: int) -> bool:
    owners = [None, *model.proto.functions]
    return all((model.opset(owner) or target) == target for owner in owners)


def _failed(sentence: str, report: Report) -> NotProduced:
    """Why there is no outcome, where no rule refused."""
    report = replace(report, failure=sentence)
    return NotProduced(": ".join(filter(None, (report.file, sentence))), report)


def _refused(report: Report) -> str:
    refusals = [record for record in report.refusals if not record.optional]
    first = refusals[0]
    more = f" (and {len(refusals) - 1} more)" if len(refusals) > 1 else ""
    place = ": ".join(part for part in (report.file, first.path) if part)
    return f"{place}: {first.sentence} [{first.code}]{more}"


def _not_verified(unverified: Sequence[tuple[Rewritten | None, Checked]], ways: str) -> str:
    rewritten, checked = unverified[0]
    path = rewritten.place.path if rewritten else "main"
    more = f" (and {len(unverified) - 1} more)" if len(unverified) > 1 else ""
    return (
        f"{path}: no case could be compared, {checked.reason}{more} [not-verified]; {ways}, "
        "--allow-unverified writes the model all the same"
    )


def _ways(model: Model, *, hurried: bool) -> str:
    """How a user can help to compare what could not be."""
    if hurried:
        return "--verify-budget gives more time"
    inputs = ", ".join(describe(value) for value in signature_inputs(model.proto.graph))
    return f"--inputs gives what the model takes ({inputs})" if inputs else "it has no inputs"
