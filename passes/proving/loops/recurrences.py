"""Loops as recurrences: what a state is before an iteration, as a term that holds the initial value
and the step, with all that the body reads from outside."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from passes.loops.form import Kind, LoopForm
from passes.proving.assumptions import SCANS_NOTHING
from passes.proving.loops.counting import counting, trip_count
from passes.proving.loops.iterations import Loop, as_declared, iteration
from passes.proving.loops.states import Iteration
from passes.proving.symbolic_evaluator import Application, Fails, operator
from passes.proving.terms.algebra import INT64
from passes.proving.terms.arrays import Array, Indices, NotProvable, Stacked
from passes.proving.terms.numbers import MOST_ITERATIONS
from passes.proving.terms.term import Term


@operator("If")
def branches(call: Application) -> list[Array]:
    """One branch where the condition is known on this path, else both by element."""
    evaluator, algebra = call.evaluator, call.algebra
    condition = call.array(0).scalar()
    graphs = {one.name: one.g for one in call.node.attribute}

    def branch(name: str) -> list[Array]:
        graph = graphs[name]
        values = {**call.values, **evaluator.constants(graph)}
        inner = evaluator.run(graph, values, call.opsets, f".{name}")
        as_declared(evaluator, graph, inner)
        return [inner[one.name] for one in graph.output]

    if not condition.free or condition in (algebra.true, algebra.false):
        holds = evaluator.decide(condition, "the condition holds")
        return branch("then_branch" if holds else "else_branch")
    sides = []
    for name, fails in (
        ("then_branch", algebra.negation(condition)),
        ("else_branch", condition),
    ):
        try:
            with evaluator.collecting() as required:
                sides.append(branch(name))
        except Fails as error:
            raise NotProvable("branch", f"a branch of the If fails: {error}") from error
        for one, why in required:
            evaluator.require(algebra.any((fails, one)), why)
    made = []
    for left, right in zip(*sides, strict=True):
        if left.rank != right.rank or left.kind != right.kind:
            raise evaluator.cannot("branch", "the branches differ in rank or type")
        for sizes in zip(left.shape, right.shape, strict=True):
            if algebra.equal(*sizes) is not algebra.true:
                raise evaluator.cannot("branch", "the branches may differ in size")
        made.append(_chosen(condition, left, right))
    return made


def _chosen(condition: Term, left: Array, right: Array) -> Array:
    return left.like(lambda at: left.algebra.ite(condition, left.at(at), right.at(at)))


@operator("Scan", "Loop")
def loop(call: Application) -> list[Array]:
    """A loop of any kind."""
    form = LoopForm.from_node(call.node, call.opset)
    if form.kind is Kind.SCAN_8:
        call.evaluator.over_nothing.add((SCANS_NOTHING, None))
        return _scan_8(call, form)
    initial = [call.value(one.initial) for one in form.carried]
    scanned = [call.value(one.tensor) for one in form.scanned]
    algebra = call.algebra
    axes, limit = list[int](), None
    if form.kind is Kind.SCAN:
        axes = [call.axis(one.axis, a.rank) for one, a in zip(form.scanned, scanned, strict=True)]
        sizes = [array.shape[axis] for axis, array in zip(axes, scanned, strict=True)]
        if not sizes:
            raise call.cannot("operator", "a Scan without inputs is not modelled")
        limit = call.evaluator.same("the lengths of scanned inputs agree", *sizes)
        call.evaluator.promised(limit)
        call.evaluator.runs_over(SCANS_NOTHING, limit)
    elif form.trip_count:
        count = call.evaluator.whole_numbers(call.value(form.trip_count)).scalar()
        some = algebra.at_least(count, algebra.one)
        limit = algebra.most(count, algebra.zero)
        if not some.free:
            runs = call.evaluator.decide(some, "the loop runs")
            limit = count if runs else algebra.zero
    starts = algebra.true
    if form.condition is not None and form.condition.initial:
        starts = call.value(form.condition.initial).scalar()
        if not starts.free:
            starts = algebra.truth(call.evaluator.decide(starts, "the loop starts"))
    if starts is algebra.false:
        limit, starts = algebra.zero, algebra.true
    rows = [partial(one.slice, axis) for one, axis in zip(scanned, axes, strict=True)]
    finals, collected = run(Loop(call, form, initial, rows, limit, starts))
    for place, (array, one) in enumerate(zip(collected, form.collected, strict=True)):
        collected[place] = _placed(array, call.axis(one.axis, array.rank), one.reversed)
    return [*finals, *collected]


def _placed(array: Array, axis: int, backwards: bool) -> Array:
    """Rows collected along the first axis, along another one."""
    if backwards:
        last = array.algebra.sub(array.shape[0], array.algebra.one)
        array = array.read(array.shape, lambda at: [array.algebra.sub(last, at[0]), *at[1:]])
    return array.moved(0, axis)


def _scan_8(call: Application, form: LoopForm) -> list[Array]:
    """A row at a time: what its Scan gives is a function of the row."""
    evaluator, algebra = call.evaluator, call.algebra
    initial = [call.value(one.initial) for one in form.carried]
    scanned = [call.value(one.tensor) for one in form.scanned]
    whole = [*scanned, *initial]
    if not scanned or any(one.rank < 1 for one in whole) or any(one.rank < 2 for one in scanned):
        raise evaluator.cannot("shape", "an input has no batch or time")
    batch = evaluator.same("the batch sizes of inputs agree", *(one.shape[0] for one in whole))
    time = evaluator.same("the lengths of scanned inputs agree", *(one.shape[1] for one in scanned))
    evaluator.promised(batch, time)
    row = algebra.variable(batch)
    trips = time
    if form.lengths:
        least = algebra.one if evaluator.non_empty else algebra.zero
        lengths = evaluator.lengths(call.value(form.lengths), least, time)
        evaluator.same("there are as many lengths as rows", batch, lengths.shape[0])
        trips = lengths.at([algebra.lift(row)])

    states, scans = (
        [array.slice(0, algebra.lift(row)) for array in arrays] for arrays in (initial, scanned)
    )
    with evaluator.for_all(batch, row):
        rows_of = [partial(one.slice, 0) for one in scans]
        finals, collected = run(Loop(call, form, states, rows_of, trips, algebra.true))

    def stacked(array: Array, shape: tuple[Term, ...], within: bool) -> Array:
        if any(row.uid in size.free for size in shape):
            raise evaluator.cannot("shape", "rows have sizes of their own")

        def get(indices: Indices) -> Term:
            element = array.at(indices[1:])
            if within:  # what is beyond the length is read, too
                inside = algebra.below(indices[1], trips)
                element = algebra.ite(inside, element, algebra.null(array.dtype))
            return algebra.subst(element, {row: indices[0]})

        return Array(algebra, array.dtype, (batch, *shape), get)

    rows = [stacked(one, (time, *one.shape[1:]), trips is not time) for one in collected]
    return [*(stacked(one, one.shape, False) for one in finals), *rows]


def run(loop: Loop) -> tuple[list[Array], list[Array]]:
    """The final states of a loop, and what it collects, along the first axis."""
    evaluator, algebra, limit = loop.call.evaluator, loop.call.algebra, loop.limit
    vacuous = evaluator.is_vacuous
    evaluator.is_vacuous = vacuous or limit is algebra.zero
    try:
        counted = counting(loop)
        one = iteration(loop, counted.known, counted.trips)
    except Fails as error:
        runs = limit is None or evaluator.decide(
            algebra.at_least(limit, algebra.one), "a body that fails runs"
        )
        if runs and not evaluator.is_within:
            raise
        raise NotProvable("body", f"the body fails if it runs, and it may run: {error}") from error
    evaluator.is_vacuous = vacuous
    at, states = algebra.lift(one.index), one.solved(counted.known)

    def resolved(term: Term, index: Term) -> Term:
        return algebra.subst(term, {**one.read(enumerate(states), index), one.index: index})

    trips = counted.trips or trip_count(resolved(one.condition, at), one.index, loop)
    is_open = algebra.number(trips) is None and not trips.free
    if evaluator.original and not evaluator.is_within and is_open:
        algebra.assume(algebra.at_least(algebra.whole(MOST_ITERATIONS), trips))
    with evaluator.for_all(trips, one.index):
        for condition, why in one.required:
            evaluator.require(resolved(condition, at), why)
    for state, array, placeholder in zip(states, one.begins(at), one.placeholders, strict=True):
        if array.dtype == INT64 and placeholder.uid in evaluator.read:
            with evaluator.for_all(trips, one.index):  # a count fits before each iteration
                evaluator.whole_numbers(array.like(partial(state, at)))
    ends = zip(one.begins(trips), states, strict=True)
    finals = [array.like(partial(state, trips)) for array, state in ends]
    collected = [_collected(array, resolved, trips, one) for array in one.collected]
    return finals, collected


def _collected(
    array: Array, resolved: Callable[[Term, Term], Term], trips: Term, one: Iteration
) -> Array:
    """Rows of all iterations, along the first axis."""
    if isinstance(array, Stacked):
        raise NotProvable("type", "a row that is collected is no tensor")
    inner = {one.index.uid, *(placeholder.uid for placeholder in one.placeholders)}
    if any(size.free & inner for size in array.shape):
        raise NotProvable("shape", "the sizes of rows depend on the iteration")

    def get(indices: Indices) -> Term:
        return resolved(array.at(indices[1:]), indices[0])

    return Array(array.algebra, array.dtype, (trips, *array.shape), get)
