"""What all bodies share: their inputs, filling them, and what they return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.instruments.generate import odd
from tests.instruments.generate.block import Block, NotHere
from tests.instruments.generate.templates import TEMPLATES, Template, place
from tests.instruments.generate.values import (
    BOOL,
    DTYPES,
    FLOAT,
    FLOATS,
    INT64,
    INTS,
    RARE,
    SELECTED,
    Shape,
    Value,
)

#: Ways of writing an If, a loop or a call, entered by the files that write them.
NESTED: list[Template] = []
_DEEPEST = 3
_ENDS_ARE_INPUTS = 10  # of Slice, since this opset


def nested(write: Template) -> Template:
    """Enter a way of writing something with a body, or a call."""
    NESTED.append(write)
    NESTED.sort(key=place)  # whichever file was imported first
    return write


def fill(b: Block, count: int) -> None:
    """Write so many ops, loops, branches and calls, as far as they are possible."""
    for _ in range(count):
        if b.program.budget <= 0:
            return
        deeper = b.depth < _DEEPEST and b.choices.one_in(5)
        every = [*NESTED, *odd.templates(b.program.odd)]
        b.attempt(b.choices.pick(every if deeper else TEMPLATES))


def op_count(b: Block) -> int:
    """How many ops a body gets: mostly few, at times up to 30."""
    return 1 + b.choices.size(30 if b.choices.one_in(10) else 6)


def dtype(b: Block) -> int:
    """The type of a value to carry or scan."""
    rare = [elem for elem, since in RARE.items() if b.program.opset >= since]
    if rare and b.odd("rare"):
        return b.choices.pick(rare)
    elem = b.choices.pick(DTYPES)
    return FLOAT if b.program.opset < RARE.get(elem, 0) else elem


def a_shape(b: Block) -> Shape:
    """The shape of an element: a few static dims, at times a symbolic one."""
    shape = [b.choices.pick((2, 3, 1, 4)) for _ in range(b.choices.below(3))]
    return (*shape, *(["N"] if not b.function and b.choices.one_in(6) else []))


def carried(b: Block) -> Value:
    """A state as the body sees it, without a name; floats may or may not be rough."""
    elem = dtype(b)
    return Value("", elem, a_shape(b), rough=elem in FLOATS and bool(b.choices.below(2)))


def initial(b: Block, state: Value) -> Value:
    """What a state begins as; its size may be known by the body alone."""
    shape, smooth = state.shape, not state.rough
    if b.odd("unknown") and shape and isinstance(shape[0], int) and not b.function:
        return _cut_to_size(b, state.elem, (shape[0], *shape[1:]))
    return b.want(state.elem, shape, smooth=smooth)


def _cut_to_size(b: Block, elem: int, shape: Shape) -> Value:
    """A value of this shape, whose first size no inference tells: an input holds it."""
    if b.program.opset < _ENDS_ARE_INPUTS:
        raise NotHere
    whole = b.input(elem, ("W", *shape[1:]))
    end = b.input(INT64, (1,), f"exactly {shape[0]}")
    cut = b.op("Slice", whole, b.ints(0), end, b.ints(0))
    b.visible.remove(cut)  # others would take it for one whose size is known
    return replace(cut, shape=shape)


def body_of(b: Block, inputs: Sequence[Value]) -> tuple[Block, list[Value]]:
    """A block for a body with these inputs, named; some shadow an outer name."""
    taken: list[str] = []
    for _ in inputs:
        shadows = not b.function and b.visible and b.choices.one_in(16)
        name = b.pick(lambda value: True).name if shadows else ""
        taken.append("" if name in taken else name)
    inner = b.inner([name for name in taken if name])
    named = [
        replace(value, name=name or inner.name()) for name, value in zip(taken, inputs, strict=True)
    ]
    inner.visible.extend(named)
    inner.taken.update(one.name for one in named)
    return inner, named


def updated(b: Block, state: Value) -> Value:
    """What a body makes of a state: something of its type, from it by preference."""
    if b.odd("foreign", 3):  # what looks as if it were only handed on
        return b.estranged(b.op("Identity", state), 1)
    made = [one for one in made_by(b) if _can_follow(one, state)]
    if made and b.choices.one_in(2):
        return b.pick(made.__contains__)
    count = len(b.visible)
    if b.attempt(lambda block: _combined(block, state)) and len(b.visible) > count:
        last = b.visible[-1]
        if _can_follow(last, state):
            return last
    return b.pick(made.__contains__) if made else state


def _combined(b: Block, state: Value) -> None:
    smooth = not state.rough
    if state.elem in (*FLOATS, *INTS):
        op = b.choices.pick(["Add", "Sub", "Max", "Min"])
        b.op(op, state, b.want(state.elem, state.shape, smooth=smooth))
    elif state.elem == BOOL:
        b.op(b.choices.pick(["Xor", "Or", "And"]), state, b.want(BOOL, state.shape, smooth=True))
    elif state.elem in SELECTED:
        condition = b.want(BOOL, (), smooth=True)
        b.op("Where", condition, state, b.want(state.elem, state.shape))
    else:
        b.op("Identity", b.want(state.elem, state.shape))


def _can_follow(value: Value, state: Value) -> bool:
    return value.like(state.elem, state.shape) and (state.rough or not value.rough)


def some_of(b: Block, fits: Callable[[Value], bool]) -> Value:
    """A value that a body can collect: made by it if possible, of dims known outside."""

    def collectable(value: Value) -> bool:
        return fits(value) and not value.sequence and all(map(b.outside, value.shape))

    made = [one for one in made_by(b) if collectable(one)]
    return b.pick(made.__contains__ if made else collectable)


def made_by(b: Block) -> list[Value]:
    """What the nodes of a block wrote, without its constants."""
    written = {name for node in b.nodes if node.op_type != "Constant" for name in node.output}
    return [one for one in b.visible if one.name in written]
