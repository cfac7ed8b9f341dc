"""Steps of ops that cut tensors into parts, and of Pad, which does the opposite."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto

from converters.attribute_inputs import float_as_input, ints_as_input
from converters.conversion import Conversion
from converters.steps import adapter, identical


@adapter("Slice", 10)
def slice_10(node: NodeProto, at: Conversion) -> Sequence[NodeProto]:
    """The attributes `starts`, `ends` and `axes` become inputs, int64 (n).

    Axes are always given: without them Slice-1 cuts the first n, Slice-10 all of them.
    """
    starts, ends = (at.attribute_as_input(node, name, np.int64) for name in ("starts", "ends"))
    axes, counting = _axes(node, at, starts)
    main = at.changed(
        node, inputs=[node.input[0], starts, ends, axes], without=["starts", "ends", "axes"]
    )
    return [*counting, main]


def _axes(node: NodeProto, at: Conversion, starts: str) -> tuple[str, list[NodeProto]]:
    """The axes to cut, by default the first ones; and the nodes that count them."""
    if at.refers(node, "axes") or at.attribute(node, "axes") is not None:
        return at.attribute_as_input(node, "axes", np.int64), []
    if not at.refers(node, "starts"):
        first_axes = np.arange(len(at.attribute(node, "starts", [])), dtype=np.int64)
        return at.value(first_axes, "axes"), []
    first, step = (at.value(np.array(one, np.int64), "number") for one in (0, 1))
    count = at.node("Size", [starts])
    axes = at.later(11).node("Range", [first, count.output[0], step])
    return axes.output[0], [count, axes]


identical("Slice", 11)  # negative axes are new
identical("Slice", 13)

identical("Split", 11)  # a negative axis is new


@adapter("Split", 13)
def split_13(node: NodeProto, at: Conversion) -> Sequence[NodeProto]:
    """The attribute `split` becomes the optional second input, int64 (n)."""
    return ints_as_input(node, at, "split")


@adapter("Split", 18)
def split_18(node: NodeProto, at: Conversion) -> Sequence[NodeProto]:
    """Parts of equal size are counted by the new attribute `num_outputs`.

    Of an axis that they do not divide, which is an error in Split-13, the last part is smaller.
    """
    x, *sizes = node.input
    if any(sizes):
        return [node]
    return [at.changed(node, inputs=[x], num_outputs=len(node.output))]


identical("SplitToSequence", 24)


@adapter("Pad", 11)
def pad_11(node: NodeProto, at: Conversion) -> Sequence[NodeProto]:
    """The attributes `pads` and `value` become inputs, int64 (2r) and a scalar of the input's type.

    A value of 0 is left out, as is one that the mode does not use.
    """
    pads = at.attribute_as_input(node, "pads", np.int64)
    value, made = _padding(node, at)
    main = at.changed(node, inputs=[node.input[0], pads, *value], without=["pads", "value"])
    return [*made, main]


def _padding(node: NodeProto, at: Conversion) -> tuple[list[str], list[NodeProto]]:
    mode = "constant" if at.refers(node, "mode") else at.attribute(node, "mode", "constant")
    if mode != "constant":
        return [], []
    if not at.refers(node, "value"):
        value = np.float32(at.attribute(node, "value", 0.0))
        if value == 0 and not np.signbit(value):
            return [], []
    name, made = float_as_input(node, at, "value", node.input[0], 0.0)
    return [name], made


identical("Pad", 13, 21, 23, 24, 25)
identical("Pad", 18, because="the input axes is new and optional; without it all are padded")
identical("Pad", 19)  # the mode wrap is new
