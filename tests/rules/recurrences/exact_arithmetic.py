"""Runs models over a finite field, where sums may be regrouped and nothing rounds.

An element is a whole number modulo a prime. The log of an element is kept as that element, so that
sums of logs are products, and `Exp` gives it back. Functions that are no polynomials are arbitrary
ones: equal arguments give equal values, and nothing else is known of them. Of an If, the branch
`then` is run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import blake2b
from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, helper, numpy_helper

from passes.loops.form import LoopForm

PRIME = (1 << 61) - 1
Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Element:
    """A number modulo the prime."""

    value: int

    def __add__(self, other: Element | Log) -> Element | Log:
        if isinstance(other, Log):
            return other + self
        return Element((self.value + other.value) % PRIME)

    def __sub__(self, other: Element) -> Element:
        return Element((self.value - other.value) % PRIME)

    def __neg__(self) -> Element:
        return Element(-self.value % PRIME)

    def __mul__(self, other: Element | Log) -> Element | Log:
        if isinstance(other, Log):
            return other * self
        return Element(self.value * other.value % PRIME)

    def __truediv__(self, other: Element) -> Element:
        return Element(self.value * pow(other.value, -1, PRIME) % PRIME)


@dataclass(frozen=True)
class Log:
    """The log of a number modulo the prime."""

    of: int

    def __add__(self, other: Element | Log) -> Log:
        if isinstance(other, Log):
            return Log(self.of * other.of % PRIME)
        assert other.value == 0
        return self

    def __sub__(self, other: Log) -> Log:
        return self + -other

    def __neg__(self) -> Log:
        return Log(pow(self.of, -1, PRIME))

    def __mul__(self, other: Element) -> Log:
        times = {0: 1, 1: self.of, PRIME - 1: pow(self.of, -1, PRIME) if self.of else 0}
        return Log(times[other.value])


def elements(array: Array) -> Array:
    """Floats as elements; -10000, which is the log of nothing, as such. Whole numbers stay."""
    if array.dtype.kind != "f":
        return array
    return _each(lambda x: Log(0) if x == -1e4 else _element(x), array)


def drawn(seed: int, shape: Sequence[int], *, logs: bool = False) -> Array:
    """Random elements, or their logs."""
    numbers = np.random.default_rng(seed).integers(1, PRIME, size=tuple(shape))
    return _each(lambda x: Log(int(x)) if logs else Element(int(x)), numbers)


def _element(number: float) -> Element:
    exact = Fraction(float(number))
    return Element(exact.numerator * pow(exact.denominator, -1, PRIME) % PRIME)


def _each(change: Any, *arrays: Array) -> Array:
    return np.asarray(np.frompyfunc(change, len(arrays), 1)(*arrays), dtype=object)


def run(graph: GraphProto, values: Mapping[str, Any]) -> list[Array]:
    """The outputs of a graph; `values` are its inputs, and outer values."""
    known = dict(values)
    for tensor in graph.initializer:
        known[tensor.name] = elements(numpy_helper.to_array(tensor))
    producers = {name: node for node in graph.node for name in node.output}

    def value(name: str) -> Any:
        if name not in known:
            node = producers[name]
            for output, result in zip(node.output, _results(node, value), strict=False):
                known[output] = result
        return known[name]

    return [value(one.name) for one in graph.output]


class _Scope(dict[str, Any]):
    """The values around a body, computed when they are read."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __missing__(self, name: str) -> Any:
        return self._value(name)


def _results(node: NodeProto, value: Any) -> list[Any]:
    attributes = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    if node.op_type == "If":
        return _nested(attributes["then_branch"], {}, value)
    if node.op_type == "Scan":
        return _scan(node, value)
    if node.op_type == "Constant":
        return [elements(numpy_helper.to_array(attributes["value"]))]
    inputs = [value(name) for name in node.input]
    if node.op_type == "Split":
        return np.split(inputs[0], len(node.output), axis=attributes.get("axis", 0))
    return [_KERNELS[node.op_type](*inputs, **attributes)]


def _nested(graph: GraphProto, own: Mapping[str, Any], value: Any) -> list[Array]:
    free = {name for one in graph.node for name in _read(one)}
    free |= {one.name for one in graph.output}
    inner = {*own, *(t.name for t in graph.initializer), *(o for n in graph.node for o in n.output)}
    return run(graph, {**own, **{name: value(name) for name in free - inner if name}})


def _read(node: NodeProto) -> set[str]:
    found = set(node.input)
    for one in node.attribute:
        if one.name in ("body", "then_branch"):
            inner = {name for other in one.g.node for name in _read(other)}
            made = {name for other in one.g.node for name in other.output}
            made |= {entry.name for entry in (*one.g.input, *one.g.initializer)}
            found |= (inner | {entry.name for entry in one.g.output}) - made
    return found


