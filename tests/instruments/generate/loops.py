"""Loop in its modes: for, while, do-while, both, and forever where it is never reached."""

from __future__ import annotations

from dataclasses import replace

from onnx import helper

from tests.instruments.generate.block import Block, Iteration, NotHere
from tests.instruments.generate.bodies import (
    a_shape,
    body_of,
    carried,
    dtype,
    fill,
    initial,
    nested,
    op_count,
    some_of,
    updated,
)
from tests.instruments.generate.counters import Counter, trips_by_a_cast
from tests.instruments.generate.moved import behind
from tests.instruments.generate.odd import odd
from tests.instruments.generate.ops_shapes import with_axes
from tests.instruments.generate.templates import template
from tests.instruments.generate.values import BOOL, INT64, Dim, Shape, Value

_SEQUENCES_ARE_CARRIED = 13


@nested
def counted(b: Block) -> None:
    """A for: a trip count, no condition. What the body says may end it all the same."""
    trips, dim, below = _trips(b)
    if not b.odd("no-cond"):
        _loop(b, trips, None, dim, below, "")
        return
    ends = b.choices.pick(["iteration", "data", "limited", "same", "always"])
    stays = ends in ("same", "always")
    _loop(b, trips, None, dim if stays else b.program.symbol(), below, ends)


@odd("counters")
def counting(b: Block) -> None:
    """A loop whose end a counter tells."""
    counter = Counter(b)
    _loop(b, counter.trips, counter.start, b.program.symbol(), (), "counter", counter)


@nested
def conditional(b: Block) -> None:
    """A while, with a trip count as well or without."""
    trips, _, below = _trips(b)
    ends = b.choices.pick(["iteration", "data", "same"])
    start = condition(b)
    if b.choices.one_in(2):
        _loop(b, None, start, b.program.symbol(), (), "limited")
    else:
        _loop(b, trips, start, b.program.symbol(), below, ends)


@nested
def forever(b: Block) -> None:
    """A Loop without trip count and condition, in a branch that is never taken."""
    if not b.choices.one_in(4) or b.function:
        raise NotHere
    yes, state = b.scalar(1, BOOL), Value("", INT64, ())
    then, other = b.inner(), b.inner()
    taken = replace(state, name=then.op("Identity", b.want(INT64, ())).name)
    body, (number, going, held) = body_of(other, [Value("", INT64, ()), Value("", BOOL, ()), state])
    ends = [body.op("Identity", going), body.op("Add", held, number)]
    result = replace(state, name=other.name())
    loop = helper.make_node(
        "Loop",
        ["", "", b.want(INT64, ()).name],
        [result.name],
        body=body.graph("endless", [number, going, held], ends),
    )
    other.add(loop, [result])
    made = replace(state, name=b.name())
    node = helper.make_node(
        "If",
        [yes.name],
        [made.name],
        then_branch=then.graph("then", [], [taken]),
        else_branch=other.graph("else", [], [result]),
    )
    b.add(node, [made])


def condition(b: Block) -> Value:
    """A bool to decide by, never a rounded one, and at times one of a vector."""
    made = _condition(b)
    return of_shape(b, made, (1,)) if b.odd("ones") else made


def of_shape(b: Block, value: Value, shape: Shape) -> Value:
    """A value of one element, of that shape."""
    return value if value.shape == shape else b.op("Reshape", value, b.ints(*map(int, shape)))


def _condition(b: Block) -> Value:
    kind = b.choices.below(4)
    if kind == 0 or (kind == 1 and b.function):
        return b.scalar(1 - b.choices.one_in(4), BOOL)
    if kind == 1:
        return b.want(BOOL, (), smooth=True)
    if b.program.opset < 9:
        return b.op("Equal", b.want(INT64, (), smooth=True), b.want(INT64, (), smooth=True))
    less = b.op("Less", b.want(INT64, (), smooth=True), b.want(INT64, (), smooth=True))
    return b.estranged(less)


def _trips(b: Block) -> tuple[Value, Dim, tuple[Dim, ...]]:
    """A trip count, the dim of what is collected, and the dims that iterations stay below."""
    kind = b.choices.below(4)
    if kind == 0 or b.function:
        count = b.choices.pick((2, 1, 3, 5, 0, -1) if b.choices.one_in(3) else (2, 1, 3))
        dims = tuple(range(count, 6)) if count > 0 else ()
        value = b.ints(count) if b.choices.one_in(4) else b.scalar(count)
        if b.odd("counters"):
            return trips_by_a_cast(b, count), max(0, count), dims
        return value, max(0, count), dims
    if kind == 1:
        shape = (1,) if b.odd("ones") else ()
        count_read = b.input(INT64, shape, "count")
        return b.estranged(b.op("Identity", count_read)), b.program.symbol(), ()
    read = b.pick(lambda v: not v.sequence and v.rank > 0)
    axis = b.choices.below(read.rank)
    size = b.op("Gather", b.op("Shape", read), b.scalar(axis))
    return size, read.shape[axis], (read.shape[axis],)


