"""What stands around loops and only moves elements: Transposes, Slices, Reshapes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol

from tests.instruments.generate.block import Block, NotHere
from tests.instruments.generate.ops_shapes import with_axes
from tests.instruments.generate.values import Shape, Value


def behind(b: Block, results: Sequence[Value]) -> None:
    """Move what a loop gives, twice perhaps."""
    for result in results:
        if result.sequence or not result.rank or not b.odd("moved"):
            continue
        for _ in range(1 + b.choices.below(2)):
            if result.rank and b.attempt(partial(b.choices.pick(_MOVES), x=result)):
                result = b.visible[-1]


def turned(b: Block, elem: int, shape: Shape) -> Value:
    """A tensor to scan, at times a Transpose of another one."""
    if not b.odd("moved") or len(shape) < 2:
        return b.want(elem, shape)
    perm = _perm(b, len(shape))
    before = tuple(shape[perm.index(axis)] for axis in range(len(shape)))
    return b.op("Transpose", b.want(elem, before), perm=perm)


def _perm(b: Block, rank: int) -> list[int]:
    left, perm = list(range(rank))[::-1], []
    while left:
        perm.append(left.pop(b.choices.below(len(left))))
    return perm


def _transpose(b: Block, x: Value) -> None:
    perm = _perm(b, x.rank)
    b.op("Transpose", x, perm=None if perm == list(range(x.rank))[::-1] else perm)


def _slice(b: Block, x: Value) -> None:
    axis = b.choices.below(x.rank)
    start, end = b.choices.pick([(0, 2), (1, 1000), (-1, 1000), (0, -1)])
    if b.version("Slice") < 10:
        made = b.op("Slice", x, starts=[start], ends=[end], axes=[axis])
    else:
        made = b.op("Slice", x, b.ints(start), b.ints(end), b.ints(axis))
    b.visible[-1] = b.of_unknown_size(made, axis, x.shape[axis])


def _reshape(b: Block, x: Value) -> None:
    b.op("Reshape", x, b.ints(*b.choices.pick([[0] * (x.rank - 1) + [-1], [*([0] * x.rank), 1]])))


def _flatten(b: Block, x: Value) -> None:
    b.op("Flatten", x, axis=b.choices.below(x.rank))


def _unsqueeze(b: Block, x: Value) -> None:
    with_axes(b, "Unsqueeze", 13, x, [b.choices.below(x.rank + 1)])


def _take(b: Block, x: Value) -> None:
    axis = b.choices.below(x.rank)
    if not isinstance(x.shape[axis], int) or not x.shape[axis]:
        raise NotHere
    b.op("Gather", x, b.scalar(0), axis=axis)


def _double(b: Block, x: Value) -> None:
    b.op("Concat", x, x, axis=b.choices.below(x.rank))


class _Move(Protocol):
    def __call__(self, b: Block, x: Value) -> None: ...


_MOVES: Sequence[_Move] = (
    *(_transpose, _transpose, _transpose, _slice, _reshape, _flatten, _unsqueeze, _take, _double),
)
