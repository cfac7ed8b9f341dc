"""Comparisons, and functions of numpy, mean what onnx's own executor computes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from onnx import defs, helper
from onnx.reference import ReferenceEvaluator

from passes.ir.versions import OLDEST_OPSET
from passes.operators.comparisons import COMPARISONS, LOGIC, NEGATED, ORDERINGS, SWAPPED, holds
from passes.operators.functions import NUMPY
from passes.operators.table import TRAITS, where
from passes.operators.traits import Shape

LEFT, RIGHT = np.array([1, 2, 3]), np.array([2, 2, 2])  # the differences -1, 0, 1
ENDS = (-math.inf, -2, -1, 0, 1, 2, math.inf)
BOOLS = np.array([False, True])
FLOATS = np.array([-1.5, -0.0, 0.0, 0.5, 3], np.float32)
#: Operands in which each element meets each other one, two of FLOATS unless told here.
OPERANDS = {
    **dict.fromkeys(("And", "Or", "Xor"), (BOOLS[:, None], BOOLS)),
    **dict.fromkeys(("Abs", "Neg"), (FLOATS,)),
    "Div": (FLOATS[:, None], FLOATS[[0, 3, 4]]),
    "Not": (BOOLS,),
    "Sqrt": (FLOATS[2:],),
    "Where": (BOOLS[:, None, None], FLOATS[:, None], FLOATS),
}


@pytest.mark.parametrize("op", COMPARISONS)
def test_a_comparison_is_true_for_its_signs(op: str) -> None:
    signs = [sign in COMPARISONS[op] for sign in "<=>"]
    assert NUMPY[op](LEFT, RIGHT).tolist() == signs
    assert NUMPY[SWAPPED[op]](RIGHT, LEFT).tolist() == signs
    assert op in NEGATED or op == "Equal"
    if op in NEGATED:
        assert NUMPY[NEGATED[op]](LEFT, RIGHT).tolist() == [not sign for sign in signs]


def test_the_orderings_are_the_comparisons_but_equal() -> None:
    assert {*ORDERINGS, "Equal"} == {*COMPARISONS}
    assert {*LOGIC} == {"And", "Not", "Or", "Xor"}


@pytest.mark.parametrize("op", COMPARISONS)
def test_a_comparison_of_ranges_holds_if_it_does_for_each_difference_in_them(op: str) -> None:
    for least, most in itertools.combinations_with_replacement(ENDS, 2):
        inside = [n for n in (-3, -2, -1, 0, 1, 2, 3) if least <= n <= most]
        outcomes = {bool(NUMPY[op](n, 0)) for n in inside}
        if inside:
            assert holds(op, least, most) == (outcomes.pop() if len(outcomes) == 1 else None)


def test_a_difference_of_infinities_is_open() -> None:
    assert holds("Less", -math.inf, math.nan) is None
    assert holds("GreaterOrEqual", math.nan, math.inf) is None
    assert holds("Less", 0, math.nan) is False


@pytest.mark.parametrize("op", NUMPY)
def test_functions_of_numpy_compute_what_the_operators_do(op: str) -> None:
    operands = OPERANDS.get(op, (FLOATS[:, None], FLOATS))
    names = [f"x{n}" for n in range(len(operands))]
    node = helper.make_node(op, names, ["y"])
    (result,) = ReferenceEvaluator(node).run(None, dict(zip(names, operands, strict=True)))
    found, expected = NUMPY[op](*operands), np.asarray(result)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("op", sorted(where(lambda row: row.commutes)))
def test_operands_that_commute_may_change_places(op: str) -> None:
    left, right = OPERANDS.get(op, (FLOATS[:, None], FLOATS))
    assert NUMPY[op](left, right).tobytes() == NUMPY[op](right, left).tobytes()


def test_the_first_version_that_broadcasts_is_that_of_the_documents() -> None:
    for op in where(lambda row: row.shape is Shape.BROADCAST):
        since = TRAITS[op].since
        assert _broadcasts(op, max(since, OLDEST_OPSET)), op
        assert since == 1 or not _broadcasts(op, since - 1), op


def _broadcasts(op: str, version: int) -> bool:
    """Whether the operator's document says so, of its version in an opset or its first one."""
    first = min(one.since_version for one in defs.get_all_schemas_with_history() if one.name == op)
    return "broadcast" in (defs.get_schema(op, max(version, first)).doc or "").lower()
