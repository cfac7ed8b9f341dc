"""The rule `expand-attention`: what only a few runtimes have becomes a loop of plain operators."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from onnx import TensorProto

from passes.ir.attributes import attribute, text
from passes.ir.operators import called_key, function_key, op_of
from passes.ir.versions import SLICE_HAS_INPUTS
from passes.rule import Edit, NothingToDo, Site, nodes_of, register
from passes.rules.attention.attention_form import (
    ATTENTION,
    CONVOLUTION,
    AttentionForm,
    check_floats,
    given,
)
from passes.rules.attention.written_scan import WrittenScan
from passes.types.value_types import dims_of, is_static
from passes.writing import spelling
from passes.writing.author import Author


@register("expand-attention", considers=nodes_of(*ATTENTION, *CONVOLUTION), optional=True)
def expand_attention(site: Site) -> Edit:
    """Write LinearAttention as a Scan, and CausalConvWithState as a Conv.

    Before:

        y, S = com.microsoft.LinearAttention <update_rule = "gated", scale = 1.0> (q, k, v, S0, g)

    After, with heads as an axis of their own:

        ys, S = Scan <num_scan_inputs = 4, body = step (S_in, q_t, k_t, v_t, g_t) => (S_out, y_t) {
            kept = Mul (Exp (g_t), S_in)
            S_out = Add (kept, Mul (k_t, v_t))
            y_t = MatMul (q_t, S_out)
        }> (S0, qs, ks, vs, gs)

    These are operators of onnxruntime, and of ONNX from opset 27 on. A convolution over what may
    be no position is written as a sum of products, for Conv needs one.

    Refuses:
    - `not-float`: it is not of float, for which alone onnxruntime has a kernel
    - `opset-too-old`: the opset is below 10, which has no Slice with inputs
    - `unknown-size`: the size of its heads is unknown
    - `windows`: it returns several states, or has attributes for other kernels
    """
    if called_key(site.node) in map(function_key, site.model.proto.functions):
        raise NothingToDo
    site.need_opset(SLICE_HAS_INPUTS, "has no Slice with inputs")
    author = Author.at(site, "attention")
    if op_of(site.node) in CONVOLUTION:
        write_convolution(site, author)
        note = "Conv"
    else:
        WrittenScan(site, AttentionForm.of(site), author).write()
        note = "Scan"
    return replace(author.edit(note), exact=False)


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
