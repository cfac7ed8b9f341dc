"""The list of things that a block may write: each is a function of the block."""

from __future__ import annotations

from collections.abc import Callable

from tests.instruments.generate.block import Block, NotHere
from tests.instruments.generate.values import FLOATS, INTS, Value

Template = Callable[[Block], None]

TEMPLATES: list[Template] = []


def template(weight: int = 1) -> Callable[[Template], Template]:
    """Enter a way of writing some ops; a greater weight is drawn more often."""

    def enter(write: Template) -> Template:
        TEMPLATES.extend([write] * weight)
        TEMPLATES.sort(key=place)  # whichever file was imported first
        return write

    return enter


def place(write: Template) -> tuple[str, str]:
    """Where a template is written; tells their order."""
    return write.__module__, write.__qualname__


def some_float(b: Block, rank: int = 0, smooth: bool = False) -> Value:
    """A visible float tensor of at least this rank."""
    return b.pick(lambda v: v.is_float and not v.sequence and v.rank >= rank and fine(v, smooth))


def some_number(b: Block, rank: int = 0, smooth: bool = False) -> Value:
    """A visible float or whole number tensor of at least this rank."""
    kinds = FLOATS + INTS
    return b.pick(
        lambda v: v.elem in kinds and not v.sequence and v.rank >= rank and fine(v, smooth)
    )


def some_tensor(b: Block, rank: int = 0) -> Value:
    """A visible tensor of any type."""
    return b.pick(lambda v: not v.sequence and v.rank >= rank)


def fine(value: Value, smooth: bool) -> bool:
    return not (smooth and (value.rough or value.narrow))


def static(value: Value, axis: int) -> int:
    """The size of an axis. Raises NotHere where it is not fixed, or 0."""
    size = value.shape[axis]
    if not isinstance(size, int) or size == 0:
        raise NotHere
    return size


def an_axis(b: Block, value: Value, since: int = 11) -> int:
    """An axis, from the back perhaps where ops of this opset take that."""
    axis = b.choices.below(value.rank) if value.rank else 0
    if value.rank and b.program.opset >= since and b.choices.one_in(3):
        return axis - value.rank
    return axis


def partner(b: Block, value: Value, smooth: bool = False) -> Value:
    """A value of the same type that broadcasts with this one."""
    shapes = {value.shape, (), (1,) * value.rank, value.shape[1:]}
    there = [
        one
        for one in b.visible
        if one.elem == value.elem
        and not one.sequence
        and one.shape in shapes
        and fine(one, smooth)
        and one != value
    ]
    if there and not b.choices.one_in(4):
        return b.pick(there.__contains__)
    shape = b.choices.pick([(), value.shape[-1:], value.shape])
    return b.want(value.elem, shape, smooth=smooth)
