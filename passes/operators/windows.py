"""Operators of windows over images, Conv and pools: the sizes that they give and require."""

from __future__ import annotations

from collections.abc import Sequence

from passes.ir.attributes import attribute, attributes, text
from passes.operators.contract import (
    STATED,
    Contract,
    Need,
    Number,
    Operands,
    Product,
    Quotient,
    Sum,
    Unstated,
    less,
)


@STATED.enter("Conv", "ConvInteger")
def _conv(given: Operands) -> Contract:
    x, w = given.sizes(0), given.sizes(1)
    if len(x) != len(w) or len(x) < 3:
        raise Unstated
    group, why = attribute(given.node, "group", 1), "the channels are those of the weights"
    needs = [Need(x[1], "equal", Product([w[1], group]), why=why)]
    sizes, windows = _windows(given, w[2:])
    return Contract([x[0], w[0], *sizes], [*needs, *windows])


@STATED.enter("AveragePool", "LpPool", "MaxPool")
def _pool(given: Operands) -> Contract:
    sizes, needs = _windows(given, [])
    return Contract([*given.sizes(0)[:2], *sizes], needs)


@STATED.enter("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool")
def _whole(given: Operands) -> Contract:
    x = given.sizes(0)
    if len(x) < 3:
        raise Unstated
    return Contract([*x[:2], *[1] * len(x[2:])])


def _windows(
    given: Operands, weights: Sequence[Number]
) -> tuple[Sequence[Number | None], Sequence[Need]]:
    """The numbers of windows, and that one fits into the padded image."""
    kernel, node = attributes(given.node, "kernel_shape") or weights, given.node
    rank, auto = len(kernel), text(node, "auto_pad", "NOTSET")
    x, needs = given.sizes(0, rank + 2)[2:], []
    sizes: list[Number | None] = []
    pads = attributes(node, "pads") or [0] * 2 * rank
    dilations, strides = (attributes(node, name) or [1] * rank for name in ("dilations", "strides"))
    known = auto == "NOTSET" and not attribute(node, "ceil_mode", 0)
    for axis, size in enumerate(x):
        reach = Sum([Product([less(kernel[axis], 1), dilations[axis]]), 1])
        padded = Sum([size, pads[axis], pads[axis + rank]])
        least: Number = 1 if auto.startswith("SAME") else reach
        image = size if auto.startswith("SAME") else padded
        needs += [
            Need(size, "least", 1, why="an image has elements", sure=False),
            Need(image, "least", least, why="a window fits into the image", sure=False),
        ]
        count = Sum([Quotient([less(padded, reach), strides[axis]]), 1])
        sizes.append(count if known else None)
    return sizes, needs
