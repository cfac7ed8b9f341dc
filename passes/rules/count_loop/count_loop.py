"""The rule `count-loop`: a while becomes a for, where it is known when its condition fails."""

from __future__ import annotations

from dataclasses import replace

from onnx import GraphProto, NodeProto, helper

from passes.analysis.bodies.context import context_of
from passes.analysis.bodies.dead_after_rewrite import dead_after_rewrite
from passes.analysis.integers.integers import Integers
from passes.analysis.safety.unread import doubts_of
from passes.analysis.trip_count import facts
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.ir.versions import WHERE_SINCE
from passes.loops.form import Condition, LoopForm
from passes.rule import Edit, NothingToDo, Site, register
from passes.rules.count_loop.counter import Counter
from passes.rules.raise_loop.raised_body import RaisedBody
from passes.rules.unroll.few_iterations import expected, refuse_few
from passes.writing import spelling
from passes.writing.author import Author
from passes.writing.purposes import COUNT_TRIPS


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Whether a node is a Loop whose body says when it ends."""
    if op_of(node) != "Loop" or opset < WHERE_SINCE:
        return False
    return len(node.input) > 1 and not _hands_on_its_condition(node)


def _hands_on_its_condition(node: NodeProto) -> bool:
    """Whether the body returns the condition it got, or a constant of its own."""
    form = LoopForm.from_node(node, WHERE_SINCE)
    assert form.condition is not None
    producers = {name: one for one in form.body.node for name in one.output}
    name = form.condition.body_output
    while (maker := producers.get(name)) is not None and op_of(maker) in ("Identity", "Cast"):
        name = maker.input[0]
    fixed = scoping.initializer_names(form.body)
    constant = maker is not None and op_of(maker) == "Constant"
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

    The counter is a carried whole number that grows by a constant, or the iteration number; it
    is compared with a bound that never changes by Less, LessOrEqual, Greater or GreaterOrEqual,
    perhaps negated; of several comparisons that must all hold, the first to fail ends the loop,
    and so does the trip count where there is one. As in the original, the first iteration is up
    to the initial condition, and the body's condition counts behind it. What holds as long as the
    trip count lasts does not count. A counter that would wrap would never end the loop: there
    the new model fails, unless M or another comparison ends it. Numbers are taken as their types
    hold them; only that no axis and no loop is longer than 2^31 - 2^16 is taken for granted.

    Both sides may be cast to floats, as tf2onnx writes it, where the counter starts at a fixed
    number, or its bound is fixed. Floats round whole numbers from 2^24 on (float64: 2^53): a
    model that would count further fails; `--assume valid-inputs` takes it that none does.

    Refuses:
    - `endless`: nothing ends the loop
    - `comparison`: a part of the condition is no comparison of two numbers by their order
    - `no-counter`: what is compared does not grow by a constant step
    - `bound-varies`: the counter is compared with something that may change
    - `step`: the counter stands still, or goes away from its bound
    - `float-counter`: the counter is no int64 or int32 number, and not all is fixed; or it is
      compared as a float, and neither where it starts nor its bound is fixed
    - `overflow`: the counter wraps, or that it might and then come back is not disproven
    - `unknown-type`: the type of the counter is not known
    - `few-iterations`: in `optimize`: only the run tells the trip count, and a few iterations take
      less time than the nodes in front of the loop
    """
    form = LoopForm.from_node(site.node, site.opset)
    unconditional = form.condition is None or not form.condition.initial
    if form.trip_count and unconditional and facts.condition_always_true(site, form):
        raise NothingToDo  # it is counted already
    author = Author(site.target, site.names, site.node.name or "loop")
    with author.serving(COUNT_TRIPS):
        count, note, sizes = Counter(site, form, author).count()
    counted = replace(_uncontrolled(site, form, author), trip_count=count)
    author.adopt([counted.to_node()])
    nodes = author.nodes
    covered = dead_after_rewrite(site, Integers(site), (), nodes)
    if any(size.number is None for size in sizes):  # else all that is written is folded
        refuse_few(site, nodes, covered, expected(sizes))
    return Edit(
        tuple(nodes),
        tuple(author.constants),
        note=note,
        covered=covered,
        context=context_of(site),
        tidies=True,
        extras=author.extras(nodes),
    )


def _uncontrolled(site: Site, form: LoopForm, author: Author) -> LoopForm:
    """The loop without its condition, which holds whenever the body runs and is handed on."""
    assert form.condition is not None
    inner = author.inside(f"{author.prefix}/step")
    doubts = doubts_of(site, form) - _makers_of(form.body, form.condition.body_output)
    body = RaisedBody(form, Integers(site, form.body), inner, doubts)
    going = form.condition.body_input
    body.prune(form.body_outputs[1:], form.carried, ())
    if body.reads(going) or going in form.body_outputs[1:]:
        body.rename(going, spelling.true(inner, form.condition_rank))
    go_on = inner.fresh("go_on")
    body.append(helper.make_node("Identity", [going], [go_on]))
    graph = body.with_output(0, go_on, like=going)
    fixed = scoping.initializer_names(graph)
    constants = tuple(name for name in form.constant_inputs if name in fixed)
    condition = Condition("", going, go_on)
    return replace(form, body=graph, condition=condition, constant_inputs=constants)


def _makers_of(body: GraphProto, name: str) -> set[str]:
    """All values of a body that a value is computed from, and itself."""
    found = {name}
    for node in reversed(body.node):
        if not found.isdisjoint(node.output):
            found.update(scoping.free_names(node))
    return found
