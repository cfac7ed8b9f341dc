"""The rule `bound-loop`: a Loop gets the smallest trip count that a counter allows it."""

from __future__ import annotations

from contextlib import suppress

from passes.analysis.trip_count.conditions import LoopConditions
from passes.analysis.trip_count.trip_count import TripCount
from passes.ir.protos import copied
from passes.loops.form import LoopForm
from passes.rule import Edit, NothingToDo, Refused, Site, register
from passes.rules.count_loop.comparisons import CounterTests
from passes.rules.count_loop.count_loop import considers
from passes.rules.count_loop.counting import Counting
from passes.writing.author import Author


@register("bound-loop", considers=considers, optional=True)
def bound_loop(site: Site) -> Edit:
    """Give a Loop the smallest trip count that its condition allows, and leave the condition.

    Before:

        c, y = Loop (9223372036854775807, go, 0, y0) <body = step (i, go_in, c_in, s) => (...) {
            c_out = Add (c_in, 1)
            few = Less (c_out, 100)
            more = Less (t, limit)
            go_out = And (few, more)
            ...
        }>

    After:

        c, y = Loop (100, go, 0, y0) <body = step (i, go_in, c_in, s) => (...) {
            ...
        }>

    One part of the condition compares a counter with a bound, both of which begin as constants;
    the other parts may be anything, as `count-loop` does not take them. Exporters write the largest
    int64 where only the condition ends a loop. Compilers take that for no trip count, or clamp it.

    Refuses:
    - `no-bound`: no part of the condition compares a counter with a constant
    """
    form = LoopForm.from_node(site.node, site.opset)
    author = Author.at(site, "loop")
    most = min(_bounds(site, form, author))
    declared = TripCount(site, form).declared
    if form.trip_count and not (isinstance(declared, int) and declared > most):
        raise NothingToDo  # it is as small, or is known only at run time
    node = copied(site.node)
    node.input[0] = author.int(most)
    return author.edit(f"at most {most} iterations", [node])


def _bounds(site: Site, form: LoopForm, author: Author) -> list[int]:
    """Return the largest possible trip count by each part of the condition that bounds it.

    Raises:
        Refused: `no-bound`.
    """
    assert form.condition is not None
    reader, found = CounterTests.of(site, form), []
    counting = Counting(site, reader.integers, author)
    for part in LoopConditions.inside(site, form).open_parts(form.condition.body_output):
        with suppress(Refused):
            comparison = reader.in_body(part)
            first, bound = comparison.first.number, comparison.bound.number
            if first is None or bound is None:
                continue
            holds = counting.fixed(comparison, first, bound)
            if comparison.most is None or holds <= comparison.most:
                found.append(holds + 1)  # in the last iteration, it does not hold
    if not found:
        what = "no part of the condition compares a counter with a constant"
        raise site.refused("no-bound", what, form.condition.body_output)
    return found
