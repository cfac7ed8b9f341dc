"""Recurrent operators as recurrences, spelled out after the equations of their documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import NodeProto, defs

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
    activation_named,
)
from passes.proving.assumptions import CELLS, CELLS_NOTHING, FITS, ROWS
from passes.proving.loops.closed_forms import State
from passes.proving.loops.states import Iteration, before, solved
from passes.proving.operators.elementwise import exact
from passes.proving.operators.reductions import dot
from passes.proving.symbolic_evaluator import Application, attributes_of, operator
from passes.proving.terms.algebra import INT64, Algebra
from passes.proving.terms.arrays import Array, Indices
from passes.proving.terms.term import Term

_FLOATS = {"float16", "bfloat16", "float32", "float64"}

#: A function of one element.
Activation = Callable[[Term], Term]
#: What a state was before the step, at a position in the row that is studied.
Read = Callable[[Term], Term]


@dataclass(frozen=True)
class Direction:
    """The step of one direction: `inputs` is the product of the inputs with the part of W that
    belongs to a gate, at a time, a row and a position, `time` what an iteration reads."""

    call: Application
    way: int
    dtype: str
    hidden: Term
    activations: Sequence[Activation]
    clip: float | None
    inputs: Callable[[int, Term, Term, Term], Term]
    time: Callable[[Term], Term]

    @property
    def algebra(self) -> Algebra:
        """The terms."""
        return self.call.algebra

    def op(self, name: str, *args: Term) -> Term:
        """An operator by element."""
        return self.algebra.elementwise(name, (), self.dtype, args)

    def number(self, value: float) -> Term:
        """A constant."""
        return self.algebra.literal(self.dtype, np.dtype(self.dtype).type(value))

    def bias(self, place: int, j: Term) -> Term | None:
        """A part of the biases."""
        b = self.call.optional(B)
        return None if b is None else b.at([self.algebra.whole(self.way), self.part(place, j)])

    def part(self, place: int, j: Term) -> Term:
        """The position of an element in one of the parts of a weight."""
        return self.algebra.add(self.algebra.scaled(self.hidden, place), j)

    def product(self, gate: int, state: Read, j: Term) -> Term:
        """The product of a state with a part of R."""
        r, way = self.call.array(R), self.algebra.whole(self.way)

        def pair(k: Term) -> tuple[Term, Term]:
            return state(k), r.at([way, self.part(gate, j), k])

        return dot(self.call, self.dtype, self.hidden, pair)

    def added(self, *terms: Term | None) -> Term:
        """The sum of those that there are, from the left to the right."""
        given = [one for one in terms if one is not None]
        total = given[0]
        for one in given[1:]:
            total = self.op("Add", total, one)
        return total

    def active(self, place: int, value: Term) -> Term:
        """An activation of a clipped value."""
        if self.clip is not None:
            ends = [self.number(-self.clip), self.number(self.clip)]
            value = self.algebra.elementwise("Clip", (True, True), self.dtype, [value, *ends])
        return self.activations[place](value)

    def gate(self, gate: int, at: tuple[Term, Term, Term], h: Read) -> Term:
        """The sum of a gate: inputs, both biases, state."""
        j = at[-1]
        gates = len(RECURRENT[self.call.op].gates)
        wb, rb = self.bias(gate, j), self.bias(gates + gate, j)
        both = None if wb is None or rb is None else self.op("Add", wb, rb)
        return self.added(self.inputs(gate, *at), both, self.product(gate, h, j))

    def rnn(self, at: tuple[Term, Term, Term], h: Read) -> list[Term]:
        """The only gate is the new state."""
        return [self.active(0, self.gate(0, at, h))]

    def gru(self, at: tuple[Term, Term, Term], h: Read) -> list[Term]:
        """Gates z, r, h; `linear_before_reset` resets the product, else the state."""
        j = at[-1]
        linear = bool(self.call.attributes.get("linear_before_reset"))

        def parts(gate: int, j: Term) -> tuple[Term, Term]:
            inputs = self.added(self.inputs(gate, at[0], at[1], j), self.bias(gate, j))
            return inputs, self.added(self.product(gate, h, j), self.bias(3 + gate, j))

        def opened(gate: int, j: Term) -> Term:
            total = self.added(*parts(gate, j)) if linear else self.gate(gate, (*at[:2], j), h)
            return self.active(0, total)

        z = opened(0, j)
        if linear:
            inputs, product = parts(2, j)
            inner = self.op("Add", inputs, self.op("Mul", opened(1, j), product))
        else:
            inner = self.gate(2, at, lambda k: self.op("Mul", opened(1, k), h(k)))
        new = self.active(1, inner)
        rest = self.op("Mul", self.op("Sub", self.number(1), z), new)
        return [self.op("Add", rest, self.op("Mul", z, h(j)))]

    def lstm(self, at: tuple[Term, Term, Term], h: Read, c: Read) -> list[Term]:
        """Gates i, o, f, c; peepholes of i, o, f."""
        j = at[-1]

        def seen(gate: int, memory: Term) -> Term:
            holes, total = self.call.optional(P), self.gate(gate, at, h)
            if holes is None:
                return total
            weight = holes.at([self.algebra.whole(self.way), self.part(gate, j)])
            return self.op("Add", total, self.op("Mul", weight, memory))

        i = self.active(0, seen(0, c(j)))
        coupled = bool(self.call.attributes.get("input_forget"))
        forget = self.op("Sub", self.number(1), i) if coupled else self.active(0, seen(2, c(j)))
        new = self.active(1, self.gate(3, at, h))
        memory = self.op("Add", self.op("Mul", forget, c(j)), self.op("Mul", i, new))
        out = self.active(0, seen(1, memory))
        return [self.op("Mul", out, self.activations[2](memory)), memory]


@operator(*RECURRENT)
def cell(call: Application) -> list[Array]:
    """Every direction as a recurrence over the time; a row keeps its states beyond its length."""
    x, algebra, op = call.array(X), call.algebra, call.op
    ways = DIRECTIONS.get(call.attributes["direction"].decode(), ())
    first = bool(call.attributes.get("layout"))
    if x.dtype not in _FLOATS or any(one and one.rank != 3 for one in (x, *call.inputs[1:3])):
        raise call.cannot("operator", f"{op} of {x.dtype} is not modelled")
    clip = call.attributes.get("clip")
    if clip is not None and not clip > 0:
        raise call.cannot("operator", "a clip of 0 or less is not modelled")
    time, batch, hidden = x.shape[int(first)], x.shape[int(not first)], call.array(R).shape[2]
    _fits(call, len(ways), batch, hidden)
    functions = _activations(call, len(ways))
    lengths = _lengths(call, time, batch)
    call.evaluator.assumed |= {ROWS, CELLS}
    call.evaluator.runs_over(CELLS_NOTHING, time, batch, *([algebra.zero] if lengths else []))
    rows, finals = [], []
    for way, backwards in enumerate(ways):

        def element(gate: int, t: Term, b: Term, j: Term, way: int = way) -> Term:
            w = call.array(W)
            place = algebra.add(algebra.scaled(hidden, gate), j)

            def pair(k: Term) -> tuple[Term, Term]:
                return x.at([b, t, k] if first else [t, b, k]), w.at([algebra.whole(way), place, k])

            return dot(call, x.dtype, x.shape[2], pair)

        direction = Direction(
            call,
            way,
            x.dtype,
            hidden,
            functions[way],
            clip,
            element,
            _backwards(algebra, time) if backwards else _forwards,
        )
        row, ends = _run(direction, time, batch, lengths)
        rows.append(row)
        finals.append(ends)
    whole = algebra.whole(len(ways))
    shape = (batch, time, whole, hidden) if first else (time, whole, batch, hidden)
    order = (1, 2, 0, 3) if first else (0, 1, 2, 3)  # where time, way, row and position are

    def y(at: Indices) -> Term:
        t, way, b, j = (at[place] for place in order)
        return _chosen(algebra, way, [one.at([t, b, j]) for one in rows])

    outputs = [Array(algebra, x.dtype, shape, y)]
    for number in range(len(finals[0])):
        outputs.append(_final(call, [ends[number] for ends in finals], (batch, hidden), first))
    return outputs


def _forwards(iteration: Term) -> Term:
    return iteration


def _backwards(algebra: Algebra, time: Term) -> Callable[[Term], Term]:
    last = algebra.sub(time, algebra.one)
    return lambda iteration: algebra.sub(last, iteration)


def _final(
    call: Application, ends: Sequence[Array], sizes: tuple[Term, Term], first: bool
) -> Array:
    algebra, (batch, hidden) = call.algebra, sizes
    whole = algebra.whole(len(ends))

    def get(at: Indices) -> Term:
        b, way = (at[0], at[1]) if first else (at[1], at[0])
        return _chosen(algebra, way, [one.at([b, at[2]]) for one in ends])

    shape = (batch, whole, hidden) if first else (whole, batch, hidden)
    return Array(algebra, ends[0].dtype, shape, get)


def _chosen(algebra: Algebra, way: Term, values: Sequence[Term]) -> Term:
    """The value of a direction."""
    if len(values) == 1:
        return values[0]
    return algebra.ite(algebra.ge0(algebra.scaled(way, -1)), *values)


def _run(
    one: Direction, time: Term, batch: Term, lengths: Array | None
) -> tuple[Array, list[Array]]:
    """The rows that a direction collects, [time, batch, hidden], and its final states."""
    call, algebra, dtype = one.call, one.algebra, one.dtype
    first = bool(call.attributes.get("layout"))
    zero, way = one.number(0), algebra.whole(one.way)
    names = RECURRENT[call.op].states
    starts = [call.optional(INITIAL_H + place) for place in range(len(names))]

    def initial(given: Array | None) -> Array:
        if given is None:
            return Array(algebra, dtype, (batch, one.hidden), lambda at: zero)
        return Array(
            algebra,
            dtype,
            (batch, one.hidden),
            lambda at: given.at([at[0], way, at[1]] if first else [way, at[0], at[1]]),
        )

    initials = [initial(given) for given in starts]
    index = algebra.variable(time)
    placeholders = [algebra.placeholder(dtype, name) for name in names]
    states = [algebra.applied_to(placeholder) for placeholder in placeholders]
    kinds: dict[str, Callable[..., list[Term]]]
    kinds = {"RNN": one.rnn, "GRU": one.gru, "LSTM": one.lstm}
    memo: dict[Indices, list[Term]] = {}

    def made(number: int, at: Indices) -> Term:
        b, j = at
        if at not in memo:
            zeroed = algebra.zero if batch is algebra.one else b
            reads = [
                lambda k, state=state: state(
                    (zeroed, algebra.zero if one.hidden is algebra.one else k)
                )
                for state in states
            ]
            memo[at] = kinds[call.op]((one.time(algebra.lift(index)), b, j), *reads)
        return memo[at][number]

    def runs(iteration: Term, b: Term) -> Term:
        """The condition that a row has an element at this iteration."""
        if lengths is None:
            return algebra.true
        place = algebra.add(one.time(iteration), algebra.one)
        return algebra.ge0(algebra.sub(lengths.at([b]), place))

    def kept(number: int) -> Callable[[Indices], Term]:
        def get(at: Indices) -> Term:
            old = states[number](at)
            return algebra.ite(runs(algebra.lift(index), at[0]), made(number, at), old)

        return get

    steps = [initials[n].like(kept(n)) for n in range(len(starts))]
    growth: list[tuple[Term, ...]] = [(algebra.zero, algebra.zero)] * len(starts)
    one_step = Iteration(index, placeholders, initials, steps, [], algebra.true, [], growth)
    found = solved(algebra, one_step, initials)
    plain = initials[0].like(lambda at: made(0, at))
    variables, term = plain.generic()
    at_index = algebra.lift(index)
    values = {p: before(state, at_index) for p, state in zip(placeholders, found, strict=True)}
    resolved = algebra.subst(term, {**values})

    def collected(at: Indices) -> Term:
        iteration = one.time(at[0])  # each of the two is the other one's inverse
        names = dict(zip((index, *variables), (iteration, *at[1:]), strict=True))
        return algebra.ite(runs(iteration, at[1]), algebra.subst(resolved, names), zero)

    row = Array(algebra, dtype, (time, batch, one.hidden), collected)
    return row, [_end(array, state, time) for array, state in zip(initials, found, strict=True)]


def _end(array: Array, state: State, time: Term) -> Array:
    return array.like(lambda at: state(time, at))


def _fits(call: Application, ways: int, batch: Term, hidden: Term) -> None:
    """Require the inputs to have the sizes that the document tells."""
    algebra, op, first = call.algebra, call.op, bool(call.attributes.get("layout"))
    gates, count = len(RECURRENT[op].gates), algebra.whole(ways)
    whole = algebra.scaled(hidden, gates)
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
        call.evaluator.given(
            algebra.eq0(algebra.sub(hidden, algebra.whole(given))),
            "the hidden size is that of the weights",
        )
    for position, sizes in wanted.items():
        array = call.optional(position)
        if array is None:
            continue
        if array.rank != len(sizes) or array.dtype != call.array(X).dtype:
            raise call.cannot("operator", f"an input of {op} has another rank or type")
        for size, own in zip(sizes, array.shape, strict=True):
            if size is not own:
                call.evaluator.assumed.add(FITS)
                call.evaluator.same(size, own, "the sizes of its inputs agree")


def _lengths(call: Application, time: Term, batch: Term) -> Array | None:
    """The lengths as int64, which have to be within the time."""
    found, algebra = call.optional(LENGTHS), call.algebra
    if found is None:
        return None
    if found.rank != 1 or found.dtype not in ("int32", INT64):
        raise call.cannot("operator", f"lengths are {found.dtype} of rank {found.rank}")
    call.evaluator.given(
        algebra.eq0(algebra.sub(batch, found.shape[0])), "there are as many lengths as rows"
    )
    lengths = found
    if found.dtype != INT64:
        lengths = found.like(
            lambda at: algebra.elementwise("Cast", (found.dtype, ()), INT64, [found.at(at)]), INT64
        )
    call.evaluator.for_each(
        lengths,
        lambda n: algebra.all((algebra.ge0(n), algebra.ge0(algebra.sub(time, n)))),
        "a length is within the time",
    )
    return lengths


def _activations(call: Application, ways: int) -> list[list[Activation]]:
    """The activations of each direction; parameters are handed out in order.

    Raises:
        NotProvable: one is unknown, or has no parameter where runtimes differ.
    """
    default = RECURRENT[call.op].activations
    given = call.attributes.get("activations")
    names = [one.decode() for one in given] if given else [*default] * ways
    if len(names) < len(default) * ways or not ways:
        raise call.cannot("operator", f"{len(names)} activations, not {len(default) * ways}")
    lists = {n: iter(call.attributes.get(f"activation_{n}") or ()) for n in ("alpha", "beta")}
    found = [_activation(call, name, lists) for name in names]
    size = len(default)
    return [found[way * size : (way + 1) * size] for way in range(ways)]


def _activation(
    call: Application, written: str, lists: Mapping[str, Iterator[float]]
) -> Activation:
    meaning = activation_named(written)
    if meaning is None:
        raise call.cannot("operator", f"the activation {written!r} is not modelled")
    name = meaning.name
    given = {one: next(lists[one], None) for one in meaning.parameters}
    if any(value is None and meaning.default(one) is None for one, value in given.items()):
        raise call.cannot("operator", f"{name} has no parameters")
    algebra, dtype = call.algebra, call.array(X).dtype

    def op(name: str, *args: Term) -> Term:
        return algebra.elementwise(name, (), dtype, args)

    numbers = [
        algebra.literal(dtype, np.dtype(dtype).type(one))
        for one in given.values()
        if one is not None
    ]
    if name == "Affine":
        alpha, beta = numbers
        return lambda x: op("Add", op("Mul", alpha, x), beta)
    if name == "ScaledTanh":
        alpha, beta = numbers
        return lambda x: op("Mul", alpha, op("Tanh", op("Mul", beta, x)))
    version = defs.get_schema(name).since_version
    known = attributes_of(NodeProto(op_type=name), version)
    known |= {one: value for one, value in given.items() if value is not None}
    meant = tuple((one, exact(value)) for one, value in sorted(known.items()))
    return lambda x: algebra.elementwise(name, meant, dtype, [x])
