"""Commands one after the other on one model, which is verified once: load, rewrite, verify."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from onnx import ModelProto

from passes.binding.dims import dims_of_inputs
from passes.binding.inputs import Binding, as_given, with_sizes
from passes.check import Survey, check
from passes.choices import CERTIFICATE, Proving, Verifying
from passes.collector import collector_held_back
from passes.engine.full_check import full_objection
from passes.engine.rounds import Rewritten
from passes.engine.target_opset import loadable
from passes.errors import DoesNotFit
from passes.ir.model import Model
from passes.ir.protos import set_metadata
from passes.not_produced import Mismatch, NotProduced, NotVerified
from passes.reports.report import INVALID, NOT_VERIFIED, Checked, Report, Spent
from passes.session import Outcome, Result, Session, Source, failed
from passes.types.signature import describe
from passes.types.signature import inputs as signature_inputs

if TYPE_CHECKING:
    from passes.proving.prover import Attempt
    from passes.verify.rewrites.verifying import KnownVerifications


class CannotCertify(DoesNotFit):
    """The proof would rest on promises, or would not be one of the model that was given."""


class _LeaveOut(Exception):
    """Optional rewrites to be left out, by the number of their session, rule and path."""

    def __init__(self, sites: Mapping[tuple[int, str, str], tuple[str, str]]) -> None:
        super().__init__()
        self.sites = sites


@dataclass(frozen=True)
class Chain:
    """Sessions, each on the outcome of the one before. How to verify, and whom to tell of progress,
    is that of the first; `dims`, and what any of them binds, are bound from the
    start; `lenient`: of `dims` those that the model has."""

    sessions: Sequence[Session]
    dims: Mapping[str, int | str] = field(default_factory=dict)
    lenient: bool = False

    def run(self, source: Source) -> Result:
        """Take a model through all of them, and compare the last outcome with it, and each rewrite
        in its region; `source` is never changed.

        Raises:
            BadModel: the input is no valid model.
            UnknownRule: a rule was named that there is not, or skipped that would not run.
            NothingMatches: a pattern of `only` matches no node.
            UnknownDim: a dim is to be fixed that no input has.
            UnknownInput: an input is to be bound that there is not.
            CannotBind: an input is to be bound to what it cannot be.
            UnknownFunction: a function is to be inlined that the model does not have.
            NameTaken: the output that is to be added has the name of another value.
            NotProduced: the model is newer than the target, a rule that the result depends on
                refused, a proof is required and there is none, or one that is to be certified
                needs its searches.
            NotVerified: no case of a rewrite could be compared.
            Mismatch: a rewrite disagrees with the original.
            CannotCertify: a certificate is to be made, and something is promised, or inputs are
                bound.
            NoRuntime: the runtime that is to execute the outcome, too, is not installed.
        """
        first = self.sessions[0]
        started = time.monotonic()
        with self._undisturbed():
            original, found = first.loaded(source)
            binding = self._binding(original)
            self._refuse_to_certify(binding)
            model = binding.of(original) if binding else original
            self._refuse_unfit(original, model, binding)
        given = fed = as_given(original, model) if binding else original
        left_out: dict[tuple[int, str, str], tuple[str, str]] = {}
        known: KnownVerifications = {}
        loaded = time.monotonic()
        while True:
            with self._undisturbed():
                try:
                    outcomes = self._outcomes(original, model, found, left_out)
                except NotProduced as error:
                    bound = tuple(binding.described(original, given))
                    error.report = replace(error.report, bound=bound)
                    raise
                if binding:
                    proto, fed = with_sizes(outcomes[-1].proto, given)
                    outcomes[-1] = replace(outcomes[-1], proto=proto)
            report, proto = _joined(outcomes), outcomes[-1].proto
            spent = _spent(outcomes, started, loaded)
            report = replace(report, bound=tuple(binding.described(original, fed)), spent=spent)
            if proto is original.proto:
                return Result(proto, report, model.base_dir)
            attempt = self._attempt(fed, proto)
            if attempt is not None:
                report = replace(report, proof=attempt.proof)
            try:
                if first.verifying is not None:
                    report = self._verified(
                        fed, outcomes, report, first.verifying, known, binding, attempt
                    )
            except _LeaveOut as more:
                left_out = {**left_out, **more.sites}
                continue
            self._require_proof(report)
            self._certify(fed, proto, attempt, report)
            return Result(proto, report, model.base_dir)

    def _undisturbed(self) -> AbstractContextManager[None]:
        """The garbage collector held back where all that is made is kept."""
        return collector_held_back() if self.sessions[0].converts else nullcontext()

    def _binding(self, model: Model) -> Binding:
        """Return the facts given about the inputs of a model.

        Raises:
            CannotBind: two sessions contradict one another.
        """
        known, dims = dims_of_inputs(model), self.dims
        if self.lenient:
            dims = {
                name: size
                for name, size in dims.items()
                if name in known and (isinstance(size, int) or size in known)
            }
        binding = Binding(dims)
        for session in self.sessions:
            own = session.options
            binding = binding.and_(Binding(own.dims, own.shapes, own.values))
        return binding

    def _refuse_unfit(self, original: Model, bound: Model, binding: Binding) -> None:
        """Raise NotProduced if a model is invalid only since it was bound."""
        sentence = full_objection(bound) if binding else ""
        if sentence and not full_objection(original):
            report = self.sessions[0].unchanged(bound, (bound.opset(), bound.opset()))
            given = as_given(original, bound)
            report = replace(report, bound=tuple(binding.described(original, given)))
            raise failed(f"with {binding} the model is invalid: {sentence}", report)

    def _outcomes(
        self,
        original: Model,
        model: Model,
        found: Survey,
        left_out: Mapping[tuple[int, str, str], tuple[str, str]],
    ) -> list[Outcome]:
        """Return the outcome of each session, each made from the one before."""
        outcomes: list[Outcome] = []
        for number, session in enumerate(self.sessions):
            if outcomes and outcomes[-1].proto is not model.proto:
                model = Model(outcomes[-1].proto, original.path)
                found = check(model)
            if outcomes:
                session.accept(model)
                original = model
            own = {(rule, path): why for (at, rule, path), why in left_out.items() if at == number}
            target = loadable(original, session.target, session.release)
            outcomes.append(replace(session, target=target).outcome(original, model, found, own))
        return outcomes

    def _attempt(self, model: Model, proto: ModelProto) -> Attempt | None:
        """Return what the proof of the outcome found, with what the commands promise; None if none
        of them asks for a proof."""
        asked = [session.proving for session in self.sessions if session.proving is not None]
        if not asked:
            return None
        from passes.proving.drawn.proving import at_sizes
        from passes.proving.promises import Promises
        from passes.proving.prover import attempt

        self.sessions[0].say("proving")
        budget = max(proving.budget for proving in asked)
        promises = Promises.of([session.options for session in self.sessions])
        new = Model(proto, model.path)
        found = attempt(model, new, budget, promises)
        return replace(found, proof=at_sizes(model, new, found.proof, budget, promises))

    def _require_proof(self, report: Report) -> None:
        """Raise NotProduced if a proof is required and there is none."""
        asked = [session.proving for session in self.sessions if session.proving is not None]
        proof = report.proof
        if proof is not None and not all(one.accepts(proof.kind) for one in asked):
            raise failed(f"the outcome is {'only ' * proof.is_proven}{proof.line}", report)

    @property
    def _certifying(self) -> list[Proving]:
        """How to prove what is to be certified; empty if nothing is."""
        return [one.proving for one in self.sessions if one.proving and one.proving.certified]

    def _refuse_to_certify(self, binding: Binding) -> None:
        """Raise CannotCertify if a certificate is wanted that would rest on promises."""
        if not self._certifying:
            return
        from passes.proving.promises import Promises

        promises = replace(Promises.of([one.options for one in self.sessions]), given=())
        under = [one.partition(": ")[0] for one in promises.sentences()]
        under += ["bound inputs"] if binding else []
        if under:
            raise CannotCertify(f"--certify: a proof with {' and '.join(under)} has no certificate")

    def _certify(
        self, model: Model, proto: ModelProto, attempt: Attempt | None, report: Report
    ) -> None:
        """Put the certificate of a proof into the outcome if a command asks for it, in place of one
        that the model had.

        Raises:
            NotProduced: the proof needs its searches.
        """
        made = None
        if self._certifying and attempt is not None and attempt.proof.is_proven:
            from passes.proving.certificates.certificate import Certificate
            from passes.proving.certificates.guide import DoesNotHold

            budget = max(one.budget for one in self._certifying)
            after = Model(proto, model.path)
            try:
                certificate = Certificate.of(model, after, attempt.proof, attempt.choices, budget)
            except DoesNotHold as error:
                raise failed(f"{error}", report) from error
            made = certificate.to_json()
        set_metadata(proto, CERTIFICATE, made)

    def _verified(
        self,
        model: Model,
        outcomes: Sequence[Outcome],
        report: Report,
        verifying: Verifying,
        known: KnownVerifications,
        binding: Binding,
        attempt: Attempt | None,
    ) -> Report:
        from passes.verify.rewrites.verifying import verify_rounds

        started = time.monotonic()
        last = self.sessions[-1]
        self.sessions[0].say("verifying")
        assume = dict.fromkeys(one for session in self.sessions for one in session.options.assume)
        verifying = replace(verifying, assume=tuple(assume) or verifying.assume)
        check = next(filter(None, (one.options.check_output for one in self.sessions)), "")
        rounds = [round_ for outcome in outcomes for round_ in outcome.rounds]
        proto = outcomes[-1].proto
        say = self.sessions[0].say
        sought = []
        if attempt is not None:
            from passes.proving.draws import cases_of

            sought = cases_of(model.proto, attempt.clues, verifying.seed)
        verdicts = verify_rounds(
            model, rounds, proto, verifying, say, check, known=known, sought=sought
        )
        checked = iter(verdicts.rewrites)
        records = [
            replace(one, checked=next(checked)) if one.outcome == "rewritten" else one
            for one in report.records
        ]
        spent = replace(report.spent, verifying=round(time.monotonic() - started, 3))
        report = replace(report, records=records, checked=verdicts.whole, spent=spent)
        if verdicts.mismatch is not None:
            raise Mismatch(verdicts.mismatch, report)
        unverified = verdicts.unverified
        if binding and verdicts.whole and verdicts.whole.verdict != "verified":
            unverified = [*unverified, (None, verdicts.whole)]  # sizes were fixed everywhere
        if unverified and not verifying.allow_unverified:
            optional = [
                (rewritten, checked)
                for rewritten, checked in unverified
                if rewritten and rewritten.rule.optional
            ]
            ways = _ways(model, hurried=verdicts.hurried)
            if verdicts.hurried or len(optional) < len(unverified):
                raise NotVerified(_not_verified(unverified, ways, binding), report)
            sentence = "no case could be compared"
            raise _LeaveOut(
                {
                    _site_of(one, outcomes): (NOT_VERIFIED, f"{sentence}, {checked.reason}; {ways}")
                    for one, checked in optional
                }
            )
        if verdicts.there is not None and not verdicts.there.agrees:
            raise failed(f"the outcome {verdicts.there}", report)
        if verdicts.unloadable is None:
            return report
        version, sentence, blame = verdicts.unloadable
        if verdicts.stopped or not _may_be_for_another(last, version):
            if blame:
                raise _LeaveOut({_site_of(one, outcomes): (INVALID, sentence) for one, _ in blame})
            hint = "" if last.target else "; --opset and --for choose another opset"
            raise failed(sentence + hint, report)
        return replace(report, warnings=(sentence,))


def _spent(outcomes: Sequence[Outcome], started: float, loaded: float) -> Spent:
    """The seconds up to now of a run that `started`, and had its model `loaded`, at these times."""
    rules: Counter[str] = Counter()
    for round_ in (one for outcome in outcomes for one in outcome.rounds):
        rules.update(round_.seconds)
    known = {name: round(seconds, 3) for name, seconds in rules.most_common()}
    now = time.monotonic()
    return Spent(round(loaded - started, 3), round(now - loaded, 3), known)


def _may_be_for_another(session: Session, version: str) -> bool:
    """Return whether the outcome may be for another onnxruntime than the installed one."""
    if session.release is not None:
        return not session.release.includes(version)
    return session.target is not None


def _site_of(rewritten: Rewritten, outcomes: Sequence[Outcome]) -> tuple[int, str, str]:
    """The number of the session that made a rewrite, the rule and the path."""
    return next(
        (number, *rewritten.site)
        for number, outcome in enumerate(outcomes)
        if any(rewritten is one for round_ in outcome.rounds for one in round_.rewritten)
    )


def _joined(outcomes: Sequence[Outcome]) -> Report:
    """One report of all of them."""
    first, last = outcomes[0].report, outcomes[-1].report
    if len(outcomes) == 1:
        return first
    reports = [outcome.report for outcome in outcomes]
    chosen = [versions for one in reports for versions in [one.ir_versions] if any(versions)]
    return replace(
        first,
        command=", ".join(one.command for one in reports),
        opsets=(first.opsets[0], last.opsets[1]),
        sizes=(first.sizes[0], last.sizes[1]),
        records=[record for one in reports for record in one.records],
        notes=[note for one in reports for note in one.notes],
        ir_versions=(chosen[0][0], chosen[-1][1]) if chosen else (0, 0),
    )


def _not_verified(
    unverified: Sequence[tuple[Rewritten | None, Checked]], ways: str, binding: Binding
) -> str:
    rewritten, checked = unverified[0]
    path = rewritten.place.path if rewritten else "main"
    more = f" (and {len(unverified) - 1} more)" if len(unverified) > 1 else ""
    return (
        f"{path}: {f'with {binding} ' if binding else ''}no case could be compared, "
        f"{checked.reason}{more} [not-verified]; {ways}, "
        "--allow-unverified writes the model all the same"
    )


def _ways(model: Model, *, hurried: bool) -> str:
    """Return the options with which a user can make models comparable that were not."""
    if hurried:
        return "--verify-budget gives more time"
    inputs = ", ".join(describe(value) for value in signature_inputs(model.proto.graph))
    return f"--inputs gives what the model takes ({inputs})" if inputs else "it has no inputs"
