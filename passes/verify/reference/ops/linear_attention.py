"""LinearAttention and CausalConvWithState of onnxruntime, as its CPU kernels do them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from passes.ir.operators import op_of
from passes.verify.executor import Array, CannotRun
from passes.verify.reference.ops.cells import each
from passes.verify.reference.ops.guards import product
from passes.verify.reference.registry import KernelCall, implements

#: Attributes that only kernels for other devices have, by their default.
_NOT_ON_CPU = {
    "state_update_capacity": 0,
    "state_channels_last": -1,
    "state_length": 0,
    "input_channel_offset": 0,
    "input_channels": 0,
}


@implements("com.microsoft::LinearAttention")
def linear_attention(
    call: KernelCall,
    query: Array,
    key: Array,
    value: Array,
    past: Array | None = None,
    decay: Array | None = None,
    beta: Array | None = None,
) -> tuple[Array, Array]:
    """LinearAttention-1: a state [batch, heads, dk, dv] for each head, read after each update.

    Heads of the query share states where they are more, else states share them; states share heads
    of the key.

    Raises ValueError where shapes do not fit.
    """
    _only(call, {"state_window": 0})
    rule = call.get("update_rule", "gated_delta")
    states, queries = call.get("kv_num_heads"), call.get("q_num_heads")
    batch, steps, width = query.shape
    rows, columns = width // queries, value.shape[2] // states
    keys = key.shape[2] // rows
    fits = width == rows * queries and value.shape[2] == columns * states
    fits &= key.shape[2] == rows * keys and keys > 0 and states % keys == 0
    if not fits or max(queries, states) % min(queries, states):
        raise ValueError(f"heads do not fit {query.shape}, {key.shape}, {value.shape}")
    state = np.zeros((batch, states, rows, columns), np.float32)
    if past is not None:
        if past.shape != state.shape:
            raise ValueError(f"a state of {past.shape}, not {state.shape}")
        state = _wide(past)

    def heads(packed: Array | None, needed: bool, number: int) -> Array:
        """[steps, batch, heads, size]"""
        if not needed:
            return np.zeros((steps, batch, 1, 1), np.float32)
        if packed is None or packed.shape[:2] != (batch, steps) or packed.shape[2] % number:
            raise ValueError(f"the rule {rule} needs another decay or beta than this")
        apart = packed.reshape(batch, steps, number, packed.shape[2] // number)
        return _wide(np.moveaxis(apart, 1, 0))

    group = max(1, queries // states)
    q = heads(query, True, queries).reshape(steps, batch, queries // group, group, rows)
    q = np.take(q, np.arange(states) * (queries // group) // states, axis=2)
    v = heads(value, True, states)
    k = np.take(heads(key, True, keys), np.arange(states) * keys // states, axis=2)
    kept = np.exp(heads(decay, "gated" in rule, states))
    shared = beta is not None and beta.shape[2] == 1
    rate = heads(beta, "delta" in rule, 1 if shared else states)
    scale = np.float32(call.get("scale", 0.0) or 1 / math.sqrt(rows))
    out = [np.zeros((0, batch, states, group, columns), np.float32)]
    for step in range(steps):
        if "gated" in rule:
            state = state * kept[step][..., None]
        added = v[step]
        if "delta" in rule:
            seen = product(k[step][..., None, :], state)[..., 0, :]
            added = (added - seen) * rate[step]
        state = state + k[step][..., None] * added[..., None, :]
        out.append((product(q[step], state) * scale)[np.newaxis])
    result = np.moveaxis(np.concatenate(out), 0, 1).reshape(batch, steps, states * group * columns)
    return result.astype(query.dtype), state.astype(query.dtype if past is None else past.dtype)


@implements("com.microsoft::CausalConvWithState")
def causal_conv(
    call: KernelCall, x: Array, weight: Array, bias: Array | None = None, past: Array | None = None
) -> tuple[Array, Array]:
    """CausalConvWithState-1: each channel is convolved with its own kernel, over what was before.

    Raises ValueError where shapes do not fit.
    """
    _only(call, {"state_window": 0, "ndim": 1, **_NOT_ON_CPU})
    last = call.get("channels_last", 0)
    shape = x.shape

    def first(value: Array) -> Array:
        """[batch, channels, length]"""
        if not last:
            return value
        return np.moveaxis(value.reshape(*value.shape[:2], math.prod(value.shape[2:])), 1, 2)

    x = _wide(first(x))
    (batch, channels, length), size = x.shape, weight.shape[2]
    step = call.get("dilation", 1)
    before = (size - 1) * step
    state = np.zeros((batch, channels, before), np.float32) if past is None else first(past)
    if state.shape != (batch, channels, before) or weight.shape != (channels, 1, size):
        raise ValueError(f"a kernel of {weight.shape} and {state.shape} do not fit {shape}")
    whole = np.concatenate([_wide(state), x], axis=2)
    out = np.zeros((batch, channels, length), np.float32)
    for tap in range(size):
        read = whole[:, :, tap * step : tap * step + length]
        out = out + read * _wide(weight[:, :, tap])
    if bias is not None:
        out = out + _wide(bias)[:, None]
    if call.get("activation", "none") in ("silu", "swish"):
        out = out * _sigmoid(out)

    def written(value: Array, size: int) -> Any:
        if last:
            value = np.moveaxis(value, 2, 1).reshape(batch, size, *shape[2:])
        return value.astype(weight.dtype)

    return written(out, length), written(whole[:, :, length:], before)


def _wide(value: Array) -> Array:
    """An array of floats; of terms in place of numbers, as it is."""
    return value if value.dtype.kind == "O" else value.astype(np.float32)


def _sigmoid(x: Array) -> Array:
    if x.dtype.kind == "O":
        return each(x, lambda one: one.activated("sigmoid", 0.0, 0.0))
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small / (1 + small), 1 / (1 + small))


def _only(call: KernelCall, defaults: dict[str, int]) -> None:
    """See that attributes have their defaults."""
    for name, default in defaults.items():
        if call.get(name, default) != default:
            raise CannotRun(f"no kernel for {op_of(call.node)} with {name}")
