"""The sizes that operators require of their operands, learned from their failures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
from onnx import NodeProto, helper

from passes.ir.operators import op_of
from passes.operators.cells import INITIAL_C, INITIAL_H, LENGTHS, RECURRENT, R, W, X
from passes.verify.executor import Array, Value


@dataclass(frozen=True)
class Size:
    """The size of an axis of an operand, by its place among the inputs."""

    operand: int
    axis: int

    def of(self, operands: Sequence[Value]) -> int | None:
        """The size, where there is such an axis."""
        value = operands[self.operand] if self.operand < len(operands) else None
        if not isinstance(value, np.ndarray) or not -value.ndim <= self.axis < value.ndim:
            return None
        return int(value.shape[self.axis])


@dataclass(frozen=True)
class Sum:
    """The sum of sizes; of an operand that is left out, it is 0."""

    sizes: Sequence[Size]

    def of(self, operands: Sequence[Value]) -> int:
        return sum(size.of(operands) or 0 for size in self.sizes)


@dataclass(frozen=True)
class Want:
    """A size must be equal to a number, another size or a sum, at least that, or a multiple of
    it."""

    size: Size
    what: Literal["equal", "least", "multiple"]
    target: int | Size | Sum

    def gap(self, operands: Sequence[Value]) -> int | None:
        """By how much the size differs from what it must be; 0 where it is right."""
        size = self.size.of(operands)
        target = self.target if isinstance(self.target, int) else self.target.of(operands)
        if size is None or target is None:
            return None
        if self.what == "multiple":
            return size % target if target > 0 else None
        return min(0, size - target) if self.what == "least" else size - target


def wants_of(node: NodeProto, operands: Sequence[Value]) -> list[Want]:
    """Return the requirements of a failed node that its operands do not meet."""
    reading = _Reading(node, operands)
    found = _WANTS.get(op_of(node), _broadcast)(reading)
    return [want for want in found if want.gap(operands)]


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

    def ints(self, name: str, argument: int) -> list[int] | None:
        """Whole numbers that are an attribute in old versions, and an operand in newer ones."""
        array = self.array(argument)
        if array is not None and array.dtype.kind in "iu":
            return [int(item) for item in array.flat]
        given = self.attributes.get(name)
        return None if given is None else list(given)


def _broadcast(reading: _Reading) -> Iterator[Want]:
    """Sizes at the same axis, counted from the last, are equal or 1: most operators with several
    operands require this, and nothing else is known of operators without an entry."""
    there = [
        argument for argument in range(len(reading.operands)) if reading.array(argument) is not None
    ]
    for first, second in combinations(there, 2):
        for axis in range(1, 1 + min(len(reading.shape(first)), len(reading.shape(second)))):
            if 1 not in (reading.shape(first)[-axis], reading.shape(second)[-axis]):
                yield Want(Size(first, -axis), "equal", Size(second, -axis))


def _conv(reading: _Reading) -> Iterator[Want]:
    given, weights = reading.attributes, reading.shape(1)
    rank = len(weights) - 2
    if rank < 0:
        return
    transposed = op_of(reading.node) == "ConvTranspose"
    group = given.get("group", 1)
    yield Want(Size(0, 1), "equal", weights[0] if transposed else weights[1] * group)
    if not transposed:
        yield from _windows(reading, given.get("kernel_shape", weights[2:]))


def _pool(reading: _Reading) -> Iterator[Want]:
    yield from _windows(reading, reading.attributes.get("kernel_shape", ()))


def _windows(reading: _Reading, kernel: Sequence[int]) -> Iterator[Want]:
    """A window fits into the padded image."""
    given, rank = reading.attributes, len(kernel)
    pads = given.get("pads", [0] * 2 * rank)
    dilations = given.get("dilations", [1] * rank)
    padded = given.get("auto_pad", b"NOTSET") in (b"SAME_UPPER", b"SAME_LOWER")
    for axis in range(rank):
        reach = (kernel[axis] - 1) * dilations[axis] + 1
        least = 1 if padded else reach - pads[axis] - pads[axis + rank]
        yield Want(Size(0, axis + 2), "least", max(1, least))


def _pad(reading: _Reading) -> Iterator[Want]:
    """Reflections stay within the image, and what is cut off was there."""
    pads = reading.ints("pads", 1) or []
    rank = len(reading.shape(0))
    axes = reading.ints("axes", 3) or list(range(len(pads) // 2))
    reflects = reading.attributes.get("mode", b"constant") == b"reflect"
    for place, axis in enumerate(axes[: len(pads) // 2]):
        ends = (pads[place], pads[place + len(pads) // 2])
        if -rank <= axis < rank:
            least = max(ends) + 1 if reflects else -sum(end for end in ends if end < 0)
            yield Want(Size(0, axis), "least", least)


def _matmul(reading: _Reading) -> Iterator[Want]:
    left, right = reading.shape(0), reading.shape(1)
    if left and right:
        yield Want(Size(0, -1), "equal", Size(1, -2 if len(right) > 1 else -1))
    for axis in range(3, 1 + min(len(left), len(right))):
        if 1 not in (left[-axis], right[-axis]):
            yield Want(Size(0, -axis), "equal", Size(1, -axis))


def _gemm(reading: _Reading) -> Iterator[Want]:
    given = reading.attributes
    inner, outer = (0, 1) if given.get("transA") else (1, 0)
    rows, columns = (1, 0) if given.get("transB") else (0, 1)
    yield Want(Size(0, inner), "equal", Size(1, rows))
    added = reading.shape(2)
    if len(added) == 2 and added[0] != 1:
        yield Want(Size(2, 0), "equal", Size(0, outer))
    if added and added[-1] != 1:
        yield Want(Size(2, -1), "equal", Size(1, columns))


def _concat(reading: _Reading) -> Iterator[Want]:
    axis = reading.attributes.get("axis", 1)
    rank = len(reading.shape(0))
    for argument in range(1, len(reading.operands)):
        for place in range(rank):
            if place != axis % max(1, rank):
                yield Want(Size(argument, place), "equal", Size(0, place))


def _split(reading: _Reading) -> Iterator[Want]:
    axis = reading.attributes.get("axis", 0)
    parts = reading.ints("split", 1)
    if parts:
        yield Want(Size(0, axis), "equal", sum(parts))
    elif "num_outputs" not in reading.attributes:
        yield Want(Size(0, axis), "multiple", len(reading.node.output))
    else:
        yield Want(Size(0, axis), "least", len(reading.node.output))


def _reshape(reading: _Reading) -> Iterator[Want]:
    """The elements fill the new shape."""
    shape = reading.shape(0)
    target = reading.ints("shape", 1) or []
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
            yield Want(Size(0, axis), "multiple", wanted // math.gcd(wanted, others))
        elif wanted % others == 0:
            yield Want(Size(0, axis), "equal", wanted // others)


def _squeeze(reading: _Reading) -> Iterator[Want]:
    for axis in reading.ints("axes", 1) or []:
        yield Want(Size(0, axis), "equal", 1)


def _recurrent(reading: _Reading) -> Iterator[Want]:
    """The widths of the weights, and one row of states and lengths for each of the inputs."""
    rows = 0 if reading.attributes.get("layout") else 1
    yield Want(Size(X, 2), "equal", Size(W, 2))
    yield Want(Size(LENGTHS, 0), "equal", Size(X, rows))
    for state in (INITIAL_H, INITIAL_C):
        yield Want(Size(state, rows), "equal", Size(X, rows))
        yield Want(Size(state, 2), "equal", Size(R, 2))
        yield Want(Size(state, 1 - rows), "equal", Size(W, 0))


def _gather(reading: _Reading) -> Iterator[Want]:
    axis, indices = reading.attributes.get("axis", 0), reading.array(1)
    if indices is not None and indices.size and indices.dtype.kind in "iu":
        least = max(int(indices.max()) + 1, -int(indices.min()))
        yield Want(Size(0, axis), "least", least)


def _top(reading: _Reading) -> Iterator[Want]:
    count = reading.array(1)
    least = reading.attributes.get("k", 1) if count is None else int(count.flat[0])
    yield Want(Size(0, reading.attributes.get("axis", -1)), "least", least)


def _attention(reading: _Reading) -> Iterator[Want]:
    """As many values as keys, in the past, too, and a mask for all of them."""
    yield Want(Size(2, -2), "equal", Size(1, -2))
    yield Want(Size(5, -2), "equal", Size(4, -2))
    for argument in (1, 2, 4, 5):
        yield Want(Size(argument, 0), "equal", Size(0, 0))
    mask = reading.shape(3)
    if mask and mask[-1] != 1:
        yield Want(Size(3, -1), "equal", Sum((Size(1, -2), Size(4, -2))))
    if len(mask) > 1 and mask[-2] != 1:
        yield Want(Size(3, -2), "equal", Size(0, -2))
    if len(mask) == len(reading.shape(0)) == 4 and mask[0] != 1:
        yield Want(Size(3, 0), "equal", Size(0, 0))


def _normalization(reading: _Reading) -> Iterator[Want]:
    for argument in range(1, len(reading.operands)):
        yield Want(Size(0, 1), "equal", Size(argument, 0))


def _stft(reading: _Reading) -> Iterator[Want]:
    window, length = reading.array(2), reading.array(3)
    if length is not None and length.size == 1:
        yield Want(Size(0, 1), "least", int(length.item()))
    elif window is not None and window.ndim:
        yield Want(Size(0, 1), "least", len(window))


def _blocks(reading: _Reading) -> Iterator[Want]:
    size = reading.attributes.get("blocksize", 1)
    if op_of(reading.node) == "DepthToSpace":
        yield Want(Size(0, 1), "multiple", size * size)
    else:
        yield from (Want(Size(0, axis), "multiple", size) for axis in (2, 3))


def _einsum(reading: _Reading) -> Iterator[Want]:
    equation = reading.attributes.get("equation", b"").decode().replace(" ", "")
    first: dict[str, Size] = {}
    for position, term in enumerate(equation.split("->")[0].split(",")):
        before, dots, after = term.partition("...")
        places = [(letter, axis) for axis, letter in enumerate(before)]
        places += [(letter, axis - len(after)) for axis, letter in enumerate(after if dots else "")]
        for letter, axis in places:
            size = Size(position, axis)
            if first.setdefault(letter, size) != size:
                yield Want(size, "equal", first[letter])


def _scan(reading: _Reading) -> Iterator[Want]:
    """All scanned inputs have one length."""
    given = reading.attributes
    count = given.get("num_scan_inputs", 1)
    first = len(reading.operands) - count
    axes = given.get("scan_input_axes", [0] * count)
    for argument in range(1, count):
        yield Want(Size(first + argument, axes[argument]), "equal", Size(first, axes[0]))


_WANTS: Mapping[str, Callable[[_Reading], Iterator[Want]]] = {
    **dict.fromkeys(("Conv", "ConvTranspose", "ConvInteger"), _conv),
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), _pool),
    **dict.fromkeys(("MatMul", "MatMulInteger"), _matmul),
    **dict.fromkeys(RECURRENT, _recurrent),
    **dict.fromkeys(("BatchNormalization", "InstanceNormalization"), _normalization),
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), _blocks),
    "Attention": _attention,
    "Pad": _pad,
    "Gemm": _gemm,
    "Concat": _concat,
    "Split": _split,
    "Reshape": _reshape,
    "Squeeze": _squeeze,
    "Gather": _gather,
    "TopK": _top,
    "STFT": _stft,
    "Einsum": _einsum,
    "Scan": _scan,
}
