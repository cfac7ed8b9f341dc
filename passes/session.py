"""The way of a model through commands: load, bind, rewrite, check, prove, verify, leave out and
again, save."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from onnx import ModelProto

from passes.binding.bound import Bound
from passes.check import Survey, check, load_checked
from passes.choices import Proving, RuleOptions, Signature, Verifying
from passes.engine.outcome import LeaveOut, LeftOut, Outcome, Pass
from passes.errors import NotProduced, WrongUsage
from passes.ir.kinds import Foreign, Unnamed, given
from passes.ir.model import Model
from passes.ir.protos import collector_held_back
from passes.ir.save import save
from passes.proving.asked import Proofs
from passes.reports.report import Report, Spent

if TYPE_CHECKING:
    from passes.commands.options import Options
    from passes.verify.rewrites.verifying import KnownVerifications

_T = TypeVar("_T")


@dataclass(frozen=True)
class Result:
    """A model that was rewritten and verified, and what was done to it. Its external data, if there
    is any, is in `base_dir`: in a folder that is removed with this path if a model of another
    package with large weights was taken."""

    model: ModelProto
    report: Report
    base_dir: Path | None = None

    def to(self, kind: type[_T]) -> _T:
        """The model as `onnx.ModelProto` or `bytes`, with its external data; or, with the weights
        that were given, as `onnx_ir.Model`, `onnx_graphsurgeon.Graph` or `torch.onnx.ONNXProgram`.

        Raises:
            TypeError: `kind` is another class.
            BadModel: it is too large for bytes, or has what the other package has not.
        """
        made: _T = given(self.model, kind, self.base_dir)
        return made

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the model, in the format that the suffix names, wholly or not at all, with its
        external data beside it.

        Raises:
            CannotSave: there is a file and `force` is off, or the folder or disk refuses.
        """
        save(self.model, Path(path), base_dir=self.base_dir, force=force)
        return Path(path)


#: What is taken for a model: a path, the bytes of a file, a proto, a model of another package, or
#: what a command made.
Source = ModelProto | bytes | str | os.PathLike[str] | Foreign | Result


def loaded(source: Source | Model) -> tuple[Model, Survey]:
    """A valid model, and what was found in it.

    Raises:
        TypeError: it is no model; the sentence lists what is.
        BadModel: it cannot be read, or is invalid.
    """
    if not isinstance(source, Result):
        return load_checked(source)
    path = None if source.base_dir is None else Unnamed.of(source.base_dir)
    return load_checked(Model(source.model, path))


class CannotProve(WrongUsage):
    """A proof is asked for, and the outcome is not to be equal to the model."""


