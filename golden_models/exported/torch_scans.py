"""Linear recurrences of published architectures by torch's `scan` and `associative_scan`, by its
dynamo exporter: a Scan each over the leading axis, but of `associative_scan`, which is a tree of
slices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import torch
from case import Case
from torch import Tensor
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.scan import scan
from torch.nn import functional
from torch_loops import operator
from torch_models import tensor

TIME, HEADS, WIDE = 70, 2, 8
BATCH, STEPS = 2, 40
#: The dynamic axes of what has a row for each step, and of a state.
ROWS, STATE = {0: "batch", 1: "time"}, {0: "batch"}


def cases() -> Iterator[Case]:
    """One model of each architecture."""
    row, head = (TIME, WIDE), (TIME, HEADS, WIDE)
    x, y, z = (tensor(number, *row) for number in range(70, 73))
    q, k, v, g = (tensor(number, *head) for number in range(73, 77))
    scores, gates = tensor(77, TIME, HEADS), tensor(78, TIME, HEADS)
    yield _case(gated_linear_attention, q, k, v, g)
    yield _case(retention, q, k, v)
    yield _case(state_space, v, scores, x, y)
    yield _case(selective_scan, x, y, z, tensor(79, WIDE, WIDE))
    yield _case(gated_delta, q, k, v, scores, gates)
    yield _case(rwkv6, q, k, v, g, tensor(80, HEADS, WIDE))
    yield _case(mlstm, q, k, v, scores, gates)
    yield _case(hgrn, x, y)
    yield _case(lru, x, y, tensor(81, WIDE))
    yield _case(normalised, q, k, v)
    yield _case(associative, x, y)
    q, k, v, scores = (tensor(number, BATCH, STEPS, HEADS, WIDE) for number in range(82, 86))
    matrix = tensor(86, BATCH, HEADS, WIDE, WIDE)
    free = [ROWS, ROWS, ROWS, ROWS, STATE]
    yield _case(delta_of_any_size, q, k, v, scores[..., 0], matrix, free=free)
    x, state = tensor(87, BATCH, STEPS, WIDE), tensor(88, BATCH, WIDE)
    weight, bias = tensor(89, 2 * WIDE, WIDE), tensor(90, 2 * WIDE)
    yield _case(min_gru_of_any_size, x, state, weight, bias, free=[ROWS, STATE, {}, {}])


def _case(
    function: Callable[..., object], *inputs: Tensor, free: Sequence[Mapping[int, str]] = ()
) -> Case:
    made = operator(function, *inputs, free=free)
    return replace(made, name=f"scan_{function.__name__}")


def gated_linear_attention(q: Tensor, k: Tensor, v: Tensor, g: Tensor) -> object:
    def step(state: Tensor, row: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        q, k, v, a = row
        state = a[..., None] * state + k[..., None] * v[..., None, :]
        return state, (q[..., None, :] @ state).squeeze(-2)

    rows = q, k, v, torch.sigmoid(g) ** (1 / 16)
    return scan(step, torch.zeros(HEADS, WIDE, WIDE), rows)


def retention(q: Tensor, k: Tensor, v: Tensor) -> object:
    decay = 1 - 2 ** (-5 - torch.arange(HEADS, dtype=torch.float32))[:, None, None]

    def step(state: Tensor, row: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        q, k, v = row
        state = decay * state + torch.einsum("hk,hv->hkv", k, v)
        return state, torch.einsum("hk,hkv->hv", q, state)

    return scan(step, torch.zeros(HEADS, WIDE, WIDE), (q, k, v))


def state_space(x: Tensor, steps: Tensor, write: Tensor, read: Tensor) -> object:
    """Mamba-2."""
    steps = functional.softplus(steps)

    def step(state: Tensor, row: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        x, log, write, read = row
        state = state * log.exp()[:, None, None] + x[..., None] * write
        return state, state @ read

    rows = x * steps[..., None], -steps, write, read
    return scan(step, torch.zeros(HEADS, WIDE, WIDE), rows)


def selective_scan(x: Tensor, steps: Tensor, pairs: Tensor, rates: Tensor) -> object:
    """Mamba."""
    rates, steps = -torch.exp(rates), functional.softplus(steps)

    def step(state: Tensor, row: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        x, step, pair = row
        decay = torch.exp(step[:, None] * rates)
        state = decay * state + (step * x)[:, None] * pair
        return state, (state * pair).sum(-1)

    return scan(step, torch.zeros(WIDE, WIDE), (x, steps, pairs))


def gated_delta(q: Tensor, k: Tensor, v: Tensor, strength: Tensor, gates: Tensor) -> object:
    k = functional.normalize(k, dim=-1)

    def step(state: Tensor, row: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        q, k, v, beta, a = row
        state = a[:, None, None] * state
        new = beta[:, None] * (v - (k[..., None] * state).sum(-2))
        state = state + k[..., None] * new[..., None, :]
        return state, (q[..., None] * state).sum(-2)

    rows = q, k, v, torch.sigmoid(strength), torch.exp(-functional.softplus(gates))
    return scan(step, torch.zeros(HEADS, WIDE, WIDE), rows)


def rwkv6(r: Tensor, k: Tensor, v: Tensor, w: Tensor, bonus: Tensor) -> object:
    def step(state: Tensor, row: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        r, k, v, a = row
        pairs = k[..., None] * v[..., None, :]
        read = torch.einsum("hk,hkv->hv", r, state + bonus[..., None] * pairs)
        return a[..., None] * state + pairs, read

    return scan(step, torch.zeros(HEADS, WIDE, WIDE), (r, k, v, torch.exp(-torch.exp(w - 2))))


def mlstm(q: Tensor, k: Tensor, v: Tensor, i: Tensor, f: Tensor) -> object:
    def step(
        states: tuple[Tensor, ...], row: tuple[Tensor, ...]
    ) -> tuple[tuple[Tensor, ...], Tensor]:
        (memory, normal, most), (q, k, v, i, log) = states, row
        top = torch.maximum(log + most, i)
        old, new = torch.exp(log + most - top)[:, None], torch.exp(i - top)[:, None]
        memory = old[..., None] * memory + (new * k)[..., None] * v[..., None, :]
        normal = old * normal + new * k
        weight = torch.einsum("hk,hk->h", q, normal).abs()[:, None]
        read = torch.einsum("hk,hkv->hv", q, memory)
        return (memory, normal, top), read / torch.maximum(weight, torch.exp(-top)[:, None])

    starts = torch.zeros(HEADS, WIDE, WIDE), torch.zeros(HEADS, WIDE), torch.zeros(HEADS)
    return scan(step, starts, (q, k * WIDE**-0.5, v, i, functional.logsigmoid(f + 3)))


def hgrn(x: Tensor, forget: Tensor) -> object:
    def step(h: Tensor, row: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        x, f = row
        h = f * h + (1 - f) * x
        return h, h.clone()

    return scan(step, torch.zeros(WIDE), (x, torch.sigmoid(forget)))


def lru(x: Tensor, y: Tensor, logs: Tensor) -> object:
    size, angle = torch.exp(-torch.exp(logs)), torch.linspace(0, 3, WIDE)
    a, b = size * torch.cos(angle), size * torch.sin(angle)

    def step(
        states: tuple[Tensor, ...], row: tuple[Tensor, ...]
    ) -> tuple[tuple[Tensor, ...], Tensor]:
        (re, im), (x, y) = states, row
        re, im = a * re - b * im + x, a * im + b * re + y
        return (re, im), re + im

    return scan(step, (torch.zeros(WIDE), torch.zeros(WIDE)), (x, y))


def normalised(q: Tensor, k: Tensor, v: Tensor) -> object:
    """Linear attention with the sum of its weights."""

    def step(
        states: tuple[Tensor, ...], row: tuple[Tensor, ...]
    ) -> tuple[tuple[Tensor, ...], Tensor]:
        (state, weights), (q, k, v) = states, row
        state, weights = state + k[..., None] * v[..., None, :], weights + k
        read = (q[..., None] * state).sum(-2) / ((q * weights).sum(-1, keepdim=True) + 1e-6)
        return (state, weights), read * torch.rsqrt(read.square().mean(-1, keepdim=True) + 1e-6)

    starts = torch.zeros(HEADS, WIDE, WIDE), torch.zeros(HEADS, WIDE)
    return scan(step, starts, (functional.elu(q) + 1, functional.elu(k) + 1, v))


def associative(x: Tensor, forget: Tensor) -> object:
    """The states of HGRN, as pairs of a factor and a summand."""

    def combine(one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor]) -> object:
        return one[0] * other[0], one[1] * other[0] + other[1]

    f = torch.sigmoid(forget)
    return associative_scan(combine, (f, (1 - f) * x), 0, combine_mode="generic")[1]


def delta_of_any_size(q: Tensor, k: Tensor, v: Tensor, beta: Tensor, state: Tensor) -> object:
    """The delta rule: the exporter gives the batch one symbol outside of the body, and another one
    inside."""
    k = functional.normalize(k, dim=-1)

    def step(state: Tensor, row: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        q, k, v, beta = row
        new = (v - torch.einsum("bhk,bhkv->bhv", k, state)) * beta[..., None]
        state = state + torch.einsum("bhk,bhv->bhkv", k, new)
        return state, torch.einsum("bhk,bhkv->bhv", q, state)

    return scan(step, state, (q, k, v, torch.sigmoid(beta)), dim=1)


def min_gru_of_any_size(x: Tensor, state: Tensor, weight: Tensor, bias: Tensor) -> object:
    """Its gate and its candidate are computed in the step."""

    def step(h: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        z, new = functional.linear(x, weight, bias).chunk(2, -1)
        z = torch.sigmoid(z)
        h = (1 - z) * h + z * new
        return h, h.clone()

    return scan(step, state, x, dim=1)
