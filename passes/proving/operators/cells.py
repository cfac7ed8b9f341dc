"""Recurrent operators as recurrences, spelled out after the equations of their documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial, reduce

from onnx import defs, helper

from passes.operators.activations import Function, OpenActivations, functions_of
from passes.operators.cells import (
    DIRECTIONS,
    INITIAL_C,
    INITIAL_H,
    LENGTHS,
    RECURRENT,
    B,
    P,
    R,
    W,
    X,
)
from passes.proving.assumptions import CELLS, CELLS_NOTHING, FITS, ROWS
from passes.proving.loops.states import Iteration
from passes.proving.nodes import attributes_of, data_of
from passes.proving.operators.reductions import dot
from passes.proving.symbolic_evaluator import Application, operator
from passes.proving.terms.arrays import Array, Indices
from passes.proving.terms.term import Term

_FLOATS = {"float16", "bfloat16", "float32", "float64"}

#: A function of one element.
Activation = Callable[[Term], Term]
#: What a row has at a position.
Read = Callable[[Term], Term]


@dataclass(frozen=True)
class Step:
    """A step of the direction of number `way` in one row: `x` is what is fed, `h` and `c` are the
    states before it."""

    call: Application
    way: int
    activations: Sequence[Activation]
    x: Read
    h: Read
    c: Read

    def op(self, name: str, *args: Term) -> Term:
        """An operator by element."""
        return self.call.algebra.elementwise(name, (), self.call.array(X).dtype, args)

    def weight(self, operand: int, part: int, j: Term, *at: Term) -> Term | None:
        """An element of a part of a weight, None where that is left out."""
        array, algebra = self.call.optional(operand), self.call.algebra
        if array is None:
            return None
        place = algebra.add(algebra.scaled(self.call.array(R).shape[2], part), j)
        return array.at([algebra.whole(self.way), place, *at])

    def product(self, operand: int, part: int, j: Term, read: Read) -> Term:
        """The product of what is read with a part of W or R."""

        def pair(k: Term) -> tuple[Term, Term]:
            weight = self.weight(operand, part, j, k)
            assert weight is not None
            return read(k), weight

        return dot(self.call, self.call.array(X).dtype, self.call.array(operand).shape[2], pair)

    def added(self, first: Term, *others: Term | None) -> Term:
        """The sum of those that there are, from the left to the right."""
        return reduce(partial(self.op, "Add"), filter(None, others), first)

    def active(self, place: int, value: Term) -> Term:
        """An activation of a clipped value."""
        algebra, dtype, clip = self.call.algebra, self.call.array(X).dtype, _clip(self.call)
        if clip is not None:
            ends = algebra.literal(dtype, -clip), algebra.literal(dtype, clip)
            value = algebra.elementwise("Clip", (True, True), dtype, [value, *ends])
        return self.activations[place](value)

    def rest(self, gate: Term) -> Term:
        """What a gate leaves of 1."""
        return self.op("Sub", self.call.algebra.literal(self.call.array(X).dtype, 1), gate)

    def gate(self, gate: int, j: Term, h: Read | None = None) -> Term:
        """The sum of a gate: inputs, both biases, state."""
        gates = len(RECURRENT[self.call.op].gates)
        wb, rb = self.weight(B, gate, j), self.weight(B, gates + gate, j)
        both = None if wb is None else self.added(wb, rb)
        inputs, states = self.product(W, gate, j, self.x), self.product(R, gate, j, h or self.h)
        return self.added(inputs, both, states)

    def rnn(self, j: Term) -> list[Term]:
        """The only gate is the new state."""
        return [self.active(0, self.gate(0, j))]

    def gru(self, j: Term) -> list[Term]:
        """Gates z, r, h; `linear_before_reset` resets the product, else the state."""
        linear = bool(self.call.attributes.get("linear_before_reset"))

        def parts(gate: int, j: Term) -> tuple[Term, Term]:
            inputs = self.added(self.product(W, gate, j, self.x), self.weight(B, gate, j))
            states = self.product(R, gate, j, self.h)
            return inputs, self.added(states, self.weight(B, 3 + gate, j))

        def opened(gate: int, j: Term) -> Term:
            return self.active(0, self.added(*parts(gate, j)) if linear else self.gate(gate, j))

        z = opened(0, j)
        if linear:
            inputs, product = parts(2, j)
            inner = self.op("Add", inputs, self.op("Mul", opened(1, j), product))
        else:
            inner = self.gate(2, j, lambda k: self.op("Mul", opened(1, k), self.h(k)))
        kept = self.op("Mul", self.rest(z), self.active(1, inner))
        return [self.op("Add", kept, self.op("Mul", z, self.h(j)))]

    def lstm(self, j: Term) -> list[Term]:
        """Gates i, o, f, c; peepholes of i, o, f."""

        def opened(gate: int, memory: Term) -> Term:
            weight, total = self.weight(P, gate, j), self.gate(gate, j)
            seen = None if weight is None else self.op("Mul", weight, memory)
            return self.active(0, self.added(total, seen))

        c = self.c(j)
        i = opened(0, c)
        forget = self.rest(i) if self.call.attributes.get("input_forget") else opened(2, c)
        new = self.active(1, self.gate(3, j))
        memory = self.op("Add", self.op("Mul", forget, c), self.op("Mul", i, new))
        return [self.op("Mul", opened(1, memory), self.activations[2](memory)), memory]


@operator(*RECURRENT)
def cell(call: Application) -> list[Array]:
    """Every direction as a recurrence over the time; a row keeps its states beyond its length."""
    algebra, op, given = call.algebra, call.op, call.array(X)
    ways = DIRECTIONS.get(call.attributes["direction"].decode(), ())
    batch_first = bool(call.attributes.get("layout"))
    ranked = all(one is None or one.rank == 3 for one in (given, *call.inputs[1:3]))
    if given.dtype not in _FLOATS or not ranked or not ways:
        raise call.cannot("operator", f"{op} of {given.dtype} is not modelled")
    x, whole = given.moved(1, 0) if batch_first else given, algebra.whole(len(ways))
    time, batch, _ = x.shape
    _fits(call, whole, batch)
    functions, lengths = _activations(call, len(ways)), _lengths(call, time, batch)
    call.evaluator.assumed |= {ROWS, CELLS}
    call.evaluator.runs_over(CELLS_NOTHING, time, batch, *([algebra.zero] if lengths else []))
    starts = [call.optional(INITIAL_H + place) for place in range(len(RECURRENT[op].states))]
    starts = [one.moved(1, 0) if one and batch_first else one for one in starts]
    made = [
        _direction(call, way, backwards, x, starts, functions[way], lengths)
        for way, backwards in enumerate(ways)
    ]

    def stacked(arrays: Sequence[Array], axis: int) -> Array:
        """The arrays of the directions along a new axis."""

        def get(at: Indices) -> Term:
            values = [one.at([*at[:axis], *at[axis + 1 :]]) for one in arrays]
            first = algebra.ge0(algebra.scaled(at[axis], -1))
            return values[0] if len(ways) == 1 else algebra.ite(first, *values)

        sizes = arrays[0].shape
        return Array(algebra, x.dtype, (*sizes[:axis], whole, *sizes[axis:]), get)

    y, *ends = zip(*made, strict=True)
    outputs = [stacked(y, 1), *(stacked(one, 0) for one in ends)]
    if not batch_first:
        return outputs
    return [one.moved(one.rank - 2, 0) for one in outputs]


def _direction(
    call: Application,
    way: int,
    backwards: bool,
    x: Array,
    starts: Sequence[Array | None],
    activations: Sequence[Activation],
    lengths: Array | None,
) -> list[Array]:
    """The rows that a direction collects, [time, batch, hidden], and its final states."""
    algebra, names = call.algebra, RECURRENT[call.op].states
    time, batch, hidden = *x.shape[:2], call.array(R).shape[2]
    zero = algebra.null(x.dtype)

    def initial(given: Array | None) -> Array:
        if given is None:
            return Array(algebra, x.dtype, (batch, hidden), lambda _: zero)
        return given.read((batch, hidden), lambda at: [algebra.whole(way), *at])

    def time_of(iteration: Term) -> Term:
        last = algebra.sub(time, algebra.one)
        return algebra.sub(last, iteration) if backwards else iteration

    def runs(iteration: Term, b: Term) -> Term:
        """The condition that a row has an element at this iteration."""
        if lengths is None:
            return algebra.true
        return algebra.below(time_of(iteration), lengths.at([b]))

    variable = algebra.variable(time)
    index = algebra.lift(variable)
    initials = [initial(given) for given in starts]
    placeholders = [algebra.placeholder(x.dtype, name) for name in names]
    states = [
        array.like(algebra.applied_to(one))
        for array, one in zip(initials, placeholders, strict=True)
    ]

    @cache
    def made(b: Term, j: Term) -> list[Term]:
        h, c = (lambda k, state=state: state.at([b, k]) for state in (states[0], states[-1]))
        step = Step(call, way, activations, lambda k: x.at([time_of(index), b, k]), h, c)
        return {"RNN": step.rnn, "GRU": step.gru, "LSTM": step.lstm}[call.op](j)

    def kept(number: int, at: Indices) -> Term:
        return algebra.ite(runs(index, at[0]), made(*at)[number], states[number].at(at))

    steps = [one.like(partial(kept, number)) for number, one in enumerate(initials)]
    growth: list[Indices] = [(algebra.zero, algebra.zero)] * len(starts)
    one = Iteration(algebra, variable, placeholders, initials, steps, growth, algebra.true)
    found = one.solved()
    variables, term = initials[0].like(lambda at: made(*at)[0]).generic()
    resolved = algebra.subst(term, one.read(enumerate(found), index))

    def collected(at: Indices) -> Term:
        iteration = time_of(at[0])  # each of the two is the other one's inverse
        names = dict(zip((variable, *variables), (iteration, *at[1:]), strict=True))
        return algebra.ite(runs(iteration, at[1]), algebra.subst(resolved, names), zero)

    ends = [one.like(partial(state, time)) for one, state in zip(initials, found, strict=True)]
    return [Array(algebra, x.dtype, (time, batch, hidden), collected), *ends]


def _clip(call: Application) -> float | None:
    """The clip of all sums, None where there is none."""
    clip: float | None = call.attributes.get("clip")
    if clip is not None and not clip > 0:
        raise call.cannot("operator", "a clip of 0 or less is not modelled")
    return clip


def _fits(call: Application, count: Term, batch: Term) -> None:
    """Require the inputs to have the sizes that the document tells."""
    algebra, op, hidden = call.algebra, call.op, call.array(R).shape[2]
    whole = algebra.scaled(hidden, len(RECURRENT[op].gates))
    first = bool(call.attributes.get("layout"))
    state = (batch, count, hidden) if first else (count, batch, hidden)
    wanted: dict[int, tuple[Term, ...]] = {
        W: (count, whole, call.array(X).shape[2]),
        R: (count, whole, hidden),
        B: (count, algebra.scaled(whole, 2)),
        INITIAL_H: state,
        INITIAL_C: state,
        P: (count, algebra.scaled(hidden, 3)),
    }
    given = call.attributes.get("hidden_size")
    if given is not None:
        equal = algebra.equal(hidden, algebra.whole(given))
        call.evaluator.given(equal, "the hidden size is that of the weights")
    for position, sizes in wanted.items():
        array = call.optional(position)
        if array is None:
            continue
        if array.rank != len(sizes) or array.dtype != call.array(X).dtype:
            raise call.cannot("operator", f"an input of {op} has another rank or type")
        for size, own in zip(sizes, array.shape, strict=True):
            if size is not own:
                call.evaluator.assumed.add(FITS)
                call.evaluator.same("the sizes of its inputs agree", size, own)


def _lengths(call: Application, time: Term, batch: Term) -> Array | None:
    """The lengths as int64, which have to be within the time."""
    given, algebra = call.optional(LENGTHS), call.algebra
    if given is None:
        return None
    lengths = call.evaluator.lengths(given, algebra.zero, time)
    equal = algebra.equal(batch, lengths.shape[0])
    call.evaluator.given(equal, "there are as many lengths as rows")
    return lengths


def _activations(call: Application, ways: int) -> list[list[Activation]]:
    """The activations of each direction.

    Raises:
        NotProvable: one is unknown, or has no parameter where runtimes differ.
    """
    try:
        found = functions_of(call.node, ways)
    except OpenActivations as error:
        raise call.cannot("operator", f"{error}") from error
    return [[_activation(call, one) for one in own] for own in found]


def _activation(call: Application, function: Function) -> Activation:
    algebra, dtype = call.algebra, call.array(X).dtype
    name, parameters = function.activation.name, function.parameters
    if not function.activation.is_operator:  # alpha * f(beta * x), or alpha * x + beta
        alpha, beta = (algebra.literal(dtype, one) for one in parameters.values())

        def op(name: str, *args: Term) -> Term:
            return algebra.elementwise(name, (), dtype, args)

        if name == "Affine":
            return lambda x: op("Add", op("Mul", alpha, x), beta)
        return lambda x: op("Mul", alpha, op("Tanh", op("Mul", beta, x)))
    node, version = (
        helper.make_node(name, [], [], **parameters),
        defs.get_schema(name).since_version,
    )
    attributes = data_of(attributes_of(node, version))
    return lambda x: algebra.elementwise(name, attributes, dtype, [x])