@dataclass(frozen=True)
class Session:
    """Passes over one model, each on the outcome of the one before; the last outcome is verified
    against the model, and each rewrite in its region. A cast is judged against what it was given,
    and the passes after it are verified against its outcome.

    `verifying`: how, None if it is not; `proving`: how to prove the outcome, if that is asked for,
    once for each command that asks. `dims`, and what any of the passes binds, are bound from the
    start; `lenient`: of `dims` those that the model has.
    """

    passes: Sequence[Pass]
    verifying: Verifying | None = field(default_factory=Verifying)
    proving: Sequence[Proving] = ()
    say: Callable[[str], None] = lambda what: None
    dims: Mapping[str, int | str] = field(default_factory=dict)
    lenient: bool = False

    @classmethod
    def of(
        cls,
        commands: Sequence[Options],
        dims: Mapping[str, int | str] | None = None,
        *,
        lenient: bool = False,
    ) -> Session:
        """The session of commands. The first one specifies how to verify, and whom to tell of
        progress.

        Raises:
            UnknownRelease: one is for a release of onnxruntime that is not known.
            CannotProve: a proof is asked for, and one of them casts.
        """
        first = commands[0]
        passes = []
        for one in commands:
            target, release = one.asked()
            passes.append(Pass(one.schedule, target, one.for_rules(), release))
        proving = [asked for one in commands if (asked := one.proving()) is not None]
        if proving and any(one.casts for one in passes):
            raise CannotProve("a cast changes what the model computes, so that nothing is proven")
        say = first.progress or (lambda what: None)
        return cls(passes, first.verifying(), proving, say, dims or {}, lenient)

    def run(self, source: Source) -> Result:
        """Take a model through all passes; `source` is never changed.

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
        started = time.monotonic()
        for one in self.passes:
            one.check()
        self.say("loading")
        with self._undisturbed():
            model, survey = loaded(source)
        options = [one.options for one in self.passes]
        results: list[Result] = []
        for part in self._parts():
            if results:
                model = Model(results[-1].model, model.path)
                survey, options, started = check(model), [], time.monotonic()
            done = [one.report for one in results]
            try:
                results.append(part._run(model, survey, options, started))
            except NotProduced as error:
                error.report = Report.joined([*done, error.report])
                raise
        return replace(results[-1], report=Report.joined([one.report for one in results]))

    def _parts(self) -> Iterator[Session]:
        """Sessions that run one after the other: each but the last one ends with a cast. The first
        one binds inputs; those that are given have the types that they have before a cast."""
        part, passes = self, list[Pass]()
        for number, one in enumerate(self.passes, 1):
            passes.append(one)
            if one.casts or number == len(self.passes):
                yield replace(part, passes=passes)
                part, passes = replace(part, dims={}), []
                retyping = one.options.retyping
                if part.verifying and retyping and retyping.io == Signature.cast:
                    part = replace(part, verifying=replace(part.verifying, inputs=None))

    def _run(
        self, original: Model, survey: Survey, options: Sequence[RuleOptions], started: float
    ) -> Result:
        """Take a model through passes of which only the last one may cast; `options` are those that
        bind its inputs. Raises what `run` raises."""
        first = self.passes[0]
        proofs = Proofs(self.proving, [one.options for one in self.passes])
        with self._undisturbed():
            first.accept(original)
            bound = Bound.of(original, options, self.dims, lenient=self.lenient)
            proofs.refuse_to_certify(bound=bool(bound.binding))
            if bound.objection:
                raise self._unfit(bound)
        left_out: LeftOut = {}
        known: KnownVerifications = {}
        loading = _since(started)
        while True:
            with self._undisturbed(), _telling(bound):
                before, model, found, outcomes = original, bound.model, survey, list[Outcome]()
                for one in self.passes:
                    if outcomes:  # on the outcome of the pass before
                        if outcomes[-1].proto is not model.proto:
                            model = Model(outcomes[-1].proto, original.path)
                            found = check(model)
                        one.accept(model)
                        before = model
                    self.say("rewriting")
                    outcomes.append(one.outcome(before, model, found, left_out))
                made = Outcome.joined(outcomes)
                equal, given = bound.sized(made.equal)
                proto = equal if made.proto is made.equal else bound.sized(made.proto)[0]
            spent = Spent(loading, round(_since(started) - loading, 3), made.seconds)
            report = replace(made.report, bound=bound.described(given), spent=spent)
            if proto is original.proto:
                return Result(proto, report, original.base_dir)
            began = time.monotonic()
            attempt = proofs.attempt(given, equal, self.say)
            if attempt is not None:
                spent = replace(spent, proving=_since(began))
                report = replace(report, proof=attempt.proof, spent=spent)
            if self.verifying is not None:
                from passes.verify.rewrites.judged import judged_cast, verified

                sought = proofs.cases(given, attempt, self.verifying.seed)
                how, last = self.verifying, self.passes[-1].options
                try:
                    if equal is not original.proto:
                        made = replace(made, proto=equal, report=report)
                        report = verified(
                            given, made, self.passes, how, sought, bound, known, self.say
                        )
                    if proto is not equal:
                        self.say("executing before and after the cast")
                        uncast, cast = (Model(one, original.path) for one in (equal, proto))
                        last = replace(last, left_out=left_out)
                        report = judged_cast(uncast, cast, report, last, how)
                except LeaveOut as more:
                    left_out = {**left_out, **more.sites}
                    continue
            proofs.require(report)
            proofs.certify(given, proto, attempt)
            return Result(proto, report, original.base_dir)

    def _undisturbed(self) -> AbstractContextManager[None]:
        """The garbage collector held back where all that is made is kept."""
        converts = self.passes[0].schedule.converts
        return collector_held_back() if converts else nullcontext()

    def _unfit(self, bound: Bound) -> NotProduced:
        """The error of a model that is invalid only since it was bound."""
        opset = bound.model.opset()
        report = self.passes[0].unchanged(bound.model, (opset, opset))
        return NotProduced.since(bound.objection, replace(report, bound=bound.described()))


@contextmanager
def _telling(bound: Bound) -> Iterator[None]:
    """Let the report of a refusal describe how the inputs of the model are bound."""
    try:
        yield
    except NotProduced as error:
        error.report = replace(error.report, bound=bound.described())
        raise


def _since(started: float) -> float:
    """The seconds since a time."""
    return round(time.monotonic() - started, 3)
