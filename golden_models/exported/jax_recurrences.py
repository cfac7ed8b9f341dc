"""Linear recurrences of published architectures by jax's `scan`."""

from __future__ import annotations

from collections.abc import Iterator

import jax
from case import Case, draw
from jax import Array, lax
from jax import numpy as jnp
from jax_models import case

TIME, HEADS, WIDE = 48, 2, 8
RATES, ANGLES = jnp.linspace(-3.0, 0.0, WIDE), jnp.linspace(0.0, 3.0, WIDE)
GATE, CANDIDATE = draw(30, WIDE, WIDE) / 3, draw(31, WIDE, WIDE) / 3


def cases() -> Iterator[Case]:
    """One model of each architecture; some for any number of steps."""
    x, forget = draw(20, TIME, WIDE), draw(21, TIME, WIDE)
    q, k, v, g = (draw(number, TIME, HEADS, WIDE) for number in range(22, 26))
    scores, gates = draw(26, TIME, HEADS), draw(27, TIME, HEADS)
    write, read = draw(28, TIME, WIDE), draw(29, TIME, WIDE)
    yield case("retention", _retention, q, k, v)
    yield case("gated_linear_attention", _gated_linear_attention, q, k, v, g)
    yield case("state_space", _state_space, v, scores, write, read)
    yield case("gated_delta", _gated_delta, q, k, v, scores, gates)
    yield case("selective_scan", _selective_scan, x, forget, write, read)
    yield case("min_gru", _min_gru, x, sizes=[("T", WIDE)])
    yield case("moving_average", _moving_average, x, sizes=[("T", WIDE)])
    yield case("lru", _lru, x)


def _retention(q: Array, k: Array, v: Array) -> object:
    decay = 1 - 2.0 ** (-5 - jnp.arange(HEADS, dtype=jnp.float32))

    def step(state: Array, row: tuple[Array, ...]) -> tuple[Array, Array]:
        q, k, v = row
        state = decay[:, None, None] * state + k[:, :, None] * v[:, None, :]
        return state, jnp.einsum("hk,hkv->hv", q, state)

    return lax.scan(step, jnp.zeros((HEADS, WIDE, WIDE)), (q, k, v))


def _gated_linear_attention(q: Array, k: Array, v: Array, g: Array) -> object:
    def step(state: Array, row: tuple[Array, ...]) -> tuple[Array, Array]:
        q, k, v, log = row
        state = jnp.exp(log)[..., None] * state + jnp.einsum("hk,hv->hkv", k, v)
        return state, (q[:, None, :] @ state)[:, 0]

    return lax.scan(step, jnp.zeros((HEADS, WIDE, WIDE)), (q, k, v, jax.nn.log_sigmoid(g) / 16))


def _state_space(x: Array, steps: Array, write: Array, read: Array) -> object:
    """Mamba-2."""
    rates = -jnp.arange(1.0, HEADS + 1)

    def step(state: Array, row: tuple[Array, ...]) -> tuple[Array, Array]:
        x, dt, write, read = row
        added = (dt[:, None] * x)[:, :, None] * write
        state = jnp.exp(dt * rates)[:, None, None] * state + added
        return state, jnp.einsum("hpn,n->hp", state, read)

    return lax.scan(step, jnp.zeros((HEADS, WIDE, WIDE)), (x, jax.nn.softplus(steps), write, read))


def _gated_delta(q: Array, k: Array, v: Array, strength: Array, gates: Array) -> object:
    def head(state: Array, row: tuple[Array, ...]) -> tuple[Array, Array]:
        q, k, v, beta, a = row
        state = a * state
        state = state + jnp.outer(k, beta * (v - k @ state))
        return state, q @ state

    k = k / jnp.linalg.norm(k, axis=-1, keepdims=True)
    rows = q, k, v, jax.nn.sigmoid(strength), jnp.exp(-jax.nn.softplus(gates))
    return lax.scan(jax.vmap(head), jnp.zeros((HEADS, WIDE, WIDE)), rows)


def _selective_scan(x: Array, steps: Array, write: Array, read: Array) -> object:
    """Mamba."""
    rates = -jnp.tile(jnp.arange(1.0, WIDE + 1), (WIDE, 1))

    def step(state: Array, row: tuple[Array, ...]) -> tuple[Array, Array]:
        x, dt, write, read = row
        state = jnp.exp(dt[:, None] * rates) * state + jnp.outer(dt * x, write)
        return state, state @ read

    return lax.scan(step, jnp.zeros((WIDE, WIDE)), (x, jax.nn.softplus(steps), write, read))


def _min_gru(xs: Array) -> object:
    def step(h: Array, x: Array) -> tuple[Array, Array]:
        z = jax.nn.sigmoid(x @ GATE)
        h = (1 - z) * h + z * (x @ CANDIDATE)
        return h, h

    return lax.scan(step, jnp.zeros(WIDE), xs)


def _moving_average(xs: Array) -> object:
    def step(h: Array, x: Array) -> tuple[Array, Array]:
        h = 0.9 * h + 0.1 * x
        return h, h

    return lax.scan(step, jnp.zeros(WIDE), xs)


def _lru(xs: Array) -> object:
    """Its complex states as real and imaginary parts."""
    size = jnp.exp(-jnp.exp(RATES))
    a, b = size * jnp.cos(ANGLES), size * jnp.sin(ANGLES)

    def step(states: tuple[Array, Array], x: Array) -> tuple[tuple[Array, Array], Array]:
        re, im = states
        re, im = a * re - b * im + x, a * im + b * re
        return (re, im), jnp.concatenate([re, im])

    return lax.scan(step, (jnp.zeros(WIDE), jnp.zeros(WIDE)), xs)
