"""The one straight line: load, check, apply rules, verify, check, save, report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from onnx import ModelProto

from passes.check import Survey, load_checked
from passes.check.as_meant import with_front_axes
from passes.choices import Proving, RuleOptions, Verifying
from passes.engine.as_computed import as_computed
from passes.engine.check_output import checks_of, refuse_taken, with_check_output
from passes.engine.finish import Cleaner, name_nodes
from passes.engine.fixpoint import Engine, settle
from passes.engine.folded import drop_folded
from passes.engine.full_check import Invalidated, blamed, form_objection, full_objection
from passes.engine.plugins import rule
from passes.engine.rounds import Round
from passes.engine.schedules import Phase, Schedule, steps_of
from passes.engine.selection import marked, unmark
from passes.engine.target_opset import TooNew, check_known, target_opset
from passes.engine.target_opset import UnknownOpset as UnknownOpset
from passes.ir import scope as scoping
from passes.ir.constants import constant_tensor
from passes.ir.model import Model
from passes.ir.protos import copied
from passes.ir.save import Progress as Progress
from passes.ir.save import save
from passes.not_produced import Mismatch as Mismatch
from passes.not_produced import NotProduced as NotProduced
from passes.not_produced import NotVerified as NotVerified
from passes.onnxruntime.releases import Release
from passes.reports.report import INVALID, Record, Report, Size

if TYPE_CHECKING:
    from passes.commands.options import Options


@dataclass(frozen=True)
class Result:
    """A model that was rewritten and verified, and what was done to it. Its external data, if there
    is any, is in `base_dir`."""

    model: ModelProto
    report: Report
    base_dir: Path | None = None

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the model, in the format that the suffix names, wholly or not at all, with its
        external data beside it.

        Raises:
            CannotSave: there is a file and `force` is off, or the folder or disk refuses.
        """
        save(self.model, Path(path), base_dir=self.base_dir, force=force)
        return Path(path)


#: What is taken for a model: a path, the bytes of a file, a proto, or what a command made.
Source = ModelProto | bytes | str | os.PathLike[str] | Result


def loaded(source: Source) -> tuple[Model, Survey]:
    """A valid model, and what was found in it.

    Raises:
        BadModel: it cannot be read, or is invalid.
    """
    if not isinstance(source, Result):
        return load_checked(source)
    path = None if source.base_dir is None else source.base_dir / "model.onnx"
    return load_checked(Model(source.model, path))


class _Misdeclared(Exception):
    """A model declares other sizes than it computes: one that declares those, and what differs."""

    def __init__(self, model: Model, notes: Sequence[str]) -> None:
        super().__init__()
        self.model, self.notes = model, notes


@dataclass(frozen=True)
class Outcome:
    """The outcome of the rules on a model."""

    proto: ModelProto
    rounds: Sequence[Round]
    report: Report


