"""The cells of equinox, without and with a batch, and plain ones, by jax's `scan`."""

from __future__ import annotations

from collections.abc import Iterator

import jax
from case import Case, draw
from jax import Array, lax
from jax import numpy as jnp
from jax.nn import sigmoid
from jax_models import case

TIME, ROWS, INPUTS, WIDE = 6, 2, 3, 4
W, R = draw(40, 4 * WIDE, INPUTS) / 2, draw(41, 4 * WIDE, WIDE) / 2
BIAS, INNER = draw(42, 4 * WIDE) / 2, draw(43, WIDE) / 2


def cases() -> Iterator[Case]:
    """An LSTM, a GRU and an RNN, one row or several."""
    row, rows = draw(44, TIME, INPUTS), draw(45, ROWS, TIME, INPUTS)
    yield case("cell_lstm", _lstm, row)
    yield case("cell_gru", _gru, row)
    yield case("cell_rnn", _rnn, row)
    yield case("cell_lstm_rows", jax.vmap(_lstm), rows)
    yield case("cell_gru_rows", jax.vmap(_gru), rows)
    yield case("cell_lstm_any_rows", jax.vmap(_lstm), rows, sizes=[("B", TIME, INPUTS)])
    yield case("cell_batched", _batched, draw(46, TIME, ROWS, INPUTS))


def _lstm(xs: Array) -> object:
    """equinox.nn.LSTMCell."""

    def step(state: tuple[Array, Array], x: Array) -> tuple[tuple[Array, Array], Array]:
        h, c = state
        i, f, g, o = jnp.split(W @ x + R @ h + BIAS, 4)
        c = sigmoid(f) * c + sigmoid(i) * jnp.tanh(g)
        h = sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    return lax.scan(step, (jnp.zeros(WIDE), jnp.zeros(WIDE)), xs)


def _gru(xs: Array) -> object:
    """equinox.nn.GRUCell."""
    w, r, bias = W[: 3 * WIDE], R[: 3 * WIDE], BIAS[: 3 * WIDE]

    def step(h: Array, x: Array) -> tuple[Array, Array]:
        reset, update, new = jnp.split(w @ x + bias, 3)
        by_reset, by_update, by_new = jnp.split(r @ h, 3)
        reset, update = sigmoid(reset + by_reset), sigmoid(update + by_update)
        n = jnp.tanh(new + reset * (by_new + INNER))
        h = n + update * (h - n)
        return h, h

    return lax.scan(step, jnp.zeros(WIDE), xs)


def _rnn(xs: Array) -> object:
    def step(h: Array, x: Array) -> tuple[Array, Array]:
        h = jnp.tanh(W[:WIDE] @ x + R[:WIDE] @ h + INNER)
        return h, h

    return lax.scan(step, jnp.zeros(WIDE), xs)


def _batched(xs: Array) -> object:
    """An LSTM of rows times matrices."""

    def step(state: tuple[Array, Array], x: Array) -> tuple[tuple[Array, Array], Array]:
        h, c = state
        i, f, g, o = jnp.split(x @ W.T + h @ R.T + BIAS, 4, axis=-1)
        c = sigmoid(f) * c + sigmoid(i) * jnp.tanh(g)
        h = sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zero = jnp.zeros((ROWS, WIDE))
    return lax.scan(step, (zero, zero), xs)
