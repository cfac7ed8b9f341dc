"""Writes a causal convolution as a Conv, or as products of its taps."""

from __future__ import annotations

from functools import reduce

from onnx import TensorProto

from passes.ir.attributes import attribute, text
from passes.rule import Site
from passes.rules.attention.attention_form import check_floats, given
from passes.types.value_types import dims_of, is_static
from passes.writing import spelling
from passes.writing.author import Author

#: Attributes that it is not written with, by their defaults.
_DEFAULTS = {"ndim": 1, "state_window": 0, "state_length": 0, "state_channels_last": -1}
_MORE = ("state_update_capacity", "input_channel_offset", "input_channels")


def write_convolution(site: Site, author: Author) -> None:
    """Write a CausalConvWithState, its outputs under their names.

    Raises:
        Refused: `not-float`, `unknown-size`, `windows`.
    """
    node = site.node
    if any(attribute(node, name, one) != one for name, one in _DEFAULTS.items()) or any(
        attribute(node, name, 0) for name in _MORE
    ):
        raise site.refused("windows", "it has an attribute of other kernels")
    check_floats(site)
    x, weight = node.input[:2]
    bias, past = given(node, 2), given(node, 3)
    dims, kernel = dims_of(site.type_of(x)) or (), dims_of(site.type_of(weight)) or ()
    if len(dims) != 3 or len(kernel) != 3 or not is_static(kernel):
        raise site.refused("unknown-size", "the size of its kernel is unknown")
    channels, size = int(kernel[0] or 0), int(kernel[2] or 0)
    last, step = attribute(node, "channels_last", 0), attribute(node, "dilation", 1)
    before = (size - 1) * step

    def turned(value: str) -> str:
        return author.op("Transpose", value, perm=[0, 2, 1]) if last else value

    if past:
        state = turned(past)
    else:
        batch = spelling.size_of_axis(author, x, 0)
        shape = author.op("Concat", batch, author.ints(channels, before), axis=0)
        state = spelling.filled(author, shape, TensorProto.FLOAT, 0)
    whole = author.op("Concat", state, turned(x), axis=2)
    length = dims[1 if last else 2]
    if isinstance(length, int) and length:
        read = author.op("Conv", whole, weight, bias, group=channels, dilations=[step])
    else:
        read = _of_taps(author, whole, weight, bias, channels, size, step)
    if text(node, "activation", "none") != "none":
        read = author.op("Mul", read, author.op("Sigmoid", read))
    results = [read, spelling.part(author, whole, 2, -before or spelling.LAST, spelling.LAST)]
    for value, output in zip(results, node.output, strict=False):
        if output:
            author.name_as(turned(value), output)


def _of_taps(
    author: Author, whole: str, weight: str, bias: str, channels: int, size: int, step: int
) -> str:
    """Return the result of a Conv, also for no position: a Conv needs one."""
    parts = []
    for tap in range(size):
        part = spelling.part(
            author, whole, 2, tap * step, -(size - 1 - tap) * step or spelling.LAST
        )
        factor = spelling.part(author, weight, 2, tap, tap + 1)
        factor = author.op("Reshape", factor, author.ints(channels, 1))
        parts.append(author.op("Mul", part, factor))
    total = reduce(lambda one, other: author.op("Add", one, other), parts)
    if not bias:
        return total
    return author.op("Add", total, author.op("Reshape", bias, author.ints(channels, 1)))
