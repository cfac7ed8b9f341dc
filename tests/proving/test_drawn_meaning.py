"""Terms of models at drawn sizes, evaluated on numbers, are what the reference executor gives."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from passes.ir.model import Model
from passes.proving.drawn import comparing
from passes.proving.drawn.comparing import PairAtSizes
from passes.proving.drawn.symbols import Fork, TermTable, Wanted, numbers
from passes.proving.terms.term import Term, subterms
from passes.verify.executor import Ended, Feeds, Value
from passes.verify.reference import ReferenceExecutor
from passes.verify.reference.value_types import element_dtype
from tests.instruments.proven import golden_pairs, sides

#: Operators on elements, as functions of numpy's scalars.
MEANING: dict[str, Callable[..., Any]] = {
    "Abs": np.abs,
    "Add": lambda a, b: a + b,
    "Cos": np.cos,
    "Div": lambda a, b: a / b if isinstance(a, np.floating) else np.trunc(a / b),
    "Dot": lambda *row: sum(a * b for a, b in zip(row[::2], row[1::2], strict=True)),
    "Equal": np.equal,
    "Exp": np.exp,
    "Identity": lambda x: x,
    "IsNaN": np.isnan,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Log": np.log,
    "Max": np.maximum,
    "Min": np.minimum,
    "Mul": lambda a, b: a * b,
    "Neg": np.negative,
    "Reciprocal": lambda x: 1 / x,
    "ReduceMax": lambda *row: np.max(row),
    "ReduceMean": lambda *row: np.mean(row),
    "ReduceMin": lambda *row: np.min(row),
    "ReduceProd": lambda *row: np.prod(row),
    "ReduceSum": lambda *row: np.sum(row),
    "ReduceSumSquare": lambda *row: np.sum(np.square(row)),
    "Relu": lambda x: np.maximum(x, 0),
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Sin": np.sin,
    "Softplus": lambda x: np.logaddexp(x, 0),
    "Sqrt": np.sqrt,
    "Sub": lambda a, b: a - b,
    "Tanh": np.tanh,
}


class Unknown(Exception):
    """An operator has no meaning here."""


#: Formulas over whole numbers of any size and bools.
FORMULAS: dict[str, Callable[..., Any]] = {
    "and": lambda *all_: all(all_),
    "eq0": lambda x: x == 0,
    "ge0": lambda x: x >= 0,
    "ite": lambda c, a, b: a if c else b,
    "max": max,
    "min": min,
    "mono": lambda *factors: math.prod(map(int, factors)),
    "not": operator.not_,
    "or": lambda *any_: any(any_),
}


def value(terms: TermTable, term: Term, feeds: Feeds, known: dict[Term, Any]) -> Any:
    """The value of a term on inputs."""
    for one in sorted(subterms(term), key=lambda one: one.uid):
        if one not in known:
            known[one] = _value(terms, one, feeds, known)
    return known[term]


def _value(terms: TermTable, term: Term, feeds: Feeds, known: Mapping[Term, Any]) -> Any:
    args = [known[one] for one in term.args]
    if terms.is_constant(term.uid):
        return terms.value(term.uid)
    if term.op == "poly":
        return sum(factor * one for factor, one in zip(term.parts, args, strict=True))
    if term.op in FORMULAS:
        return FORMULAS[term.op](*args)
    if term.op == "elem":
        array = feeds[term.parts[1]]
        assert isinstance(array, np.ndarray)
        return array[tuple(map(int, args))]
    assert term.op == "ew"
    op, attributes, name, *_ = term.parts
    if op not in (*MEANING, "Cast"):
        raise Unknown(op)
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    if op == "Cast":
        return np.asarray(args[0], attributes[0]).astype(dtype)[()]
    return np.asarray(MEANING[op](*args)).astype(dtype)[()]


def outputs(model: Model, feeds: Feeds) -> list[Value]:
    """What a model gives on inputs, by way of terms."""
    comparison = PairAtSizes(model, model, monotonic() + 20)
    terms, known = comparison.found.terms, dict[Term, Any]()
    decided: dict[Term, bool] = {}
    while True:
        terms.decide(decided)
        try:
            results = comparison.sides[0].answer(comparison.fed(feeds), monotonic() + 20)
            return [_array(terms, one, feeds, known) for one in results]
        except Wanted as error:
            comparison.wanted |= error.names
        except Fork as fork:
            decided = {**decided, fork.term: bool(value(terms, fork.term, feeds, known))}


def _array(terms: TermTable, result: Value, feeds: Feeds, known: dict[Term, Any]) -> Value:
    if not isinstance(result, np.ndarray):
        raise Unknown("a sequence")
    ids = numbers(result).reshape(-1).tolist()
    flat = [value(terms, terms.all[one], feeds, known) for one in ids]
    return np.array(flat, element_dtype(result.dtype)).reshape(result.shape)


def agrees(path: Path) -> int:
    """Compare both models of a golden pair at all sizes; returns the number of runs compared."""
    count = 0
    before, after = sides(path)
    drawer = comparing.drawer_of(before, after)
    for place, sizes in enumerate(comparing.SIZES):
        feeds = next(comparing.attempts(drawer, place))
        for model in (before, after):
            try:
                expected = ReferenceExecutor().run(model.proto, feeds).outputs
                actual = outputs(model, feeds)
            except (Unknown, Ended):
                continue
            for name, one in zip(expected, actual, strict=True):
                if np.asarray(one).dtype.kind == "O":
                    assert np.array_equal(np.asarray(one), np.asarray(expected[name]))
                    continue
                np.testing.assert_allclose(
                    np.asarray(one).astype(np.float64),
                    np.asarray(expected[name]).astype(np.float64),
                    rtol=1e-3,
                    atol=1e-4,
                    err_msg=f"{path.name} at {sizes}, {name}",
                )
            count += 1
    return count


@pytest.mark.filterwarnings("ignore:The onnxtxt format is experimental")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("command", "least"),
    [
        pytest.param("/lower/", 150, marks=pytest.mark.slow),
        pytest.param("/expand/", 80, marks=pytest.mark.slow),
        pytest.param("/recognize-cell/", 150, marks=pytest.mark.slow),
        pytest.param("/hoist-invariants/", 200, marks=pytest.mark.slow),
        ("/drop-sequences/", 40),
        ("/dissolve-map/", 100),
    ],
)
def test_terms_mean_what_the_reference_executor_computes(command: str, least: int) -> None:
    assert sum(agrees(path) for path in golden_pairs(command)) >= least
