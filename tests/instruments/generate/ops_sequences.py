"""Sequences of tensors, made, read and joined."""

from __future__ import annotations

from tests.instruments.generate.block import Block
from tests.instruments.generate.templates import some_tensor, static, template
from tests.instruments.generate.values import Value


def some_sequence(b: Block) -> Value:
    return b.pick(lambda v: v.sequence)


@template(2)
def construct(b: Block) -> None:
    x = some_tensor(b)
    others = [one for one in b.visible if one.like(x.elem, x.shape)]
    b.op("SequenceConstruct", x, b.pick(others.__contains__))


@template()
def split(b: Block) -> None:
    x = some_tensor(b, rank=1)
    static(x, 0)
    b.op("SplitToSequence", x, axis=0, keepdims=b.choices.below(2))


@template()
def change(b: Block) -> None:
    x = some_sequence(b)
    if b.choices.one_in(3):
        b.op("SequenceErase", x)
    else:
        b.op("SequenceInsert", x, b.want(x.elem, x.shape), b.scalar(0))


@template(2)
def read(b: Block) -> None:
    x = some_sequence(b)
    kind = b.choices.below(3)
    if kind == 0:
        b.op("SequenceAt", x, b.scalar(-1 if b.choices.one_in(3) else 0))
    elif kind == 1:
        b.op("SequenceLength", x)
    else:
        b.op("ConcatFromSequence", x, axis=0, new_axis=1)
