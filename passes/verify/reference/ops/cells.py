"""The common part of the recurrent operators: directions, lengths, weights, the loop over time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from passes.verify.executor import Array
from passes.verify.reference.registry import KernelCall

Activation = Callable[[Array], Array]

#: With their defaults for alpha and beta, None where a function takes no such number.
_TABLE: dict[str, tuple[Callable[[Array, float, float], Array], float | None, float | None]] = {
    "affine": (lambda x, a, b: a * x + b, 1.0, 0.0),
    "elu": (lambda x, a, b: np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0))), 1.0, None),
    "hardsigmoid": (lambda x, a, b: np.clip(a * x + b, 0, 1), 0.2, 0.5),
    "leakyrelu": (lambda x, a, b: np.where(x >= 0, x, a * x), 0.01, None),
    "relu": (lambda x, a, b: np.maximum(x, 0), None, None),
    "scaledtanh": (lambda x, a, b: a * np.tanh(b * x), 1.0, 1.0),
    "sigmoid": (lambda x, a, b: 1 / (1 + np.exp(-x)), None, None),
    "softplus": (lambda x, a, b: np.logaddexp(x, 0), None, None),
    "softsign": (lambda x, a, b: x / (1 + np.abs(x)), None, None),
    "tanh": (lambda x, a, b: np.tanh(x), None, None),
    "thresholdedrelu": (lambda x, a, b: np.where(x > a, x, 0), 1.0, None),
}


def activations(
    names: Sequence[str], alphas: Sequence[float], betas: Sequence[float]
) -> list[Activation]:
    """The functions named, in order (operator documents; case is ignored).

    `alphas` and `betas` are handed out in order to the functions that take one. Raises
    ValueError for an unknown name.
    """
    left, right = iter(alphas), iter(betas)
    return [_one(name, left, right) for name in names]


def _one(name: str, alphas: Iterator[float], betas: Iterator[float]) -> Activation:
    if name.lower() not in _TABLE:
        raise ValueError(f"{name!r} is no activation function")
    function, alpha, beta = _TABLE[name.lower()]
    a = 0.0 if alpha is None else next(alphas, alpha)
    b = 0.0 if beta is None else next(betas, beta)

    def activation(x: Array) -> Array:
        if x.dtype == object:  # terms in place of numbers
            return each(x, lambda one: one.activated(name.lower(), a, b))
        return np.asarray(function(x, a, b), x.dtype)

    return activation


def each(x: Array, function: Callable[[Any], Any]) -> Array:
    """An array of a function of each element of an array of terms in place of numbers."""
    return np.vectorize(function, otypes=[object])(x) if x.size else x


#: Takes the element [batch, input] and the states [batch, hidden], gives the next states.
Cell = Callable[[Array, list[Array]], list[Array]]


@dataclass(frozen=True)
class Weights:
    """The operands of one direction; `w` and `r` transposed, biases as rows."""

    w: Array
    r: Array
    wb: Array
    rb: Array
    functions: list[Activation]
    clip: float | None

    def clipped(self, x: Array) -> Array:
        """The argument of an activation, clipped if the node asks for it."""
        bound = self.clip
        if bound is not None and x.dtype == object:
            return each(x, lambda one: one.clipped(bound))
        return x if bound is None else np.clip(x, -bound, bound)


def run_cells(
    call: KernelCall,
    operands: tuple[Array, Array, Array, Array | None, Array | None],
    initial: list[Array | None],
    cell: Callable[[Weights, int], Cell],
    *,
    gates: int,
    names: list[str],
) -> tuple[Array, ...]:
    """Runs a recurrent node: Y, then the final value of each state.

    `operands` are X, W, R, B and sequence_lens; `cell` makes the step of one direction from
    its weights; `names` are the default activations. Raises ValueError for a bad direction, an
    initial state of another batch, lengths outside of 0..T, and X, W or R of another rank.
    """
    x, w, r, b, lengths = operands
    for name, one in (("X", x), ("W", w), ("R", r)):
        if one.ndim != 3:
            raise ValueError(f"{name} has {one.ndim} axes, not 3")
    batch_first = bool(call.get("layout", 0))
    if batch_first:
        x = np.swapaxes(x, 0, 1)
        initial = [None if state is None else np.swapaxes(state, 0, 1) for state in initial]
    blank = np.zeros((len(w), x.shape[1], r.shape[-1]), x.dtype)
    starts = [blank if state is None else state for state in initial]
    if odd := [state.shape for state in starts if state.shape != blank.shape]:
        raise ValueError(f"an initial state of shape {odd[0]} where {blank.shape} is needed")
    rows = _rows(x, lengths)
    every, finals = [], []
    for way, reverse in enumerate(_directions(call.get("direction", "forward"), len(w))):
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


def _rows(x: Array, lengths: Array | None) -> Array:
    """The length of every row."""
    longest, batch = x.shape[:2]
    if lengths is None:
        return np.full(batch, longest)
    if lengths.shape != (batch,) or ((lengths < 0) | (lengths > longest)).any():
        raise ValueError(f"sequence_lens {lengths.tolist()} for {batch} rows of {longest}")
    return lengths


def _directions(direction: str, ways: int) -> list[bool]:
    known = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}
    if direction not in known or len(known[direction]) != ways:
        raise ValueError(f"direction {direction!r} with weights of {ways} directions")
    return known[direction]


def _weights(
    call: KernelCall,
    operands: tuple[Array, Array, Array | None],
    way: int,
    gates: int,
    names: list[str],
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
        index = np.where(active, rows - 1 - time, 0) if reverse else np.full(batch, time)
        after = step(x[index, each], states)
        states = [np.where(active[:, None], b, a) for a, b in zip(states, after, strict=True)]
        y[index[active], each[active]] = states[0][active]
    return y, states
