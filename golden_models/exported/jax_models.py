"""Loops of jax by jax2onnx: a Loop for each `scan`, `fori_loop`, `while_loop` and `map`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import jax
import numpy as np
from case import Arrays, Case, draw
from jax import Array, lax
from jax import numpy as jnp
from jax2onnx import to_onnx
from onnx import ModelProto

WIDE, SQUARE = draw(1, 3, 4) / 2, draw(2, 4, 4) / 2


def cases() -> Iterator[Case]:
    """Every jax model."""
    from jax_cells import cases as cells
    from jax_recurrences import cases as recurrences

    xs, state = draw(0, 5, 3), draw(3, 4)
    count, few = np.array(4, np.int32), np.array(6, np.int32)
    yield case("gcd", _gcd, np.array(84, np.int32), np.array(36, np.int32))
    yield case("newton", _newton, np.array(7, np.float32))
    yield case("counted_to_a_bound", _counted_to_a_bound, state, count)
    yield case("updated_backwards", _updated_backwards, state)
    yield case("branch_in_fori", _branch_in_fori, state)
    yield case("two_states", _two_states, xs, draw(4, 5, 3))
    yield case("any_length", _running, xs, sizes=[("T", 3)])
    yield case("recurrence_of_any_batch", _recurrence, draw(5, 6, 2, 3), sizes=[("T", "B", 3)])
    yield case("gates", _gates, draw(6, 6, 2, 3))
    yield case("scan_in_scan", _scan_in_scan, draw(7, 4, 5, 3))
    yield case("scan_in_while", _scan_in_while, xs)
    yield case("while_in_scan", _while_in_scan, xs)
    yield case("while_of_rows", jax.vmap(_while_of_a_row), xs)
    yield case("windows", partial(_windows, count=int(few)), draw(8, 8))
    yield case("fed_back", _fed_back, draw(9, 3, 4))
    yield case("mapped", partial(lax.map, lambda row: jnp.sin(row).sum()), xs)
    yield case("rwkv4", _rwkv4, draw(10, 8, 4), draw(11, 8, 4))
    yield from recurrences()
    yield from cells()


def case(
    name: str,
    function: Callable[..., object],
    *inputs: np.ndarray,
    sizes: Sequence[Sequence[int | str]] | None = None,
) -> Case:
    """A function that jax itself runs, too; `sizes` name those that any number may be."""

    def export(opset: int) -> ModelProto:
        given: Sequence[object] = sizes or [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in inputs]
        return to_onnx(function, given, opset=opset)

    results: Arrays = [np.asarray(one) for one in jax.tree.leaves(function(*inputs))]
    return Case(name, export, inputs, results, (21, 23))


def _gcd(a: Array, b: Array) -> Array:
    return lax.while_loop(lambda s: s[1] != 0, lambda s: (s[1], lax.rem(*s)), (a, b))[0]


def _newton(x: Array) -> Array:
    """A square root, until it is near or 30 steps are done."""

    def far(state: tuple[Array, Array]) -> Array:
        root, step = state
        return (jnp.abs(root * root - x) > 1e-3) & (step < 30)

    def step(state: tuple[Array, Array]) -> tuple[Array, Array]:
        root, step = state
        return 0.5 * (root + x / root), step + 1

    return lax.while_loop(far, step, (x, jnp.int32(0)))[0]


def _counted_to_a_bound(x: Array, bound: Array) -> Array:
    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        number, x, bound = state
        return number + 1, x * 0.5 + number, bound

    return lax.while_loop(lambda s: s[0] < s[2], step, (jnp.int32(0), x, bound))[1]


def _updated_backwards(x: Array) -> Array:
    def step(state: tuple[Array, Array]) -> tuple[Array, Array]:
        place, x = state
        return place - 1, x.at[place].add(x.sum())

    return lax.while_loop(lambda s: s[0] >= 0, step, (jnp.int32(len(x) - 1), x))[1]


def _branch_in_fori(x: Array) -> Array:
    def step(number: Array, x: Array) -> Array:
        return lax.cond(number % 2 == 0, lambda x: x * 0.5 + 1, jnp.sin, x)

    return lax.fori_loop(0, 6, step, x)


def _two_states(a: Array, b: Array) -> object:
    def step(state: tuple[Array, Array], rows: tuple[Array, Array]) -> object:
        (total, product), (one, other) = state, rows
        return (total + one, product * other), (total * other, product)

    return lax.scan(step, (jnp.zeros(3), jnp.ones(3)), (a, b))


def _running(xs: Array) -> object:
    return lax.scan(lambda state, x: (state * 0.5 + x, state + x), jnp.zeros(3), xs)


def _recurrence(xs: Array) -> object:
    def step(state: Array, x: Array) -> tuple[Array, Array]:
        state = jnp.tanh(x @ WIDE + state @ SQUARE)
        return state, state

    return lax.scan(step, jnp.zeros((xs.shape[1], 4)), xs)


def _gates(xs: Array) -> object:
    """A GRU."""

    def step(state: Array, x: Array) -> tuple[Array, Array]:
        update = jax.nn.sigmoid(x @ WIDE + state @ SQUARE)
        reset = jax.nn.sigmoid(x @ WIDE * 0.5 + state @ SQUARE)
        new = jnp.tanh(x @ WIDE + reset * (state @ SQUARE))
        state = (1 - update) * new + update * state
        return state, state

    return lax.scan(step, jnp.zeros((2, 4)), xs)


def _scan_in_scan(xs: Array) -> object:
    def step(state: Array, rows: Array) -> tuple[Array, Array]:
        state, collected = lax.scan(lambda s, x: (s * 0.5 + x, s), state, rows)
        return state, collected.sum(0)

    return lax.scan(step, jnp.zeros(3), xs)


def _scan_in_while(xs: Array) -> object:
    def step(state: tuple[Array, Array]) -> tuple[Array, Array]:
        number, total = state
        return number + 1, lax.scan(lambda s, x: (s * 0.5 + x, s), total, xs)[0]

    more = lambda s: (s[0] < 5) & (jnp.sum(s[1]) < 20.0)  # noqa: E731
    return lax.while_loop(more, step, (jnp.int32(0), jnp.ones(3)))


def _while_in_scan(xs: Array) -> object:
    """Rows are halved until they are small, or 20 times."""

    def halve(state: tuple[Array, Array]) -> tuple[Array, Array]:
        return state[0] + 1, state[1] * 0.5

    def step(state: Array, x: Array) -> tuple[Array, Array]:
        more = lambda s: (s[0] < 20) & (jnp.abs(s[1]).sum() > 1.0)  # noqa: E731
        _, small = lax.while_loop(more, halve, (jnp.int32(0), x))
        return state + small, small

    return lax.scan(step, jnp.zeros(3), xs)


def _while_of_a_row(row: Array) -> Array:
    return lax.while_loop(lambda x: x.sum() < 6.0, lambda x: jnp.abs(x) + 0.5, row)


def _windows(x: Array, count: int) -> object:
    def step(state: Array, start: Array) -> tuple[Array, Array]:
        return state + lax.dynamic_slice(x, (start,), (3,)), state

    return lax.scan(step, jnp.zeros(3), jnp.arange(count, dtype=jnp.int32))


def _fed_back(scores: Array) -> object:
    """What is largest in a row tells the next row."""

    def step(row: Array, _: None) -> tuple[Array, Array]:
        best = jnp.argmax(jnp.asarray(scores)[row % 3]).astype(jnp.int32)
        return best, best

    return lax.scan(step, jnp.int32(1), None, length=4)


def _rwkv4(keys: Array, values: Array) -> object:
    """The time mixing of RWKV-4, with exponents that cannot overflow."""
    decay, bonus = -jnp.exp(jnp.linspace(-2.0, 1.0, 4)), jnp.linspace(-1.0, 1.0, 4)

    def step(state: tuple[Array, ...], row: tuple[Array, Array]) -> object:
        (total, weight, largest), (key, value) = state, row
        top = jnp.maximum(largest, bonus + key)
        old, new = jnp.exp(largest - top), jnp.exp(bonus + key - top)
        mixed = (old * total + new * value) / (old * weight + new)
        top = jnp.maximum(largest + decay, key)
        old, new = jnp.exp(largest + decay - top), jnp.exp(key - top)
        return (old * total + new * value, old * weight + new, top), mixed

    zeros = jnp.zeros(4)
    return lax.scan(step, (zeros, zeros, zeros - 1e30), (keys, values))
