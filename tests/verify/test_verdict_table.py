"""The verdict on a case: a row of the table for each way to end, and a test for each excuse.

Executors pretend: each test gives what the original and the rewritten model do in the reference
executor and in another one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto
from verified_models import REFERENCE, Answer, Pretend, before_and_after, model, raising

from passes.verify.compare.evidence import Question, Rules
from passes.verify.compare.table import EXCUSES, TABLE, first_verdict
from passes.verify.compare.trial import AUTHORITY, End, Ran
from passes.verify.executor import (
    CANNOT_LOAD,
    CRASHED,
    CannotRun,
    Feeds,
    ModelFailed,
    Outcome,
    TookTooLong,
)
from passes.verify.inputs.drawer import Case
from passes.verify.requirements import Requirements
from tests.verification import Verification, verify

ONE, TWO = (Ran(Outcome({"y": np.array([number])}), seconds=0.1) for number in (1, 2))
FAILS, REFUSED = Ran(failed="no"), Ran(failed="no", refused=True)
NO_KERNEL, CRASH = Ran(unable="no kernel"), Ran(unable=f"{CRASHED} (SIGSEGV)")
INVALID_MODEL, OLD = Ran(unable=f"{CANNOT_LOAD}: type"), Ran(unable=f"{CANNOT_LOAD}: opset 27")
ENDLESS = Ran(unable="took longer than 10 s", endless=True)


class TestTable:
    """The first verdict follows from how the two runs ended."""

    @pytest.mark.parametrize(
        ("before", "after", "status"),
        [
            (ONE, ONE, "compared"),
            (ONE, TWO, "mismatch"),
            (ONE, FAILS, "mismatch"),
            (ONE, NO_KERNEL, "not run"),
            (ONE, OLD, "not run"),
            (ONE, CRASH, "mismatch"),
            (ONE, INVALID_MODEL, "mismatch"),
            (ONE, ENDLESS, "mismatch"),
            (FAILS, ONE, "refined"),
            (REFUSED, ONE, "mismatch"),
            (FAILS, FAILS, "both failed"),
            (FAILS, NO_KERNEL, "not run"),
            (FAILS, ENDLESS, "not run"),
            *((NO_KERNEL, after, "not run") for after in (ONE, FAILS, NO_KERNEL, ENDLESS)),
            *((ENDLESS, after, "not run") for after in (ONE, FAILS, NO_KERNEL, ENDLESS)),
        ],
    )
    def test_in_the_reference_executor(self, before: Ran, after: Ran, status: str) -> None:
        assert self.status(AUTHORITY, before, after) == status

    def test_another_executor_may_refuse_what_is_allowed(self) -> None:
        assert self.status("other", FAILS, ONE) == "not run"
        assert self.status("other", REFUSED, ONE) == "not run"

    def test_on_invalid_inputs_an_answer_is_a_mismatch(self) -> None:
        assert self.status(AUTHORITY, FAILS, ONE, kind="invalid") == "mismatch"

    def test_an_original_that_takes_long_excuses_one_that_does_not_end(self) -> None:
        slow = Ran(ONE.outcome, seconds=5.0)
        assert self.status(AUTHORITY, slow, ENDLESS) == "not run"

    @pytest.mark.parametrize(("older", "status"), [(False, "mismatch"), (True, "not run")])
    def test_a_kernel_of_an_older_opset_may_be_missing(self, status: str, *, older: bool) -> None:
        missing = f"{CANNOT_LOAD}: Could not find an implementation for Max(6) node with name ''"
        assert self.status("other", ONE, Ran(unable=missing), older=older) == status

    def test_every_pair_of_ends_has_a_row(self) -> None:
        assert {(one, other) for one, row in TABLE.items() for other in row} == {
            (one, other) for one in End for other in End
        }

    @staticmethod
    def status(
        executor: str, before: Ran, after: Ran, kind: Any = "ordinary", *, older: bool = False
    ) -> str:
        case = Case({}, kind, True, "")
        rules = Rules(Requirements([]), newer=True, older=older)
        return first_verdict(Question(rules, executor, case, before, after)).status


IDLE_SCAN = """(float[T,2] x) => (float[T,2] y) {
    y = Scan <num_scan_inputs = 1, body = b (float[2] v) => (float[2] w) { w = Neg (v) }> (x) }"""
MISFED = """(float[W] s, int64 n) => (float[V] y) {
    y = Loop (n, "", s) <body = b (int64 i, bool go, float[3] a) => (bool on, float[3] r) {
        on = Identity (go)  r = Neg (a) }> }"""
UNDECLARED = """(float[W] s, float[4] v) => (float[4] y) <int64 once = {1}> {
    y = Loop (once, "", s) <body = b (int64 i, bool go, float[4] a) => (bool on, float[4] r) {
        on = Identity (go)  r = Identity (v) }> }"""

CANCELLED = """(float[N] x) => (float[N] y) <float large = {1000.1}> {
    s = Add (x, large)  y = Sub (s, large) }"""
NOT_ADDED = """(float[N] x) => (float[N] y) { t = Tanh (x)  n = Sub (x, t)  y = Add (n, t) }"""
WRONG_SUM = """(float[N] x) => (float[N] y) <float off = {0.01}> { y = Add (x, off) }"""


def pair_of(text: str) -> tuple[ModelProto, ModelProto]:
    """Equal models, told apart by their doc strings."""
    before, after = model(text), model(text)
    before.doc_string, after.doc_string = "before", "after"
    return before, after


def x_of(side: str, feeds: Feeds) -> Any:
    return np.asarray(feeds["x"])


def shifted(by: float, where: Callable[[Any], Any] = np.isfinite) -> Answer:
    """An executor that is off in the rewritten model."""

    def answer(side: str, feeds: Feeds) -> Any:
        x = np.asarray(feeds["x"])
        return np.where(where(x), x + np.float32(by if side == "after" else 0), x)

    return answer


def refusing(error: Exception, where: Callable[[Any], Any] = np.any) -> Answer:
    """An executor that gives no answer for the rewritten model."""

    def answer(side: str, feeds: Feeds) -> Any:
        x = np.asarray(feeds["x"])
        return raising(error) if side == "after" and bool(where(x)) else x

    return answer


def pretended(reference: Answer, other: Answer, **terms: Any) -> Verification:
    executors = [Pretend(reference), Pretend(other, "other")]
    return verify(*before_and_after(), executors=executors, **terms)


def beside_the_reference(text: str, other: Any, **terms: Any) -> Verification:
    """Both sides are one model, which the reference executor runs; another one pretends."""
    return verify(*pair_of(text), executors=[REFERENCE, other], **terms)


class Scanning(Pretend):
    """Fails on a rewritten model where x, of shape [T, 2], is empty."""

    def __init__(self, error: Exception) -> None:
        def answer(side: str, feeds: Feeds) -> Any:
            x = np.asarray(feeds["x"])
            return raising(error) if side == "after" and not x.size else -x

        super().__init__(answer, "other")


def stating(wrong: Callable[[Feeds], bool]) -> Pretend:
    """Answers for a state `s`, wrongly in the rewritten model where its inputs are such."""

    def answer(side: str, feeds: Feeds) -> Any:
        negated = np.asarray(feeds["s"]) * (-1) ** max(0, int(np.asarray(feeds.get("n", 0))))
        return np.asarray(feeds.get("v", negated)) + float(side == "after" and wrong(feeds))

    return Pretend(answer, "other")


def _is_denormal(x: Any) -> Any:
    return (x != 0) & (np.abs(x) < np.finfo(np.float32).tiny)


def nan_here(number: float) -> Answer:
    def answer(side: str, feeds: Feeds) -> Any:
        return np.array([number if side == "after" else np.nan, 1.0], np.float32)

    return answer


IDLE_CELL = """(float[T,1,2] x, float[1,3,2] w, float[1,3,3] r) => (float[1,1,3] y) {
    all, y = RNN <hidden_size = 3> (x, w, r) }"""


def garbage(*, on_nothing: bool) -> Pretend:
    """What memory held in place of the state, in each run other numbers."""
    runs = iter(range(10**6))

    def answer(side: str, feeds: Feeds) -> Any:
        if (np.size(feeds["x"]) == 0) is on_nothing and side == "after":
            return np.full((1, 1, 3), next(runs), np.float32)
        return REFERENCE.run(model(IDLE_CELL), feeds).outputs["y"]

    return Pretend(answer, "other")


#: For each excuse: a verification in which it applies, and one in which it must not.
SHOWN: dict[str, tuple[Callable[[], Verification], Callable[[], Verification]]] = {
    "nothing-scanned": (
        lambda: beside_the_reference(IDLE_SCAN, Scanning(ModelFailed("nothing")), non_empty=True),
        lambda: beside_the_reference(
            IDLE_SCAN,
            Pretend(lambda side, feeds: -x_of(side, feeds) + float(side == "after"), "other"),
            non_empty=True,
        ),
    ),
    "misfed-body": (
        lambda: beside_the_reference(
            MISFED, stating(lambda feeds: feeds["n"] <= 0 and np.size(feeds["s"]) != 3)
        ),
        lambda: beside_the_reference(MISFED, stating(lambda feeds: feeds["n"] > 0)),
    ),
    "undeclared-sizes": (
        lambda: verify(
            *pair_of(UNDECLARED),
            executors=[
                REFERENCE,
                Pretend(
                    lambda side, feeds: (
                        raising(ModelFailed("size"))
                        if side == "after" and np.size(feeds["s"]) != 4
                        else feeds["v"]
                    ),
                    "other",
                ),
            ],
        ),
        lambda: beside_the_reference(UNDECLARED, stating(lambda feeds: np.size(feeds["s"]) != 4)),
    ),
    "idle-scan": (
        lambda: beside_the_reference(IDLE_SCAN, Scanning(CannotRun(f"{CRASHED} (SIGFPE)"))),
        lambda: beside_the_reference(
            IDLE_SCAN,
            Pretend(
                lambda side, feeds: (
                    raising(CannotRun(f"{CRASHED} (SIGFPE)"))
                    if side == "after"
                    else -x_of(side, feeds)
                ),
                "other",
            ),
        ),
    ),
    "idle-cell": (
        lambda: beside_the_reference(IDLE_CELL, garbage(on_nothing=True)),
        lambda: beside_the_reference(IDLE_CELL, garbage(on_nothing=False)),
    ),
    "endless-original": (
        lambda: pretended(
            lambda side, feeds: (
                raising(TookTooLong("on and on"))
                if side == "before" and np.size(feeds["x"]) > 4
                else x_of(side, feeds)
            ),
            refusing(CannotRun(f"{CRASHED} (SIGKILL)"), lambda x: x.size > 4),
        ),
        lambda: pretended(x_of, refusing(CannotRun(f"{CRASHED} (SIGKILL)"))),
    ),
    "rounding": (
        lambda: verify(model(CANCELLED), model(NOT_ADDED), executors=[REFERENCE], exact=False),
        lambda: verify(model(CANCELLED), model(WRONG_SUM), executors=[REFERENCE], exact=False),
    ),
    "numbers-for-nan": (
        lambda: pretended(lambda *_: np.array([np.nan, 1.0], np.float32), nan_here(0.0)),
        lambda: pretended(lambda *_: np.array([2.0, 1.0], np.float32), nan_here(0.0)),
    ),
    "rounds-otherwise": (
        lambda: pretended(x_of, shifted(1e-7)),
        lambda: pretended(x_of, shifted(1e-1)),
    ),
    "original-fails": (
        lambda: pretended(
            lambda side, feeds: (
                raising(ModelFailed("both")) if np.size(feeds["x"]) > 4 else x_of(side, feeds)
            ),
            refusing(ModelFailed("no"), lambda x: x.size > 4),
        ),
        lambda: pretended(
            lambda side, feeds: (
                raising(ModelFailed("both")) if np.size(feeds["x"]) > 4 else x_of(side, feeds)
            ),
            refusing(CannotRun(f"{CRASHED} (SIGSEGV)"), lambda x: x.size > 4),
        ),
    ),
    "own-fault": (
        lambda: pretended(
            x_of, lambda side, feeds: np.asarray(feeds["x"]) + float(side == "before")
        ),
        lambda: pretended(
            x_of,
            lambda side, feeds: np.asarray(feeds["x"]) + (1.0 if side == "before" else 2.0),
        ),
    ),
    "special-values": (
        lambda: pretended(x_of, shifted(1.0, _is_denormal)),
        lambda: pretended(x_of, shifted(1.0, lambda x: x == 1.0)),
    ),
}


@pytest.mark.parametrize("name", SHOWN)
def test_an_excuse_applies_to_its_case_alone(name: str) -> None:
    excused, not_excused = (ask() for ask in SHOWN[name])
    assert name in excused.excuses
    assert excused.verdict != "mismatch", excused.reason
    assert not_excused.verdict == "mismatch"


def test_every_excuse_is_shown_in_its_order() -> None:
    assert list(SHOWN) == [excuse.name for excuse in EXCUSES]


def test_every_excuse_names_its_limit_and_traps_that_are_documented() -> None:
    traps = (Path(__file__).parents[2] / "docs/onnxruntime.md").read_text()
    for excuse in EXCUSES:
        document = excuse.ask.__doc__ or ""
        assert "Never: " in document, excuse.name
        for line in document.splitlines():
            _, found, trap = line.partition("Trap: ")
            assert not found or trap in traps, trap
