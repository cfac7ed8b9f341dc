"""The outcome of the rules of one command on a model: rewritten, finished, and a valid model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from onnx import ModelProto

from passes.check import Survey
from passes.check.as_meant import with_front_axes
from passes.choices import RuleOptions
from passes.engine.finish import Cleaner, checks_of, name_nodes, refuse_taken, with_check_output
from passes.engine.full_check import (
    Invalidated,
    as_computed,
    blamed,
    form_objection,
    full_objection,
)
from passes.engine.rewriting import rewrite
from passes.engine.rounds import Round
from passes.engine.schedules import Schedule
from passes.engine.target_opset import TooNew, check_known, loadable
from passes.errors import NotProduced
from passes.ir import scope as scoping
from passes.ir.constants import constant_tensor
from passes.ir.model import Model
from passes.ir.selection import marked, unmark
from passes.onnxruntime.releases import Release
from passes.reports.report import INVALID, Record, Report, Size

#: Why a rule is not to rewrite a site, by rule and path: a code and a sentence.
LeftOut = Mapping[tuple[str, str], tuple[str, str]]


class LeaveOut(Exception):
    """Optional rewrites are to be left out, and the outcome is to be made again."""

    def __init__(self, sites: LeftOut) -> None:
        super().__init__()
        self.sites = sites


@dataclass(frozen=True)
class Outcome:
    """The outcome of the rules on a model. `uncast`: what it was before it was cast, which alone is
    equal to the model; None if it was not."""

    proto: ModelProto
    rounds: Sequence[Round]
    report: Report
    uncast: ModelProto | None = None

    @classmethod
    def joined(cls, outcomes: Sequence[Outcome]) -> Outcome:
        """The outcome of passes, each on the outcome of the one before, with one report of all."""
        report = Report.joined([one.report for one in outcomes])
        rounds = [each for one in outcomes for each in one.rounds]
        return cls(outcomes[-1].proto, rounds, report, outcomes[-1].uncast)

    @property
    def equal(self) -> ModelProto:
        """The model that answers as the one before the passes."""
        return self.proto if self.uncast is None else self.uncast

    @property
    def seconds(self) -> Mapping[str, float]:
        """The time that each rule took, the longest first."""
        rules: Counter[str] = Counter()
        for round_ in self.rounds:
            rules.update(round_.seconds)
        return {name: round(seconds, 3) for name, seconds in rules.most_common()}


@dataclass(frozen=True)
class Pass:
    """The rules of one command, to be run on a model. `target`: the opset to convert it to; None
    where none was requested: then `DEFAULT_OPSET` for what must be converted, and else the model
    keeps its own. `release`: the onnxruntime that the target is for."""

    schedule: Schedule
    target: int | None = None
    options: RuleOptions = field(default_factory=RuleOptions)
    release: Release | None = None

    def check(self) -> None:
        """Check that the opset and the rules that were asked for are known. Raises what
        `Session.run` raises."""
        check_known(self.target)
        self.schedule.steps(self.options.rules, self.options.skip)

    def accept(self, model: Model) -> None:
        """Check that the command can be run on a valid model. Raises what `Session.run` raises."""
        try:
            self.schedule.accept(model, self.target, self.release, self.options)
        except TooNew as error:
            opsets = (model.opset(), self.target or model.opset())
            raise NotProduced.since(f"{error}", self.unchanged(model, opsets)) from error
        if self.options.check_output:
            refuse_taken(model.proto, self.options.check_output)

    def unchanged(self, model: Model, opsets: tuple[int, int]) -> Report:
        """Return the report on a model before anything is done to it."""
        size = Size.of(model)
        return Report(self.schedule.name, model.file, opsets, (size, size))

    @property
    def casts(self) -> bool:
        """True if it gives other types to floats, so that its outcome is not equal to the model."""
        return self.options.retyping is not None and not self.options.retyping.is_exact

    def may_be_for_another(self, version: str) -> bool:
        """Return whether the outcome may be for another onnxruntime than this version of it."""
        if self.release is not None:
            return not self.release.includes(version)
        return self.target is not None

    def outcome(
        self, original: Model, model: Model, found: Survey, left_out: LeftOut = MappingProxyType({})
    ) -> Outcome:
        """Return the outcome without the rewrites that are left out, by rule and path, and without
        those after which it is invalid.

        `original` is the model before its inputs were bound. Raises what `Session.run` raises, but
        for what verification finds.
        """
        asked = loadable(original, self.target, self.release)
        steps = self.schedule.steps(self.options.rules, self.options.skip)
        while True:
            start, options = self._start(model, found), self._for_rules(model, left_out)
            # nothing reads the check yet
            clean = None if options.check_output else Cleaner(model).clean
            try:
                rounds = rewrite(start, steps, asked, options, clean)
                proto = rounds[-1].proto if rounds else start.proto
                proto = model.proto if proto is start.proto else proto
                return self._finished(original, model, found, rounds, proto, options)
            except Invalidated as error:
                what = "the model is invalid after this rewrite"
                more = {one.site: (INVALID, f"{what}: {why}") for one, why in error.rewrites}
                left_out = {**left_out, **more}
            except _Misdeclared as error:
                original = error.model if original is model else original
                model, found = error.model, replace(found, notes=[*found.notes, *error.notes])

    def _start(self, model: Model, found: Survey) -> Model:
        """Return the model that the rules run on, with the marks of what is selected."""
        proto = with_front_axes(model) if found.notes else model.proto
        proto = marked(proto, self.options.only) if self.options.only else proto
        return model if proto is model.proto else Model(proto, model.path)

    def _for_rules(self, model: Model, left_out: LeftOut) -> RuleOptions:
        """Return the options of the rules, with what the command adds to them."""
        own = frozenset() if self.schedule.converts else frozenset(_constants(model.proto))
        options = self.options.with_flags(self.schedule.flags)
        return replace(options, own_constants=own, left_out=left_out)

    def _finished(
        self,
        original: Model,
        model: Model,
        found: Survey,
        rounds: Sequence[Round],
        proto: ModelProto,
        options: RuleOptions,
    ) -> Outcome:
        """Return the outcome of the rounds, without what nothing reads any more, and checked.

        Raises:
            Invalidated: it is invalid after some rewrites.
            _Misdeclared: the model declares other sizes than it computes.
        """
        if self.options.only and proto is not model.proto:
            unmark(proto)
        after = Model(proto)
        report = self._report(model, after, rounds, found)
        if any(not record.optional for record in report.refusals):
            raise NotProduced(report.refusal, report)
        as_it_was = model is original and not found.notes
        if proto is not original.proto:
            if self.options.check_output:
                proto = with_check_output(proto, self.options.check_output, checks_of(rounds))
            # those of one template are alike
            written = {id(one.written): one for round_ in rounds for one in round_.rewritten}
            rewrites = written.values()
            quick = self.schedule.converts and as_it_was
            if not quick or any(rewrite.releases for rewrite in rewrites):
                Cleaner(model).clean(proto)
                after = Model(proto)
            if not quick or any(rewrite.renews for rewrite in rewrites):
                name_nodes(proto, model.proto, rounds)
        equal = proto
        if self.schedule.deliver:
            proto, report = self.schedule.deliver(original, proto, report, options, self.release)
        outcome = Outcome(proto, rounds, report, equal if report.casts and self.casts else None)
        if proto is original.proto:
            return outcome
        after = after if after.proto is proto else Model(proto)
        sentence = form_objection(proto)
        changed = any(round_.rewritten for round_ in rounds) or not as_it_was or proto is not equal
        if not sentence and changed and (sentence := full_objection(after)):
            if wrong := as_computed(model):
                raise _Misdeclared(*wrong)
            sentence = "" if full_objection(original) else sentence
        if not sentence:
            return outcome
        blame = blamed(rounds, lambda one: form_objection(one) or full_objection(Model(one)))
        if any(one.site not in options.left_out for one, _ in blame):
            raise Invalidated(blame)
        raise NotProduced.since(f"the outcome is no valid ONNX model: {sentence}", report)

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
        # what was requested, also where it was refused
        targets = (round_.target for round_ in rounds if round_.target is not None)
        opsets = (model.opset(), next(targets, outcome.opset()))
        size = Size.of(model)
        same = len(outcome.proto.functions) == len(model.proto.functions)
        same = same and not any(round_.rewritten for round_ in rounds)
        sizes = (size, size if same else Size.of(outcome))
        return Report(
            self.schedule.name, model.file, opsets, sizes, records, notes=tuple(found.notes)
        )


class _Misdeclared(Exception):
    """A model declares other sizes than it computes: one that declares those, and what differs."""

    def __init__(self, model: Model, notes: Sequence[str]) -> None:
        super().__init__()
        self.model, self.notes = model, notes


def _constants(model: ModelProto) -> Iterator[str]:
    """The names of the constants outside of all bodies."""
    for _, owner in scoping.owners(model):
        yield from scoping.initializer_names(owner)
        yield from (node.output[0] for node in owner.node if constant_tensor(node) is not None)
