"""RNN, GRU and LSTM, with lengths, clipping, activations and directions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from passes.verify.executor import Array
from passes.verify.reference.ops.activations import Activation, activations
from passes.verify.reference.registry import Call, implements

#: Takes the element [batch, input] and the states [batch, hidden], gives the next states.
Cell = Callable[[Array, list[Array]], list[Array]]


@dataclass(frozen=True)
class Weights:
    """What one direction uses; `w` and `r` transposed, biases as rows."""

    w: Array
    r: Array
    wb: Array
    rb: Array
    functions: list[Activation]
    clip: float | None

    def clipped(self, x: Array) -> Array:
        """The argument of an activation, clipped if the node asks for it."""
        return x if self.clip is None else np.clip(x, -self.clip, self.clip)


@implements("RNN", since=7)
def rnn(
    call: Call,
    x: Array,
    w: Array,
    r: Array,
    b: Array | None = None,
    lengths: Array | None = None,
    h0: Array | None = None,
) -> tuple[Array, ...]:
    """RNN-7 to -22: Y [T, directions, batch, hidden] and Y_h [directions, batch, hidden].

    Behind the length of a row Y is 0 and the state stays; a reversed row starts at its last
    valid element. With `layout=1` batch comes first. Raises ValueError for a bad direction.
    """

    def cell(weights: Weights, _: int) -> Cell:
        def step(element: Array, states: list[Array]) -> list[Array]:
            (h,) = states
            total = element @ weights.w + h @ weights.r + weights.wb + weights.rb
            return [weights.functions[0](weights.clipped(total))]

        return step

    return _run(call, (x, w, r, b, lengths), [h0], cell, gates=1, names=["Tanh"])


@implements("GRU", since=7)
def gru(
    call: Call,
    x: Array,
    w: Array,
    r: Array,
    b: Array | None = None,
    lengths: Array | None = None,
    h0: Array | None = None,
) -> tuple[Array, ...]:
    """GRU-7 to -22: gates z, r, h; see `rnn` for shapes, lengths and errors."""
    linear = bool(call.get("linear_before_reset", 0))

    def cell(weights: Weights, _: int) -> Cell:
        f, g = weights.functions
        rz, rr, rh = np.split(weights.r, 3, 1)
        bz, br, bh = np.split(weights.rb, 3)

        def step(element: Array, states: list[Array]) -> list[Array]:
            (h,) = states
            xz, xr, xh = np.split(element @ weights.w + weights.wb, 3, 1)
            z = f(weights.clipped(xz + h @ rz + bz))
            reset = f(weights.clipped(xr + h @ rr + br))
            inner = reset * (h @ rh + bh) if linear else (reset * h) @ rh + bh
            return [(1 - z) * g(weights.clipped(xh + inner)) + z * h]

        return step

    return _run(call, (x, w, r, b, lengths), [h0], cell, gates=3, names=["Sigmoid", "Tanh"])


@implements("LSTM", since=7)
def lstm(
    call: Call,
    x: Array,
    w: Array,
    r: Array,
    b: Array | None = None,
    lengths: Array | None = None,
    h0: Array | None = None,
    c0: Array | None = None,
    peepholes: Array | None = None,
) -> tuple[Array, ...]:
    """LSTM-7 to -22: gates i, o, f, c; Y, Y_h and Y_c; see `rnn` for the rest.

    `peepholes` [directions, 3 * hidden] are those of i, o and f; with `input_forget` the
    forget gate is 1 - i.
    """
    coupled = bool(call.get("input_forget", 0))

    def cell(weights: Weights, way: int) -> Cell:
        f, g, last = weights.functions
        hidden = weights.r.shape[0]
        holes = np.zeros(3 * hidden, x.dtype) if peepholes is None else peepholes[way]
        pi, po, pf = np.split(holes, 3)

        def step(element: Array, states: list[Array]) -> list[Array]:
            h, c = states
            total = element @ weights.w + h @ weights.r + weights.wb + weights.rb
            i, o, forget, candidate = np.split(total, 4, 1)
            i = f(weights.clipped(i + pi * c))
            forget = 1 - i if coupled else f(weights.clipped(forget + pf * c))
            memory = forget * c + i * g(weights.clipped(candidate))
            o = f(weights.clipped(o + po * memory))
            return [o * last(memory), memory]

        return step

    names = ["Sigmoid", "Tanh", "Tanh"]
    return _run(call, (x, w, r, b, lengths), [h0, c0], cell, gates=4, names=names)


def _run(
    call: Call,
    operands: tuple[Array, Array, Array, Array | None, Array | None],
    initial: list[Array | None],
    cell: Callable[[Weights, int], Cell],
    *,
    gates: int,
    names: list[str],
) -> tuple[Array, ...]:
    x, w, r, b, lengths = operands
    batch_first = bool(call.get("layout", 0))
    if batch_first:
        x = np.swapaxes(x, 0, 1)
        initial = [None if state is None else np.swapaxes(state, 0, 1) for state in initial]
    backwards = _directions(call.get("direction", "forward"), len(w))
    hidden, batch = r.shape[-1], x.shape[1]
    rows = np.full(batch, len(x)) if lengths is None else lengths
    if rows.shape != (batch,) or (batch and not 0 <= rows.min() <= rows.max() <= len(x)):
        raise ValueError(f"sequence_lens {rows.tolist()} for {batch} rows of {len(x)}")
    blank = np.zeros((len(w), batch, hidden), x.dtype)
    starts = [blank if state is None else state for state in initial]
    every, finals = [], []
    for way, reverse in enumerate(backwards):
        weights = _weights(call, (w, r, b), way, gates, names)
        states = [state[way] for state in starts]
        whole, last = _direction(x, rows, states, cell(weights, way), reverse=reverse)
        every.append(whole)
        finals.append(last)
    y = np.stack(every, 1)
    ends = [np.stack([states[k] for states in finals]) for k in range(len(initial))]
    if batch_first:
        y = np.transpose(y, (2, 0, 1, 3))
        ends = [np.swapaxes(state, 0, 1) for state in ends]
    return (y.astype(x.dtype), *(state.astype(x.dtype) for state in ends))


def _directions(direction: str, ways: int) -> list[bool]:
    known = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}
    if direction not in known or len(known[direction]) != ways:
        raise ValueError(f"direction {direction!r} with weights of {ways} directions")
    return known[direction]


def _weights(
    call: Call, operands: tuple[Array, Array, Array | None], way: int, gates: int, names: list[str]
) -> Weights:
    w, r, b = operands
    hidden = r.shape[-1]
    biases = np.zeros(2 * gates * hidden, w.dtype) if b is None else b[way]
    functions = activations(
        call.get("activations") or names * len(w),
        call.get("activation_alpha") or [],
        call.get("activation_beta") or [],
    )
    own = functions[way * len(names) : (way + 1) * len(names)]
    wb, rb = np.split(biases, 2)
    return Weights(w[way].T, r[way].T, wb, rb, own, call.get("clip"))


def _direction(
    x: Array, rows: Array, states: list[Array], step: Cell, *, reverse: bool
) -> tuple[Array, list[Array]]:
    """One direction over all rows at once: Y [T, batch, hidden] and the final states."""
    length, batch = x.shape[:2]
    y = np.zeros((length, batch, states[0].shape[-1]), x.dtype)
    each = np.arange(batch)
    for time in range(length):
        active = time < rows
        at = np.where(active, rows - 1 - time, 0) if reverse else np.full(batch, time)
        after = step(x[at, each], states)
        states = [np.where(active[:, None], b, a) for a, b in zip(states, after, strict=True)]
        y[at[active], each[active]] = states[0][active]
    return y, states
