"""What a user promised of the inputs, and how a broken promise differs from a wrong rewrite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from onnx import ModelProto

from passes.verify.compare.trial import Judge, Side, Trial, try_case
from passes.verify.executor import Executor
from passes.verify.inputs.draw import Case

#: What the books say of a case in which the promise is broken and the rewritten model fails.
KEPT_FROM_ANSWERING = "gives no answer where the promise is broken, or the original fails"


@dataclass(frozen=True)
class Promise:
    """What a user promised, as originals (`models`) that fail where it is broken.

    There the rewritten model may fail too, or say so in the output `check`, a bool; where the
    inputs are assumed to be valid (`silent`) it may answer anything. It may never fail elsewhere.
    """

    models: Sequence[ModelProto]
    check: str = ""
    silent: bool = False


class Trier:
    """Tries cases in the light of a promise, if there is one."""

    def __init__(
        self,
        promise: Promise | None,
        executors: Sequence[Executor],
        base_dir: Path | None,
        timeout: float,
        judge: Judge,
    ) -> None:
        models = promise.models if promise and executors else ()
        self._kept = [Side(executors[0], model, base_dir, timeout) for model in models]
        self._silent = promise is not None and promise.silent
        self._judge = judge

    def try_case(
        self,
        case: Case,
        before: Side,
        after: Side,
        deadline: float,
        *,
        after_alone: bool,
        like: str,
    ) -> Trial:
        """Run a case on both sides. Raises OutOfTime.

        Where the promise is broken the original may run forever: there it runs only if the
        rewritten model answers.
        """
        if self._broken(case, deadline):
            ran = after.run(case.feeds, deadline)
            if ran.failed or self._silent:
                return Trial("both failed", KEPT_FROM_ANSWERING, after=ran)
        return try_case(
            case, before, after, self._judge, deadline, after_alone=after_alone, like=like
        )

    def _broken(self, case: Case, deadline: float) -> bool:
        return any(side.run(case.feeds, deadline).failed for side in self._kept)
