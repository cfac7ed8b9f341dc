"""recognize-cell makes of what expand-cell writes the operator that it was."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

import passes
from passes.session import Result
from passes.testing import as_model
from passes.writing.spelling import Array
from tests.rules.expand_cell.test_expand_cell import (
    ACTIVATIONS,
    COMBINATIONS,
    FORMS,
    LSTM,
    OPTIONAL,
    Combination,
    Executors,
    assert_near,
    cell_with,
    feeds_of,
    model_of,
    operators,
)
from tests.rules.in_both_executors import both_executors, tensors
from tests.written import changed

PAGE = Path(__file__).parents[3] / "docs" / "cells.md"
#: `reroll` finds a loop only from some steps on.
FIVE_STEPS = {"[3,2,3] x": "[5,2,3] x", "[3,1,2,4] y": "[5,1,2,4] y", "[3,2,2,4] y": "[5,2,2,4] y"}
FIVE_STEPS |= {"[2,3,3] x": "[2,5,3] x", "[2,3,1,4] y": "[2,5,1,4] y", "[2,3,2,4] y": "[2,5,2,4] y"}


@pytest.fixture(name="executors", scope="module")
def _executors() -> Executors:
    return both_executors()


def back(text: str, form: str, values: Mapping[str, Array]) -> Result:
    """The outcome of `expand`, then `recognize-cell`, by way of `raise` or `reroll`."""
    model = passes.expand(as_model(text), form=form, values=values, verify=False).model
    if form == "loop":
        model = passes.raise_(model, verify=False).model
    if form == "written-out":
        model = passes.reroll(model, verify=False).model
    return passes.simplify(model, rules=["recognize-cell"], verify=False)


def tried(form: str) -> list[Combination]:
    """The combinations that are expanded in a form: all as a Scan; else half of them, in which any
    four of the attributes and optional inputs are chosen in every way."""
    return [one for one in COMBINATIONS if form == "scan" or len(one[2]) % 2 == 0]


@pytest.mark.sampled(301)  # of each form some
@pytest.mark.parametrize(
    ("operator", "direction", "on", "form"),
    [(*combination, form) for form in FORMS for combination in tried(form)],
)
def test_the_operator_comes_back(
    executors: Executors,
    operator: str,
    direction: str,
    on: tuple[str, ...],
    form: str,
) -> None:
    """With constant weights, and with weights that are inputs."""
    text = cell_with(operator, direction, on)
    if form == "written-out":
        text = changed(text, {old: new for old, new in FIVE_STEPS.items() if old in text})
    feeds = feeds_of(as_model(text))
    weights = {name: value for name, value in feeds.items() if name in "wrbp"}
    for fixed in (weights, {}):
        assert_operator(executors, operator, text, back(text, form, fixed), feeds, fixed)


def assert_operator(
    executors: Executors,
    operator: str,
    text: str,
    result: Result,
    feeds: Mapping[str, Array],
    fixed: Mapping[str, Array],
) -> None:
    """The loop is gone, and the operator gives what it gave, with some inputs fixed."""
    kinds = operators(result.model)
    assert operator in kinds
    assert {"Scan", "Loop"}.isdisjoint(kinds), result.report.refusals
    left = {name: value for name, value in feeds.items() if name not in fixed}
    expected = tensors(executors[0], as_model(text), feeds)
    for executor in executors:
        assert_near(tensors(executor, result.model, left), expected)


BOTH_WAYS = [one for one in COMBINATIONS if one[1] == "bidirectional"]


@pytest.mark.sampled(50)
@pytest.mark.parametrize(("operator", "direction", "on"), BOTH_WAYS)
def test_both_directions_come_back_as_two_operators(
    executors: Executors, operator: str, direction: str, on: tuple[str, ...]
) -> None:
    """With weights that are inputs, of which each direction reads its part."""
    text = cell_with(operator, direction, on)
    feeds = feeds_of(as_model(text))
    result = back(text, "scan", {})
    assert_operator(executors, operator, text, result, feeds, {})
    assert operators(result.model).count(operator) == 2


#: Functions of the documents that recognize-cell leaves in the loop.
NOT_BACK = {"Affine", "ScaledTanh", "Softplus"}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_come_back(executors: Executors, name: str) -> None:
    given = f"""hidden_size = 4, activations = ["{name}", "{name}", "Tanh"],
        activation_alpha = [0.75, 0.5], activation_beta = [0.125, 0.5]"""
    text = model_of(LSTM, {"hidden_size = 4": given})
    result = back(text, "scan", {})
    if name in NOT_BACK:
        assert {refusal.code for refusal in result.report.refusals} == {"not-a-cell"}
        return
    assert_operator(executors, "LSTM", text, result, feeds_of(as_model(text)), {})


def table() -> str:
    """The table of the page: how many combinations come back."""
    lines = ["| operator | written as | combinations that come back |", "|" + "---|" * 3]
    counts = Counter((operator, form) for form in FORMS for operator, _, _ in tried(form))
    for operator, form in itertools.product(OPTIONAL, FORMS):
        count = counts[operator, form]
        lines.append(f"| {operator} | {form} | {count} of {count} |")
    return "\n".join(lines) + "\n"


def test_the_page_has_the_table(request: pytest.FixtureRequest) -> None:
    begin, end = "<!-- expanded cells -->\n", "<!-- end -->\n"
    head, rest = PAGE.read_text().split(begin)
    written, tail = rest.split(end)
    if request.config.getoption("--update-golden"):
        PAGE.write_text("".join((head, begin, table(), end, tail)))
    else:
        assert written == table()
