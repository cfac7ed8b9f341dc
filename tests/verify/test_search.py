"""A case is changed until a run reaches what is wanted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from verified_models import model

from passes.verify.executor import Outcome
from passes.verify.inputs.drawer import Case
from passes.verify.inputs.search import Enough, Events, Goal, Move, Search, sought

BASE = Case({"n": np.array(0.0)}, "ordinary", True, "base")
SQUARE = model("(double n) => (double y) { y = Mul(n, n) }")
PICKED = model("""(double[3] x, int64 n) => (double y) {
    y = Gather(x, n) }""")


def result(outcome: Outcome) -> Events:
    return frozenset({int(np.asarray(outcome.outputs["y"]))})


def numbers(*places: float) -> Goal:
    """The numbers 9 and 16 are wanted, by setting n."""

    def moves(base: Case) -> Iterator[Move]:
        yield Move("n turned", lambda number: {"n": np.array(float(number))}, places)

    return Goal((moves,), result, frozenset({9, 16}))


def found(goal: Goal, *bases: Case) -> dict[str, float]:
    pairs = sought(goal, SQUARE, bases or [BASE], seconds=10, base_dir=None)
    return {str(*events): float(np.asarray(case.feeds["n"])) for case, events in pairs}


def test_what_is_wanted_is_found_between_the_numbers_of_a_move() -> None:
    assert found(numbers(0, 8)) == {"16": 4.0, "9": 3.0}
    assert found(numbers(0, -8)) == {"16": -4.0, "9": -3.0}


def test_what_is_wanted_and_lies_beyond_is_not_found() -> None:
    assert found(numbers(0, 2)) == {}


def test_a_changed_case_is_an_edge_and_an_unchanged_one_stays() -> None:
    three = Case({"n": np.array(3.0)}, "ordinary", True, "three")
    cases = [case for case, _ in sought(numbers(4), SQUARE, [three], seconds=10, base_dir=None)]
    told = [(case.label, case.kind, case.exact) for case in cases]
    assert told == [("three", "ordinary", True), ("n turned", "edge", False)]


def test_cases_on_which_the_model_fails_are_not_changed_if_others_are_at_hand() -> None:
    x = np.array([1.0, 2.0, 3.0])
    fits, fails = (Case({"x": x, "n": np.array(n)}, "ordinary", True, "") for n in (0, 7))
    changed: list[Case] = []

    def moves(base: Case) -> Iterator[Move]:
        changed.append(base)
        yield Move("", lambda _: {"n": np.array(1)})

    sought(Goal((moves,), result), PICKED, [fails, fits], seconds=10, base_dir=None)
    sought(Goal((moves,), result), PICKED, [fails], seconds=10, base_dir=None)
    assert changed == [fits, fails]


def test_every_run_counts_without_events_and_no_more_than_most_are_made() -> None:
    def moves(base: Case) -> Iterator[Move]:
        yield Move("turned", lambda number: {"n": np.array(number)}, range(5))

    taken: list[Case] = []
    search = Search(
        Goal((moves,), most=3), lambda case: Outcome({}), set(), lambda case, _: taken.append(case)
    )
    with pytest.raises(Enough):
        search.change([BASE])
    assert [float(np.asarray(case.feeds["n"])) for case in taken] == [0, 1, 2]