def _loop(
    b: Block,
    trips: Value | None,
    start: Value | None,
    dim: Dim,
    below: tuple[Dim, ...],
    ends: str,
    counter: Counter | None = None,
) -> None:
    fewest = b.program.opset < 11  # Loop-1 must carry something
    states = [carried(b) for _ in range(max(fewest, b.choices.below(4)))]
    fed = [initial(b, state) for state in states]
    growing = _Growing(b) if b.choices.one_in(4) else None
    taken = [*_head(b, start), *states, *([growing.before] if growing else [])]
    taken += [counter.held] if counter else []
    inner, inputs = body_of(b, taken)
    number, going, *held = inputs
    inner.iteration = Iteration(number, below)
    if start is None:  # what a body reads where there is no condition, is not said
        inner.visible.remove(going)
    fill(inner, op_count(b))
    inner.plain = ends == "limited"
    if counter:
        ends_as, goes_on = counter.write(inner, held[-1])
    else:
        goes_on = _going_on(inner, number, going, ends)
    if going in inner.visible and not inner.choices.one_in(4):
        goes_on = of_shape(inner, goes_on, going.shape)
    outputs = [replace(goes_on, name=inner.returned(goes_on))]
    inner.plain = False
    ends_of = [updated(inner, state) for state in held[: len(states)]]
    if growing:
        ends_of.append(growing.write(inner, held[len(states)]))
    if counter:
        ends_of.append(ends_as)
    wanted = b.choices.below(3) + (not held)
    collected = [some_of(inner, lambda value: True) for _ in range(wanted)]
    outputs += [replace(one, name=inner.returned(one)) for one in (*ends_of, *collected)]
    if len({output.name for output in outputs}) < len(outputs):
        raise NotHere
    results = [replace(state, name=b.name()) for state in states]
    if growing:
        fed.append(growing.initial)
        results.append(replace(growing.after, name=b.name()))
    if counter:
        fed.append(counter.initial)
        results.append(replace(counter.held, name=b.name()))
    results += [
        replace(collected, name=b.name(), shape=(dim, *collected.shape), data=None)
        for collected in collected
    ]
    read = [one.name if one else "" for one in (trips, start, *fed)]
    body = inner.graph("body", inputs, outputs)
    b.add(helper.make_node("Loop", read, [result.name for result in results], body=body), results)
    behind(b, results)


def _head(b: Block, start: Value | None) -> list[Value]:
    """The iteration number and the condition: both may be of shape [1], the condition where the
    first one is, or where there is none."""
    number: Shape = (1,) if b.odd("ones") else ()
    going: Shape = (1,) if start is None and b.odd("ones") else ()
    return [Value("", INT64, number), Value("", BOOL, start.shape if start else going)]


def _going_on(b: Block, number: Value, going: Value, ends: str) -> Value:
    """The condition that a body returns."""
    if ends == "iteration":
        return _less(b, number, b.want(INT64, (), smooth=True))
    if ends == "data":
        return b.pick(lambda v: v.like(BOOL, ()) and not v.rough)
    if ends == "limited":  # nothing else ends the loop
        limit = _less(b, number, b.scalar(b.choices.below(4)))
        if b.choices.one_in(2):
            return limit
        return b.op("And", limit, b.pick(lambda v: v.like(BOOL, ()) and not v.rough))
    if ends == "always":
        return b.scalar(1, BOOL)
    return going


def _less(b: Block, left: Value, right: Value) -> Value:
    """left < right; whole numbers are compared as floats where the opset knows no better."""
    if b.program.opset >= 9:
        return b.op("Less", left, right)
    return b.op("Less", b.op("Cast", left, to=1), b.op("Cast", right, to=1))


class _Growing:
    """A carried value that grows: a tensor that rows are joined to, or a sequence."""

    def __init__(self, b: Block) -> None:
        self.sequence = b.program.opset >= _SEQUENCES_ARE_CARRIED and b.choices.one_in(2)
        self.element = Value("", dtype(b), a_shape(b), rough=True)
        element = self.element
        if self.sequence:
            empty = replace(element, name=b.name(), sequence=True)
            b.add(helper.make_node("SequenceEmpty", [], [empty.name], dtype=element.elem), [empty])
            self.initial, self.before, self.after = empty, empty, empty
        else:
            shape = element.shape
            self.initial = b.want(element.elem, (b.choices.below(2), *shape))
            self.before = replace(element, shape=(b.program.symbol(), *shape))
            self.after = replace(element, shape=(b.program.symbol(), *shape))

    def write(self, b: Block, held: Value) -> Value:
        element = b.want(self.element.elem, self.element.shape)
        if self.sequence:
            return b.op("SequenceInsert", held, element)
        row = with_axes(b, "Unsqueeze", 13, element, [0])
        pair = [row, held] if b.choices.one_in(4) else [held, row]
        return b.op("Concat", *pair, axis=0)


@template(3)
def read_at_the_iteration(b: Block) -> None:
    """A slice that the iteration number finds: forwards, backwards, or by Slice."""
    if b.iteration is None:
        raise NotHere
    number, below = b.iteration.number, b.iteration.below
    x = b.pick(lambda v: not v.sequence and any(dim in below for dim in v.shape))
    axis = next(i for i, dim in enumerate(x.shape) if dim in below)
    kind = b.choices.below(3)
    if kind == 2 and b.program.opset >= 13:
        first = b.op("Unsqueeze", number, b.ints(0)) if not number.rank else number
        b.op("Slice", x, first, b.op("Add", first, b.ints(1)), b.ints(axis))
        return
    if kind == 1:
        size = b.op("Gather", b.op("Shape", x), b.scalar(axis))
        number = b.op("Sub", b.op("Sub", size, b.scalar(1)), number)
    b.op("Gather", x, number, axis=axis)
