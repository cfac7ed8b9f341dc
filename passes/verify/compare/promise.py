"""A user's promise about the inputs, and the test that tells a broken one from a wrong rewrite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from onnx import ModelProto

from passes.verify.compare.compare import NOTHING, compare
from passes.verify.compare.table import Question, Rules, first_verdict
from passes.verify.compare.trial import Side, Trial
from passes.verify.executor import Executor
from passes.verify.inputs.draw import Case

#: The verdict on a case in which the promise is broken and the rewritten model fails.
KEPT_FROM_ANSWERING = "gives no answer where the promise is broken, or the original fails"


@dataclass(frozen=True)
class Promise:
    """A user's promise, as originals (`models`) that fail if it is broken.

    There the rewritten model may fail too, or report it in the output `check`, a bool; if the
    inputs are assumed to be valid (`silent`) it may answer anything. It may never fail elsewhere.
    """

    models: Sequence[ModelProto]
    check: str = ""
    silent: bool = False


@dataclass(frozen=True)
class Trier:
    """Runs cases on both sides, in the light of a promise, if there is one."""

    rules: Rules
    kept: Sequence[Side] = ()
    silent: bool = False

    @staticmethod
    def of(
        rules: Rules, promise: Promise | None, executors: Sequence[Executor], base_dir: Path | None
    ) -> Trier:
        """The trier for a promise; the first executor runs its models."""
        models = promise.models if promise and executors else ()
        kept = [Side(executors[0], model, base_dir, rules.case_timeout) for model in models]
        return Trier(rules, kept, promise is not None and promise.silent)

    def try_case(
        self,
        case: Case,
        sides: tuple[Side, Side],
        deadline: float,
        *,
        after_alone: bool = False,
        like: str = "",
    ) -> Trial:
        """Run a case on both sides. Raises OutOfTime.

        Where the promise is broken the original may run forever: there it runs only if the
        rewritten model answers. Where the executor cannot run the original, it runs the rewritten
        model only if that is of use (`after_alone`). A side that crashes on inputs `like` these is
        spared, the rewritten model only where the original does not run. A mismatch counts only
        where the original agrees with itself when it runs again.
        """
        before, after = sides
        if any(side.run(case.feeds, deadline).failed for side in self.kept):
            ran = after.run(case.feeds, deadline)
            if ran.failed or self.silent:
                return Trial("both failed", KEPT_FROM_ANSWERING, after=ran)
        original = before.run(case.feeds, deadline, like)
        if original.unable and not after_alone:
            return Trial("not run", f"the original: {original.unable}", before=original)
        rewritten = after.run(case.feeds, deadline, "" if original.outcome is not None else like)
        question = Question(self.rules, before.executor.name, case, original, rewritten)
        trial = first_verdict(question)
        if trial.status == "mismatch" and original.outcome is not None and rewritten.outcome:
            again = before.run(case.feeds, deadline)
            if again.outcome is None or not compare(original.outcome, again.outcome).agree:
                why = "the original gives different answers on the same inputs"
                return replace(trial, status="not run", sentence=why, comparison=NOTHING)
        return trial