@dataclass(frozen=True)
class Session:
    """One command on one model. `target`: the opset to go to; None where none was requested: then
    `DEFAULT_OPSET` for what must be converted, and else the model keeps its own. `release`: the
    onnxruntime that the target is for. `proving`: how to prove the outcome, if that is asked for.
    """

    schedule: Schedule
    target: int | None = None
    options: RuleOptions = field(default_factory=RuleOptions)
    verifying: Verifying | None = field(default_factory=Verifying)
    progress: Progress | None = None
    release: Release | None = None
    proving: Proving | None = None

    def run(self, source: Source) -> Result:
        """Take a model through the phases of the command, and verify what they did; `source` is
        never changed. Raises what `Chain.run` raises."""
        from passes.chain import Chain

        return Chain((self,)).run(source)

    def foresee(self, model: Model, found: Survey) -> Report:
        """Return the report that the command would give on a checked model; nothing is executed."""
        try:
            return self.outcome(model, model, found, {}).report
        except NotProduced as error:
            return error.report

    def outcome(
        self,
        original: Model,
        model: Model,
        found: Survey,
        left_out: Mapping[tuple[str, str], tuple[str, str]],
    ) -> Outcome:
        """Return the outcome without the rewrites that are left out, by rule and path, and without
        those after which it is invalid.

        `original` is the model before its inputs were bound. Raises what `Chain.run` raises, but
        for what verification finds.
        """
        while True:
            try:
                return self._outcome(original, model, found, left_out)
            except Invalidated as error:
                what = "the model is invalid after this rewrite"
                more = {one.site: (INVALID, f"{what}: {why}") for one, why in error.rewrites}
                left_out = {**left_out, **more}
            except _Misdeclared as error:
                original = error.model if original is model else original
                model, found = error.model, replace(found, notes=[*found.notes, *error.notes])

    def _outcome(
        self,
        original: Model,
        model: Model,
        found: Survey,
        left_out: Mapping[tuple[str, str], tuple[str, str]],
    ) -> Outcome:
        """Return the outcome without the rewrites that are left out.

        Raises:
            Invalidated: it is invalid after some rewrites.
            _Misdeclared: the model declares other sizes than it computes.
        """
        rounds, proto = replace(self, options=replace(self.options, left_out=left_out))._rewritten(
            model, found
        )
        after = Model(proto)
        report = self._report(model, after, rounds, found)
        if any(not record.optional for record in report.refusals):
            raise NotProduced(report.refusal, report)
        as_it_was = model is original and not found.notes and not _rewrote(rounds)
        if proto is not original.proto:
            added = self.options.check_output
            if added:
                proto = with_check_output(proto, added, checks_of(rounds))
            # those of one template are alike
            written = {id(one.written): one for round_ in rounds for one in round_.rewritten}
            rewrites = written.values()
            quick = self.converts and model is original and not found.notes
            if not quick or any(rewrite.releases for rewrite in rewrites):
                Cleaner(model).clean(proto)
                after = Model(proto)
            if not quick or any(rewrite.renews for rewrite in rewrites):
                name_nodes(proto, model.proto, rounds)
        proto, report = self.schedule.finish(
            original.proto, proto, report, self.options, self.release
        )
        if proto is not original.proto:
            after = after if after.proto is proto else Model(proto)
            sentence = form_objection(proto)
            if not sentence and not as_it_was and (sentence := full_objection(after)):
                if wrong := as_computed(model):
                    raise _Misdeclared(*wrong)
                sentence = "" if full_objection(original) else sentence
            if sentence:
                blame = blamed(
                    rounds, lambda one: form_objection(one) or full_objection(Model(one))
                )
                if any(one.site not in left_out for one, _ in blame):
                    raise Invalidated(blame)
                raise failed(f"the outcome is no valid ONNX model: {sentence}", report)
        return Outcome(proto, rounds, report)

    def loaded(self, source: Source) -> tuple[Model, Survey]:
        """The valid model, and what was found in it. Raises what `Chain.run` raises."""
        self.say("loading")
        check_known(self.target)
        model, found = loaded(source)
        self.accept(model)
        return model, found

    def accept(self, model: Model) -> None:
        """Check that the command can be run on a valid model. Raises what `Chain.run` raises."""
        try:
            self.schedule.accept(model, self.target, self.release, self.options)
        except TooNew as error:
            opsets = (model.opset(), self.target or model.opset())
            raise failed(f"{error}", self.unchanged(model, opsets)) from error
        if self.options.check_output:
            refuse_taken(model.proto, self.options.check_output)

    def unchanged(self, model: Model, opsets: tuple[int, int]) -> Report:
        """Return the report on a model before anything is done to it."""
        size = Size.of(model)
        return Report(self.schedule.name, model.file, opsets, (size, size))

    def _rewritten(self, model: Model, found: Survey) -> tuple[list[Round], ModelProto]:
        """Return the rounds of the rules, and the outcome: the model itself if they changed
        nothing."""
        self.say("rewriting")
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
        return steps_of(self.schedule, self.options.rules, self.options.skip)

    @property
    def converts(self) -> bool:
        """True if the command is there to bring a model to an opset."""
        phases = [phase for step in self._steps() for phase in step]
        return any(phase.converts and phase.when != "needed" for phase in phases)

    def _rounds(self, model: Model, proto: ModelProto) -> list[Round]:
        """Run the steps, one after the other, from `proto` on."""
        flags = self.schedule.flags
        own = frozenset() if self.converts else frozenset(_constants(model.proto))
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
        rounds = phase.rounds(model, options, engine.fixpoint)
        if rounds and target is not None:
            drop_folded(rounds[-1])
            if not rounds[-1].refused and not _at_opset(model, target):
                rounds[-1].proto = _stamped(rounds[-1].proto, model.proto, target)
        return rounds

    def _report(
        self, model: Model, outcome: Model, rounds: Sequence[Round], found: Survey
    ) -> Report:
        """The rewrites of all rounds; what a rule still refuses when it runs the last time."""
        records = list(
            Record.all_rewritten(rewritten for round_ in rounds for rewritten in round_.rewritten)
        )
        last = {name: round_ for round_ in rounds for name in round_.rules}
        aims = self.schedule.aims_of(self.options.rules)
        records += [
            Record.refused(refusal, asked=not refusal.rule.optional or refusal.rule.name in aims)
            for round_ in rounds
            for refusal in round_.refused
            if last[refusal.rule.name] is round_
        ]
        before, after = model.opset(), outcome.opset()
        if any("opset" in round_.rules for round_ in rounds):
            # what was requested, also where it was refused
            after = target_opset(model, self.target)
        opsets = (before, after)
        size = Size.of(model)
        same = not _rewrote(rounds) and len(outcome.proto.functions) == len(model.proto.functions)
        sizes = (size, size if same else Size.of(outcome))
        return Report(
            self.schedule.name, model.file, opsets, sizes, records, notes=tuple(found.notes)
        )

    def say(self, what: str) -> None:
        """Report progress to the listener, if there is one."""
        if self.progress is not None:
            self.progress(what)


def session_of(options: Options) -> Session:
    """The session of a command.

    Raises:
        UnknownRelease: it is for a release of onnxruntime that is not known.
    """
    target, release = options.asked()
    own, how = options.for_rules(), options.verifying()
    proving = options.proving()
    return Session(options.schedule, target, own, how, options.progress, release, proving)


def _stamped(proto: ModelProto, original: ModelProto, target: int) -> ModelProto:
    """The outcome with the opset that it is written in; never the original itself."""
    from passes.converters.stamp import stamp

    if proto is original:
        proto = copied(original)
    stamp(proto, target)
    return proto


def _rewrote(rounds: Sequence[Round]) -> bool:
    """Return whether any rule did anything."""
    return any(round_.rewritten for round_ in rounds)


def _constants(model: ModelProto) -> Iterator[str]:
    """The names of the constants outside of all bodies."""
    for _, owner in scoping.owners(model):
        yield from scoping.initializer_names(owner)
        yield from (node.output[0] for node in owner.node if constant_tensor(node) is not None)


def _at_opset(model: Model, target: int) -> bool:
    owners = [None, *model.proto.functions]
    return all((model.opset(owner) or target) == target for owner in owners)


def failed(sentence: str, report: Report) -> NotProduced:
    """Why there is no outcome, where no rule refused."""
    report = replace(report, failure=sentence)
    return NotProduced(": ".join(filter(None, (report.file, sentence))), report)
