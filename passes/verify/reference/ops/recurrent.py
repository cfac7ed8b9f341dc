"""RNN, GRU and LSTM, with lengths, clipping, activations and directions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passes.verify.executor import Array
from passes.verify.reference.ops.cells import Cell, Weights, run_cells
from passes.verify.reference.registry import KernelCall, implements


@implements("RNN", since=7)
def rnn(
    call: KernelCall,
    x: Array,
    w: Array,
    r: Array,
    b: Array | None = None,
    lengths: Array | None = None,
    h0: Array | None = None,
) -> tuple[Array, ...]:
    """RNN-7 to -22: Y [T, directions, batch, hidden] and Y_h [directions, batch, hidden].

    After the length of a row Y is 0 and the state stays; a reversed row starts at its last
    valid element. With `layout=1` batch comes first. Raises ValueError for a bad direction.
    """

    def cell(weights: Weights, _: int) -> Cell:
        def step(element: Array, states: list[Array]) -> list[Array]:
            (h,) = states
            total = element @ weights.w + h @ weights.r + weights.wb + weights.rb
            return [weights.functions[0](weights.clipped(total))]

        return step

    return run_cells(call, (x, w, r, b, lengths), [h0], cell, gates=1, names=["Tanh"])


@implements("GRU", since=7)
def gru(
    call: KernelCall,
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

    return run_cells(call, (x, w, r, b, lengths), [h0], cell, gates=3, names=["Sigmoid", "Tanh"])


@implements("LSTM", since=7)
def lstm(
    call: KernelCall,
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
        holes = [] if peepholes is None else np.split(peepholes[way], 3)
        return _lstm_cell(weights, holes, coupled=coupled)

    names = ["Sigmoid", "Tanh", "Tanh"]
    return run_cells(call, (x, w, r, b, lengths), [h0, c0], cell, gates=4, names=names)


def _lstm_cell(weights: Weights, holes: Sequence[Array], *, coupled: bool) -> Cell:
    """Without peepholes nothing is added: 0 times an infinite memory would be NaN."""
    f, g, last = weights.functions

    def seen(gate: Array, place: int, memory: Array) -> Array:
        return gate + holes[place] * memory if holes else gate

    def step(element: Array, states: list[Array]) -> list[Array]:
        h, c = states
        total = element @ weights.w + h @ weights.r + weights.wb + weights.rb
        i, o, forget, candidate = np.split(total, 4, 1)
        i = f(weights.clipped(seen(i, 0, c)))
        forget = 1 - i if coupled else f(weights.clipped(seen(forget, 2, c)))
        memory = forget * c + i * g(weights.clipped(candidate))
        o = f(weights.clipped(seen(o, 1, memory)))
        return [o * last(memory), memory]

    return step