def _scan(node: NodeProto, value: Any) -> list[Array]:
    form = LoopForm.from_node(node, 18)
    states = {one.body_input: value(one.initial) for one in form.carried}
    rows = {one.body_input: np.moveaxis(value(one.tensor), one.axis, 0) for one in form.scanned}
    for one in form.scanned:
        if one.reversed:
            rows[one.body_input] = rows[one.body_input][::-1]
    found: list[list[Array]] = [[] for _ in form.collected]
    for step in range(len(next(iter(rows.values())))):
        own = {**states, **{name: np.asarray(row[step]) for name, row in rows.items()}}
        outputs = _nested(form.body, own, value)
        for carried, state in zip(form.carried, outputs, strict=False):
            states[carried.body_input] = state
        for stack, row in zip(found, outputs[len(form.carried) :], strict=True):
            stack.append(row)
    collected = []
    for one, stack in zip(form.collected, found, strict=True):
        stacked = np.stack(stack[::-1] if one.reversed else stack)
        collected.append(np.moveaxis(stacked, 0, one.axis))
    return [*states.values(), *collected]


def _arbitrary(name: str) -> Any:
    """An arbitrary function of elements; it takes logs, too."""

    def one(*arguments: Element | Log) -> Element:
        digest = blake2b(repr((name, arguments)).encode(), digest_size=8).digest()
        return Element(int.from_bytes(digest, "big") % PRIME)

    return lambda *arrays, **_: _each(one, *np.broadcast_arrays(*arrays))


def _exp(array: Array) -> Array:
    return _each(lambda x: Element(x.of), array)


def _log(array: Array) -> Array:
    return _each(lambda x: Log(x.value), array)


def _max(left: Array, right: Array) -> Array:
    """The greater one where one is the log of nothing; else an arbitrary function."""
    if isinstance(right.flat[0], Log):
        return np.asarray(np.broadcast_arrays(left, right)[0])
    return np.asarray(_arbitrary("Max")(left, right))


def _reduce_sum(array: Array, axes: Array, keepdims: int = 1) -> Array:
    where = tuple(int(axis) for axis in axes)
    return np.asarray(array.sum(axis=where, keepdims=bool(keepdims)), dtype=object)


def _cumsum(array: Array, axis: Array, exclusive: int = 0) -> Array:
    place = int(axis)
    sums = np.add.accumulate(array, axis=place, dtype=object)
    if not exclusive:
        return np.asarray(sums)
    moved = np.moveaxis(sums, place, 0)
    nothing = _each(lambda _: Log(1), moved[:1])
    return np.moveaxis(np.concatenate([nothing, moved[:-1]]), 0, place)


def _slice(array: Array, starts: Array, ends: Array, axes: Array, steps: Any = None) -> Array:
    where = [slice(None)] * array.ndim
    every = np.ones_like(starts) if steps is None else steps
    for start, end, axis, step in zip(starts, ends, axes, every, strict=True):
        backwards = step < 0 and end < -array.shape[axis]
        where[axis] = slice(int(start), None if backwards else int(end), int(step))
    return array[tuple(where)]


def _vector_slice(array: Array, *rest: Any) -> Array:
    """A Slice that names no axes begins with the first."""
    starts, ends, *more = rest
    return _slice(array, starts, ends, more[0] if more else np.arange(len(starts)), *more[1:])


def _squeeze(array: Array, axes: Array) -> Array:
    return np.squeeze(array, tuple(int(axis) for axis in axes))


def _unsqueeze(array: Array, axes: Array) -> Array:
    return np.expand_dims(array, tuple(int(axis) for axis in axes))


_KERNELS: dict[str, Any] = {
    "Identity": lambda x: x,
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.true_divide,
    "Neg": np.negative,
    "MatMul": np.matmul,
    "Einsum": lambda *x, equation: np.asarray(_einsum(equation.decode(), *x), dtype=object),
    "Exp": _exp,
    "Log": _log,
    "Max": _max,
    "ReduceSum": _reduce_sum,
    "CumSum": _cumsum,
    "Slice": _vector_slice,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Concat": lambda *x, axis: np.concatenate(x, axis=axis),
    "Reshape": lambda x, shape, allowzero=0: x.reshape(tuple(int(size) for size in shape)),
    "Shape": lambda x: np.array(x.shape, np.int64),
    "Expand": lambda x, shape: np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(shape))),
    "Transpose": lambda x, perm: np.transpose(x, perm),
    **{name: _arbitrary(name) for name in ("Sigmoid", "Tanh", "Abs")},
}


def _einsum(equation: str, *arrays: Array) -> Array:
    """Sums of products, for the two equations of the models here."""
    left, right = arrays
    if equation == "hk,hv->hkv":
        return np.asarray(left[:, :, None] * right[:, None, :])
    assert equation == "hk,hkv->hv"
    return np.asarray((left[:, :, None] * right).sum(axis=1))
