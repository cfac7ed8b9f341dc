"""How often a loop iterates, and the states that count its iterations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from onnx import GraphProto

from passes.ir.live import Walk
from passes.loops.form import LoopForm
from passes.proving.loops.closed_forms import State
from passes.proving.loops.iterations import Loop, iteration
from passes.proving.symbolic_evaluator import SymbolicEvaluator
from passes.proving.terms.algebra import BOOL, INT64, Algebra
from passes.proving.terms.arrays import Array
from passes.proving.terms.extremes import EXACT_UP_TO
from passes.proving.terms.numbers import LONGEST, MOST_ITERATIONS, SMALL
from passes.proving.terms.term import Term, polynomial

#: Of how many iterations at most each is a case of its own, where a condition may end them.
_FEW_TRIPS = 8
#: The kinds of states that may count.
_COUNTED = [(Array, one) for one in (BOOL, INT64, *SMALL)]


@dataclass(frozen=True)
class Counting:
    """The states of a loop that are `known` before each iteration, by their places, whatever its
    other states are, and the number of iterations; None if these states alone do not decide it."""

    known: dict[int, State]
    trips: Term | None = None


def counting(loop: Loop) -> Counting:
    """What is known of a loop from the nodes that make whole numbers of whole numbers: the rest of
    the body is evaluated at the numbers of iterations that run."""
    form, condition = loop.form, loop.form.condition
    wanted = [n for n, one in enumerate(form.carried) if _counts(loop, one.body_output)]
    is_counted = condition is not None and _counts(loop, condition.body_output)
    if condition is not None and not is_counted:
        condition = replace(condition, body_output=condition.body_input)
    initial = [loop.initial[number] for number in wanted]
    part = replace(
        form,
        carried=tuple(form.carried[number] for number in wanted),
        collected=(),
        condition=condition,
    )
    walk = _walk(form, part.body_outputs)
    body = GraphProto(
        node=[form.body.node[place] for place in sorted(walk.nodes)],
        input=[one for one in form.body.input if one.name in walk.names],
        initializer=[one for one in form.body.initializer if one.name in walk.names],
    )
    pairs = zip(part.carried, initial, strict=True)
    kept = {
        number: _unchanged(array)
        for number, (one, array) in enumerate(pairs)
        if one.body_input in form.unchanged
    }
    one = iteration(replace(loop, form=replace(part, body=body), initial=initial), kept)
    found = one.in_closed_form(kept)
    known = {wanted[number]: state for number, state in found.items()}
    if not is_counted or len(found) < len(wanted):
        return Counting(known)
    at = loop.call.algebra.lift(one.index)
    again = loop.call.algebra.subst(one.condition, one.read(found.items(), at))
    return Counting(known, trip_count(again, one.index, loop))


def _unchanged(initial: Array) -> State:
    return lambda _, indices: initial.at(indices)


def _walk(form: LoopForm, names: Sequence[str]) -> Walk:
    walk = Walk(form.body.node, {one.body_input: one.body_output for one in form.carried})
    walk.reach(names, ())
    return walk


def _counts(loop: Loop, name: str) -> bool:
    """Return whether a value depends on no states but whole numbers, and those that never
    change."""
    form, read = loop.form, _walk(loop.form, [name]).names
    return all(
        one.body_input in form.unchanged or initial.kind in _COUNTED
        for one, initial in zip(form.carried, loop.initial, strict=True)
        if one.body_input in read
    )


def trip_count(condition: Term, index: Term, loop: Loop) -> Term:
    """The number of iterations, where `condition`, read after the iteration `index`, must hold for
    another one."""
    evaluator, algebra, limit = loop.call.evaluator, loop.call.algebra, loop.limit
    if condition is algebra.true and limit is None:
        raise evaluator.cannot("condition", "nothing ends the loop")
    # the conditions that count bound the iterations, the others may end them before
    others = []
    for part in condition.args if condition.op == "and" else (condition,):
        closed = limit if part is algebra.true else _counted(part, index, evaluator)
        if closed is None:
            others.append(part)
        else:
            limit = closed if limit is None else algebra.least(closed, limit)
    if others or limit is None:
        limit, ends = _ended(algebra.all(others), index, limit, evaluator)
    else:
        ends = True
    trips = algebra.ite(loop.starts, limit, algebra.zero)
    if not ends:
        answers = algebra.opaque(BOOL, "answers", ("", "Loop", BOOL), (trips,))
        evaluator.require(answers, "the loop ends")
    return trips


def _ended(
    condition: Term, index: Term, limit: Term | None, evaluator: SymbolicEvaluator
) -> tuple[Term, bool]:
    """The number of iterations of a loop that a condition may end before the limit, and whether it
    is known to end."""
    algebra = evaluator.algebra
    count = None if limit is None else algebra.number(limit)
    if count is not None and count <= _FEW_TRIPS:
        for number in range(count - 1):
            again = algebra.subst(condition, {index: algebra.whole(number)})
            if again.free:
                break
            if not evaluator.decide(again, "another iteration follows"):
                return algebra.whole(number + 1), True
        else:
            return algebra.whole(count), True
    exact = _counted_exactly(condition, index, evaluator)
    if exact is not None:
        return exact if limit is None else algebra.least(exact, limit), True
    head = algebra.terms.make("without") if limit is None else limit
    trips = algebra.trips(head, algebra.close([index], condition))
    return trips, limit is not None and not (count is not None and count > MOST_ITERATIONS)


def _counted(condition: Term, index: Term, evaluator: SymbolicEvaluator) -> Term | None:
    """The number of iterations where the condition is `d*i <= q`: that of the first i that breaks
    it, and one."""
    algebra = evaluator.algebra
    if condition.op != "ge0":
        return algebra.one if condition is algebra.false else None
    parts = dict(polynomial(condition.args[0]))
    slope = -parts.pop((index,), 0)
    rest = algebra.sum(parts)
    if slope <= 0 or rest.free & {index.uid}:
        return None
    last = algebra.idiv(rest, algebra.whole(slope))
    return algebra.add(algebra.most(last, algebra.whole(-1)), algebra.whole(2))


def _counted_exactly(condition: Term, index: Term, evaluator: SymbolicEvaluator) -> Term | None:
    """The number of iterations where the condition compares numbers that may wrap or be rounded,
    but none up to the iteration that breaks it."""
    algebra = evaluator.algebra
    parts = condition.args if condition.op == "and" else (condition,)
    read, ends = list[Term](), list[Term]()
    for one in parts:
        whole = _as_whole(algebra, one)
        end = None if whole is None else _counted(whole, index, evaluator)
        if whole is None or end is None:
            return None
        read.append(whole)
        ends.append(end)
    count = reduce(algebra.least, ends)
    exact = [EXACT_UP_TO.get(str(one.parts[1]), LONGEST) for one in parts if one.op == "ew"]
    few = algebra.below(count, algebra.whole(min(exact, default=LONGEST)))
    if not few.free and not evaluator.decide(few, "iterations are counted exactly"):
        return None
    place = algebra.lift(algebra.variable(count))
    there = algebra.all(algebra.subst(one, {index: place}) for one in read)
    return count if algebra.subst(condition, {index: place}) is there else None


def _as_whole(algebra: Algebra, condition: Term) -> Term | None:
    """A comparison as if no number in it wrapped or were rounded."""
    if condition.op == "ge0":
        return condition
    if condition.op != "ew" or condition.parts[0] not in ("Less", "LessOrEqual"):
        return None
    left, right = (_unrounded(algebra, one) for one in condition.args)
    if left is None or right is None:
        return None
    return algebra.compared_whole(condition.parts[0], left, right)


def _unrounded(algebra: Algebra, term: Term) -> Term | None:
    """An element as a whole number, if it is made of some by casts, sums and differences."""
    if term.op == "poly":
        return term
    if term.op == "const" and term.parts[0] != "string":
        value = float(term.parts[2])
        return algebra.whole(int(value)) if value.is_integer() else None
    if term.op == "ew" and term.parts[0] in ("Cast", "Add", "Sub"):
        args = [one for one in (_unrounded(algebra, arg) for arg in term.args) if one is not None]
        if len(args) == len(term.args):
            return reduce(algebra.sub if term.parts[0] == "Sub" else algebra.add, args)
    return None
