"""The sizes that operators require of their operands, learned from their failures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import NodeProto, helper

from passes.ir.attributes import numbers
from passes.ir.operators import op_of
from passes.operators.cells import INITIAL_C, INITIAL_H, LENGTHS, RECURRENT, R, W, X
from passes.operators.contract import Need, Number, Operands, Size, Sum, joined
from passes.operators.contracts import contract_of
from passes.operators.table import UNKNOWN, traits_of
from passes.verify.executor import Array, Value


def wants_of(node: NodeProto, operands: Sequence[Value]) -> list[Need]:
    """Return the requirements of a failed node that its operands do not meet."""
    reading = _Reading(node, operands)
    arrays = {name: reading.array(place) for place, name in enumerate(node.input)}
    shapes = {name: array.shape for name, array in arrays.items() if array is not None}
    contract = contract_of(Operands(node, shapes.get, arrays.get))
    # most operators with several operands, of which nothing else is known, broadcast them
    own = _WANTS.get(op_of(node), _broadcast if traits_of(node) == UNKNOWN else None)
    needs = contract.needs if contract is not None else own(reading) if own is not None else ()
    return [need for need in needs if gap_of(need, operands)]


def gap_of(need: Need, operands: Sequence[Value]) -> int | None:
    """By how much a size differs from what it must be; 0 where it is right."""
    size, target, *others = (
        _number(one, operands) for one in (need.size, need.target, *need.unless_one)
    )
    if size is None or target is None:
        return None
    if need.what == "multiple":
        return size % target if target > 0 else None
    gap = 0 if 1 in others else size - target
    return min(0, gap) if need.what == "least" else gap


def _number(number: Number, operands: Sequence[Value]) -> int | None:
    """A number; None where there is no such axis. A size that is left out adds 0 to a sum."""
    if isinstance(number, Sum):
        return sum(_number(size, operands) or 0 for size in number.sizes)
    if not isinstance(number, Size):
        return number if isinstance(number, int) else None
    value = operands[number.operand] if number.operand < len(operands) else None
    if not isinstance(value, np.ndarray) or not -value.ndim <= number.axis < value.ndim:
        return None
    return int(value.shape[number.axis])


@dataclass(frozen=True)
class _Reading:
    """A node with its operands."""

    node: NodeProto
    operands: Sequence[Value]

    def array(self, argument: int) -> Array | None:
        value = self.operands[argument] if argument < len(self.operands) else None
        return value if isinstance(value, np.ndarray) else None

    def shape(self, argument: int) -> tuple[int, ...]:
        array = self.array(argument)
        return () if array is None else array.shape

    @property
    def attributes(self) -> Mapping[str, Any]:
        return {
            attribute.name: helper.get_attribute_value(attribute)
            for attribute in self.node.attribute
        }


def _broadcast(reading: _Reading) -> Iterable[Need]:
    """Sizes at the same axis, counted from the last, are equal, or one of them is 1."""
    shapes = map(reading.shape, range(len(reading.operands)))
    sizes = [[Size(n, axis) for axis in range(len(shape))] for n, shape in enumerate(shapes)]
    return joined(*sizes)[1]


def _conv(reading: _Reading) -> Iterator[Need]:
    given, weights = reading.attributes, reading.shape(1)
    rank = len(weights) - 2
    if rank < 0:
        return
    transposed = op_of(reading.node) == "ConvTranspose"
    group = given.get("group", 1)
    yield Need(Size(0, 1), "equal", weights[0] if transposed else weights[1] * group)
    if not transposed:
        yield from _windows(reading, given.get("kernel_shape", weights[2:]))


def _pool(reading: _Reading) -> Iterator[Need]:
    yield from _windows(reading, reading.attributes.get("kernel_shape", ()))


def _windows(reading: _Reading, kernel: Sequence[int]) -> Iterator[Need]:
    """A window fits into the padded image."""
    given, rank = reading.attributes, len(kernel)
    pads = given.get("pads", [0] * 2 * rank)
    dilations = given.get("dilations", [1] * rank)
    padded = given.get("auto_pad", b"NOTSET") in (b"SAME_UPPER", b"SAME_LOWER")
    for axis in range(rank):
        reach = (kernel[axis] - 1) * dilations[axis] + 1
        least = 1 if padded else reach - pads[axis] - pads[axis + rank]
        yield Need(Size(0, axis + 2), "least", max(1, least))


def _reshape(reading: _Reading) -> Iterator[Need]:
    """The elements fill the new shape."""
    shape = reading.shape(0)
    target = numbers(reading.node, 1, "shape", lambda name: reading.array(1)) or []
    if not reading.attributes.get("allowzero"):
        kept = [
            shape[argument] if not size and argument < len(shape) else size
            for argument, size in enumerate(target)
        ]
    else:
        kept = target
    wanted = math.prod(size for size in kept if size != -1)
    for axis in reversed(range(len(shape))):
        others = math.prod(shape[:axis] + shape[axis + 1 :])
        if wanted <= 0 or others <= 0:
            continue
        if -1 in kept:
            yield Need(Size(0, axis), "multiple", wanted // math.gcd(wanted, others))
        elif wanted % others == 0:
            yield Need(Size(0, axis), "equal", wanted // others)


def _recurrent(reading: _Reading) -> Iterator[Need]:
    """The widths of the weights, and one row of states and lengths for each of the inputs."""
    rows = 0 if reading.attributes.get("layout") else 1
    yield Need(Size(X, 2), "equal", Size(W, 2))
    yield Need(Size(LENGTHS, 0), "equal", Size(X, rows))
    for state in (INITIAL_H, INITIAL_C):
        yield Need(Size(state, rows), "equal", Size(X, rows))
        yield Need(Size(state, 2), "equal", Size(R, 2))
        yield Need(Size(state, 1 - rows), "equal", Size(W, 0))


def _attention(reading: _Reading) -> Iterator[Need]:
    """As many values as keys, in the past, too, and a mask for all of them."""
    yield Need(Size(2, -2), "equal", Size(1, -2))
    yield Need(Size(5, -2), "equal", Size(4, -2))
    for argument in (1, 2, 4, 5):
        yield Need(Size(argument, 0), "equal", Size(0, 0))
    mask = reading.shape(3)
    if mask and mask[-1] != 1:
        yield Need(Size(3, -1), "equal", Sum((Size(1, -2), Size(4, -2))))
    if len(mask) > 1 and mask[-2] != 1:
        yield Need(Size(3, -2), "equal", Size(0, -2))
    if len(mask) == len(reading.shape(0)) == 4 and mask[0] != 1:
        yield Need(Size(3, 0), "equal", Size(0, 0))


def _normalization(reading: _Reading) -> Iterator[Need]:
    for argument in range(1, len(reading.operands)):
        yield Need(Size(0, 1), "equal", Size(argument, 0))


def _stft(reading: _Reading) -> Iterator[Need]:
    window, length = reading.array(2), reading.array(3)
    if length is not None and length.size == 1:
        yield Need(Size(0, 1), "least", int(length.item()))
    elif window is not None and window.ndim:
        yield Need(Size(0, 1), "least", len(window))


def _blocks(reading: _Reading) -> Iterator[Need]:
    size = reading.attributes.get("blocksize", 1)
    if op_of(reading.node) == "DepthToSpace":
        yield Need(Size(0, 1), "multiple", size * size)
    else:
        yield from (Need(Size(0, axis), "multiple", size) for axis in (2, 3))


def _scan(reading: _Reading) -> Iterator[Need]:
    """All scanned inputs have one length."""
    given = reading.attributes
    count = given.get("num_scan_inputs", 1)
    first = len(reading.operands) - count
    axes = given.get("scan_input_axes", [0] * count)
    for argument in range(1, count):
        yield Need(Size(first + argument, axes[argument]), "equal", Size(first, axes[0]))


#: Those that only this module asks: what other readers ask, too, is a contract.
_WANTS: Mapping[str, Callable[[_Reading], Iterable[Need]]] = {
    **dict.fromkeys(("LayerNormalization", "PRelu"), _broadcast),
    **dict.fromkeys(("Conv", "ConvTranspose", "ConvInteger"), _conv),
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), _pool),
    **dict.fromkeys(RECURRENT, _recurrent),
    **dict.fromkeys(("BatchNormalization", "InstanceNormalization"), _normalization),
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), _blocks),
    "Attention": _attention,
    "Reshape": _reshape,
    "STFT": _stft,
    "Scan": _scan,
}
