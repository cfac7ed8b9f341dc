"""The rule `count-loop`: a while becomes a for, where it is known when its condition fails."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import replace

from onnx import NodeProto, helper

from passes.analysis.bodies.context import context_of
from passes.analysis.bodies.liveness import dead_after_rewrite, doubts_of
from passes.analysis.integers.integers import Integers
from passes.analysis.trip_count.trip_count import TripCount
from passes.bodies.few_iterations import expected, refuse_few
from passes.bodies.raised_body import RaisedBody
from passes.ir import scope as scoping
from passes.ir.live import live
from passes.ir.operators import op_of
from passes.ir.versions import LESS_TAKES_INTEGERS
from passes.loops.form import Condition, LoopForm
from passes.loops.parts import plain
from passes.rule import Edit, NothingToDo, Site, register
from passes.rules.count_loop.counter import Counted, Counter
from passes.types.value_types import dims_of
from passes.writing import spelling
from passes.writing.author import Author
from passes.writing.purposes import COUNT_TRIPS


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Return whether a node is a Loop whose body computes its condition."""
    if op_of(node) != "Loop" or opset < LESS_TAKES_INTEGERS:
        return False
    return len(node.input) > 1 and not _hands_on_its_condition(node, opset)


def _hands_on_its_condition(node: NodeProto, opset: int) -> bool:
    """Return whether the body returns the condition that it gets, or a constant of its own."""
    form = LoopForm.from_node(node, opset)
    assert form.condition is not None
    producer, name = plain(form.condition.body_output, form.index.producers.get)
    fixed = scoping.initializer_names(form.body)
    constant = producer is not None and op_of(producer) == "Constant"
    return name == form.condition.body_input or name in fixed or constant


@register("count-loop", considers=considers, optional=True)
def count_loop(site: Site) -> Edit:
    """Turn a Loop that ends by a condition on a counter into one with a trip count.

    Before:

        go = Less (0, n)
        c, y = Loop ("", go) <body = step (int64 i, bool go_in, int64 c_in, ...) => (...) {
            c_out = Add (c_in, 1)
            go_out = Less (c_out, n)
            ...
        }> (0, y0)

    After:

        c, y = Loop (n, "") <body = step (int64 i, bool go_in, int64 c_in, ...) => (...) {
            c_out = Add (c_in, 1)
            go_out = Identity (go_in)
            ...
        }> (0, y0)

    The counter is the iteration number, or a carried integer that grows by a constant. It is
    compared with a bound that never changes by Less, LessOrEqual, Greater or GreaterOrEqual,
    perhaps negated. Of several comparisons that must all hold, the first to fail ends the loop,
    and so does a trip count. As in the original, the initial condition
    decides on the first iteration, the body's condition on those after it. A comparison that holds
    as long as the trip count lasts is ignored. A counter that would wrap would never end the loop:
    there the new model fails, unless M or another comparison ends it. Integers have the range of
    their types; no axis and no loop is assumed to be longer than 2^31 - 2^16.

    Where other parts of the condition depend on data, as `And (error > tol, c_out < n)` does in an
    iterative solver, they stay, and the loop gets the most iterations that the counter allows as
    its trip count: `unroll` and targets that need one then have it.

    Both sides may be cast to floats, as tf2onnx does, if the initial value of the counter or its
    bound is a constant; and the counter may take its step as a float, as paddle's
    `Cast (Add (Mul (Cast (c_in), 1), 1))` does, from a constant on. Floats round integers from
    2^24 on (float64: 2^53): a model that would count further fails; `--assume valid-inputs` assumes
    that none does.

    Refuses:
    - `endless`: nothing ends the loop
    - `comparison`: no part of the condition is a comparison of two numbers by their order
    - `no-counter`: what is compared does not grow by a constant step
    - `bound-varies`: the counter is compared with something that may change
    - `step`: the counter does not change, or moves away from its bound
    - `float-counter`: the counter is not an int64 or int32 number, and not all is constant; or it
      is compared as a float, and neither its initial value nor its bound is constant
    - `overflow`: the counter wraps, or it is not proven that it cannot wrap and come back
    - `unknown-type`: the type of the counter is not known
    - `few-iterations`: in `optimize`: the trip count is known only at run time, and a few
      iterations take less time than the nodes before the loop
    """
    form = LoopForm.from_node(site.node, site.opset)
    unconditional = form.condition is None or not form.condition.initial
    if form.trip_count and unconditional and not TripCount(site, form).conditional:
        raise NothingToDo  # it is counted already
    author = Author.at(site, "loop")
    with author.serving(COUNT_TRIPS):
        counted = Counter(site, form, author).count()
    loop = replace(_uncontrolled(site, form, author, counted), trip_count=counted.trips)
    author.adopt([loop.to_node()])
    nodes = author.nodes
    covered = dead_after_rewrite(site, Integers(site), (), nodes)
    if any(size.number is None for size in counted.sizes):  # else all that is written is folded
        refuse_few(site, nodes, covered, expected(counted.sizes))
    return replace(author.edit(counted.note), covered=covered, context=context_of(site))


def _uncontrolled(site: Site, form: LoopForm, author: Author, counted: Counted) -> LoopForm:
    """The loop without the parts of its condition that are counted: where these are all of it, it
    holds whenever the body runs and is handed on."""
    assert form.condition is not None
    inner = author.inside(f"{author.prefix}/step")
    _, counting = live(form.body.node, [form.condition.body_output], scoping.free_names)
    doubts = doubts_of(site, form) - counting
    body = RaisedBody(form, Integers(site, form.body), inner, doubts)
    initial, going = form.condition.initial, form.condition.body_input
    if counted.parts:
        left = _left(site, form, inner, counted.parts)
    else:
        initial, left = "", going
    read = {name for node in inner.nodes for name in node.input}
    body.prune([*form.body_outputs[1:], left, *read], form.carried, ())
    if not counted.parts and (body.reads(going) or going in form.body_outputs[1:]):
        body.rename(going, spelling.true(inner, form.condition_rank))
    go_on = inner.fresh("go_on")
    for node in (*inner.nodes, helper.make_node("Identity", [left], [go_on])):
        body.append(node)
    graph = body.with_output(0, go_on, like=going)
    fixed = scoping.initializer_names(graph)
    constants = tuple(name for name in form.constant_inputs if name in fixed)
    return replace(
        form,
        body=graph,
        condition=Condition(initial, going, go_on),
        constant_inputs=constants,
    )


def _left(site: Site, form: LoopForm, inner: Author, counted: AbstractSet[str]) -> str:
    """Write the body's condition without the parts that are counted."""
    assert form.condition is not None
    left = _without(form.condition.body_output, counted, Integers(site, form.body).source, inner)
    if dims_of(site.body_type_of("body", left)) == (1,) * form.condition_rank:
        return left
    return inner.op("Reshape", left, inner.ints(*(1,) * form.condition_rank))


def _without(
    name: str,
    counted: AbstractSet[str],
    producer: Callable[[str], NodeProto | None],
    author: Author,
) -> str:
    """A condition without some of its parts; "" where it has no other."""
    kept, (node, part) = name, plain(name, producer)
    if node is None or op_of(node) != "And":
        return "" if part in counted else kept
    left, right = (_without(read, counted, producer, author) for read in node.input)
    if [left, right] == list(node.input):
        return kept
    return author.op("And", left, right) if left and right else left or right
