"""One iteration of a loop on placeholders: its body is evaluated once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from onnx import GraphProto

from passes.loops.form import Kind, LoopForm
from passes.proving.loops.closed_forms import State
from passes.proving.loops.states import Iteration, longer, sums
from passes.proving.symbolic_evaluator import Application, SymbolicEvaluator, Values
from passes.proving.terms.algebra import BOOL, INT64
from passes.proving.terms.arrays import Array, NotProvable, Stacked
from passes.proving.terms.term import Term
from passes.types.value_types import dims_of

#: How often it is guessed by how much states grow in an iteration.
_MOST_GUESSES = 3


@dataclass(frozen=True)
class Loop:
    """A loop that iterates at most `limit` times, for ever where it is None, while its condition
    holds, if it `starts`; `initial` are its states before, `rows` the scanned values of an
    iteration."""

    call: Application
    form: LoopForm
    initial: Sequence[Array]
    rows: Sequence[Callable[[Term], Array]]
    limit: Term | None
    starts: Term

    def values(self, at: Term) -> Values:
        """What the body reads in an iteration, but for its states."""
        form, algebra = self.form, self.call.algebra
        values: Values = {**self.call.values, **self.call.evaluator.constants(form.body)}
        for scan, row in zip(form.scanned, self.rows, strict=True):
            assert self.limit is not None
            last = algebra.sub(self.limit, algebra.one)
            values[scan.body_input] = row(algebra.sub(last, at) if scan.reversed else at)
        if form.condition is not None:
            ranks = [(algebra.one,) * one for one in (form.iteration_rank, form.condition_rank)]
            values[form.iteration] = Array(algebra, INT64, ranks[0], lambda _: at)
            goes_on = Array(algebra, BOOL, ranks[1], lambda _: algebra.true)
            values[form.condition.body_input] = goes_on
        return values


def iteration(loop: Loop, known: Mapping[int, State], trips: Term | None = None) -> Iteration:
    """Evaluate the body once, its states placeholders unless they are `known`, its number a
    variable below the number of `trips`, or the limit."""
    call, form, initial = loop.call, loop.form, loop.initial
    evaluator, algebra = call.evaluator, call.algebra
    index = algebra.variable(loop.limit if trips is None else trips)
    at = algebra.lift(index)
    values = loop.values(at)
    placeholders = [
        algebra.placeholder(array.dtype, one.body_input)
        for one, array in zip(form.carried, initial, strict=True)
    ]
    growth: list[tuple[Term, ...]] = [()] * len(initial)
    for _ in range(_MOST_GUESSES):
        begins = [longer(*one, at) for one in zip(initial, growth, strict=True)]
        for number, carried in enumerate(form.carried):
            state = known.get(number)
            element_of = partial(state, at) if state else algebra.applied_to(placeholders[number])
            values[carried.body_input] = begins[number].like(element_of)
        with evaluator.collecting() as required:
            inner = evaluator.run(form.body, dict(values), call.opsets, ".body")
            states = [inner[one.body_output] for one in form.carried]
            if loop.limit is algebra.zero and form.kind is Kind.LOOP:
                states = begins  # no iteration changes their sizes
            bound = {index.uid, *(one.uid for one in placeholders)}
            initial = [_sized(*one, bound) for one in zip(initial, states, strict=True)]
            more = [
                longer(*one, algebra.add(at, algebra.one))
                for one in zip(initial, growth, strict=True)
            ]
            grown = [_more(form.kind, *one) for one in zip(more, states, strict=True)]
            growth = [sums(algebra, *one) for one in zip(growth, grown, strict=True)]
            grows = any(any(one.args for one in by) for by in grown)
            if not grows:
                for carried, old, new in zip(form.carried, more, states, strict=True):
                    _kept(evaluator, form.kind, old, new, carried.body_input)
                as_declared(evaluator, form.body, inner)
                break
    else:
        raise evaluator.cannot("state", "a state does not grow evenly")
    condition = algebra.true
    if form.condition is not None:
        condition = inner[form.condition.body_output].scalar()
    collected = [inner[one.body_output] for one in form.collected]
    made = placeholders, initial, states, growth, condition, collected, required
    return Iteration(algebra, index, *made)


def as_declared(evaluator: SymbolicEvaluator, body: GraphProto, values: Values) -> None:
    """Require values to have the sizes that the body of a new model declares: onnxruntime makes
    room for no others, the reference executor does."""
    if evaluator.original:
        return
    for one in (*body.input, *body.output):
        dims = dims_of(one.type)
        if dims is None or one.name not in values:
            continue
        shape = values[one.name].shape
        if len(dims) != len(shape):
            raise NotProvable(
                "model", f"{one.name!r} has {len(shape)} axes, and {len(dims)} declared ones"
            )
        for size, dim in zip(shape, dims, strict=True):
            if isinstance(dim, int):
                why = f"{one.name!r} has the declared size"
                evaluator.same(why, size, evaluator.algebra.whole(dim))


def _more(kind: Kind, before: Array, after: Array) -> tuple[Term, ...]:
    """By how much the sizes of a state of a Loop grow in every iteration for certain."""
    algebra = before.algebra
    if before.rank != after.rank:
        raise NotProvable("state", "a state changes its rank")
    by = [algebra.sub(new, old) for old, new in zip(before.shape, after.shape, strict=True)]
    grows = [kind is Kind.LOOP and not one.free and algebra.is_positive(one) for one in by]
    return tuple(one if more else algebra.zero for one, more in zip(by, grows, strict=True))


def _sized(initial: Array, after: Array, inner: set[int]) -> Array:
    """A state before the first iteration: an empty sequence has elements of the sizes of those that
    are inserted."""
    is_empty = isinstance(initial, Stacked) and initial.shape == (initial.algebra.zero,)
    sizes = after.shape[1:]
    if not is_empty or not isinstance(after, Stacked) or any(one.free & inner for one in sizes):
        return initial
    return Stacked.of_none(initial.algebra, initial.dtype, sizes)


def _kept(evaluator: SymbolicEvaluator, kind: Kind, before: Array, after: Array, name: str) -> None:
    """Study paths apart on which a state has the sizes that it should have, and on which not; a
    Scan fails there."""
    algebra = evaluator.algebra
    if before.rank != after.rank or before.kind != after.kind:
        raise NotProvable("state", f"{name!r} changes its type or rank")
    for sizes in zip(before.shape, after.shape, strict=True):
        equal = algebra.equal(*sizes)
        if equal is algebra.true or evaluator.decide(equal, "a state keeps its size"):
            continue
        if kind is Kind.LOOP:
            raise NotProvable(
                "state", f"{name!r} may change its size from {sizes[0]} to {sizes[1]}"
            )
        evaluator.require(algebra.false, "a state keeps its size")
