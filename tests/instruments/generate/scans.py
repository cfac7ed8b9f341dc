"""Scan, of opset 8 with its batch, and of 9 and later with its axes and directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from onnx import NodeProto, helper

from tests.instruments.generate.block import Block, NotHere
from tests.instruments.generate.bodies import (
    a_shape,
    body_of,
    carried,
    dtype,
    fill,
    initial,
    nested,
    op_count,
    some_of,
    updated,
)
from tests.instruments.generate.moved import behind, turned
from tests.instruments.generate.values import INT64, Dim, Shape, Value

_BATCHES: tuple[Dim, ...] = ("B", 2, 1)
_TIMES: tuple[Dim, ...] = ("T", 3, "S", 1, "T")


@nested
def scan(b: Block) -> None:
    """A Scan as the opset has it."""
    if b.program.opset == 8:
        _scan_8(b)
    else:
        _scan_9(b)


def _scan_8(b: Block) -> None:
    batch, time = b.choices.pick(_BATCHES), b.choices.pick(_TIMES)
    parts = _Parts(b)
    fed = [
        b.want(state.elem, (batch, *state.shape), smooth=not state.rough) for state in parts.states
    ]
    scanned = [turned(b, one.elem, (batch, time, *one.shape)) for one in parts.slices]
    lengths = "" if b.choices.one_in(3) else _lengths(b, batch, time).name
    states, collected = parts.write(scanned)
    results = [replace(state, name=b.name(), shape=(batch, *state.shape)) for state in states]
    results += [
        replace(collected, name=b.name(), shape=(batch, time, *collected.shape))
        for collected in collected
    ]
    directions = [b.choices.below(2) for _ in scanned]
    node = helper.make_node(
        "Scan",
        [lengths, *(one.name for one in (*fed, *scanned))],
        [result.name for result in results],
        num_scan_inputs=len(scanned),
        body=parts.graph,
    )
    if any(directions) or b.choices.one_in(3):
        node.attribute.append(helper.make_attribute("directions", directions))
    b.add(node, results)
    behind(b, results)


def _lengths(b: Block, batch: Dim, time: Dim) -> Value:
    """An input of lengths of rows, shared by the loops over the same rows at times."""
    role = f"lengths {time}"
    for value in b.visible:
        known = b.program.roles.get(value.name) == role and value.shape == (batch,)
        if known and not b.choices.one_in(3):
            return value
    return b.input(INT64, (batch,), role)


def _scan_9(b: Block) -> None:
    parts = _Parts(b)
    time = _time(b)
    fed = [initial(b, state) for state in parts.states]
    axes = [b.choices.below(one.rank + 1) for one in parts.slices]
    scanned = [
        turned(b, one.elem, _inserted(one.shape, axis, time))
        for one, axis in zip(parts.slices, axes, strict=True)
    ]
    states, collected = parts.write(scanned)
    out_axes = [b.choices.below(collected.rank + 1) for collected in collected]
    results = [replace(state, name=b.name()) for state in states]
    results += [
        replace(collected, name=b.name(), shape=_inserted(collected.shape, axis, time))
        for collected, axis in zip(collected, out_axes, strict=True)
    ]
    node = helper.make_node(
        "Scan",
        [one.name for one in (*fed, *scanned)],
        [result.name for result in results],
        num_scan_inputs=len(scanned),
        body=parts.graph,
    )
    _write_flags(b, node, "input", _spelled(b, axes, scanned))
    _write_flags(b, node, "output", _spelled(b, out_axes, results[len(states) :]))
    b.add(node, results)
    behind(b, results)


def _time(b: Block) -> Dim:
    """The dim to scan: one of a value that there is, or another."""
    if b.function:
        return b.choices.pick((3, 2, 1))
    dims = list(dict.fromkeys(dim for one in b.visible for dim in one.shape))
    return b.choices.pick(["T", 3, "T", "S", 1, *dims[:3]])


def _inserted(shape: Shape, axis: int, dim: Dim) -> Shape:
    return (*shape[:axis], dim, *shape[axis:])


def _spelled(b: Block, axes: Sequence[int], tensors: Sequence[Value]) -> list[int]:
    """The axes, some from the back where the opset knows that, or executors take it."""
    negative = b.program.opset >= 11 or "negative" in b.program.odd
    pairs = zip(axes, tensors, strict=True)
    return [axis - one.rank if negative and b.choices.one_in(3) else axis for axis, one in pairs]


def _write_flags(b: Block, node: NodeProto, what: str, axes: Sequence[int]) -> None:
    directions = [b.choices.below(2) for _ in axes]
    for name, numbers in (("axes", axes), ("directions", directions)):
        if any(numbers) or (numbers and b.choices.one_in(4)):
            said = helper.make_attribute(f"scan_{what}_{name}", list(numbers))
            node.attribute.append(said)


class _Parts:
    """What the body takes: states and slices; then the body itself."""

    def __init__(self, b: Block) -> None:
        self.block = b
        self.states = [carried(b) for _ in range(b.choices.below(3))]
        self.slices = [Value("", dtype(b), a_shape(b)) for _ in range(1 + b.choices.one_in(3))]

    def write(self, scanned: Sequence[Value]) -> tuple[list[Value], list[Value]]:
        """Write the body; answers with the states and what is collected."""
        b = self.block
        slices = [
            replace(one, rough=tensor.rough)
            for one, tensor in zip(self.slices, scanned, strict=True)
        ]
        inner, inputs = body_of(b, [*self.states, *slices])
        fill(inner, op_count(b))
        states = inputs[: len(self.states)]
        ends = [updated(inner, state) for state in states]
        wanted = b.choices.below(3) + (not states)
        collected = [some_of(inner, lambda value: True) for _ in range(wanted)]
        outputs = [replace(one, name=inner.returned(one)) for one in (*ends, *collected)]
        if len({output.name for output in outputs}) < len(outputs):
            raise NotHere
        self.graph = inner.graph("body", inputs, outputs)
        finals = [
            replace(end, rough=state.rough, data=None)
            for end, state in zip(ends, states, strict=True)
        ]
        return finals, [replace(collected, data=None) for collected in collected]
