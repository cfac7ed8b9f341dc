"""Steps of Attention and of what caches and rotates its keys, and of the recurrent operators."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto, TensorProto

from passes.converters.steps import adapter, adapter_down, expanded, identical
from passes.converters.writing.conversion import Conversion
from passes.converters.writing.expansion import expand
from passes.ir import scope as scoping
from passes.ir.attributes import has
from passes.operators.cells import BATCH_AXES, RECURRENT
from passes.types.value_types import tensor_type
from passes.writing import spelling

_MASK, _PAST_KEY, _NONPAD = 3, 4, 6

expanded("Attention", 23)


@adapter("Attention", 24)
def attention_24(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """A mask that is short along its last axis is now padded, a length of 1 too.

    Version 23 broadcasts the mask to (batch, heads, queries, keys), so what is not known to have
    the number of keys is expanded to it: those of K, (.., keys, size), and of past_key.
    """
    inputs = [*node.input, *[""] * (_PAST_KEY + 1)]
    mask, past = inputs[_MASK], inputs[_PAST_KEY]
    if not mask or _has_length_of_keys(mask, inputs[1], past, ctx):
        return [node]
    total = ctx.op("Shape", inputs[1], start=-2, end=-1)
    if past:
        total = ctx.op("Add", total, ctx.op("Shape", past, start=-2, end=-1))
    wide = ctx.op("Expand", mask, total)
    changed = [wide if place == _MASK else name for place, name in enumerate(node.input)]
    return [ctx.changed(node, inputs=changed)]


@adapter_down("Attention", 24, exact=False)
def attention_23(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """With counts of keys that are no padding, or a mask that may be short: its function body."""
    inputs = [*node.input, *[""] * (_NONPAD + 1)]
    mask, past = inputs[_MASK], inputs[_PAST_KEY]
    if inputs[_NONPAD] or (mask and not _has_length_of_keys(mask, inputs[1], past, ctx)):
        return expand(node, ctx, 24)
    return [node]


def _has_length_of_keys(mask: str, keys: str, past: str, ctx: Conversion) -> bool:
    last = (ctx.dims_of(mask) or (1,))[-1]
    if isinstance(last, int):
        return last != 1  # only 1 broadcasts
    return last is not None and not past and last == (ctx.dims_of(keys) or (None, None))[-2]


@adapter("Attention", 25)
def attention_25(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Windows are new and off by default; for 4-D inputs the numbers of heads must not be given."""
    heads = {"q_num_heads", "kv_num_heads"}
    if len(ctx.dims_of(node.input[0]) or ()) != 4 or not any(has(node, name) for name in heads):
        return [node]
    return [ctx.changed(node, without=heads)]


@adapter_down("Attention", 25, exact=False)
def attention_24_again(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Windows are written out, as the function body."""
    windows = [ctx.attribute(node, f"{side}_window_size", -1) for side in ("left", "right")]
    return [node] if max(windows) < 0 else expand(node, ctx, 25)


@adapter_down("TensorScatter", 24)
def tensor_scatter_23(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """It becomes a ScatterElements along `axis`, at the write index of a sample and the next ones.

    Past cache (batch, ..., max_sequence_length, ...), update (batch, ..., sequence_length, ...).
    """
    cache, update, start = [*node.input, ""][:3]
    rank = ctx.known_rank(cache)
    axis = ctx.attribute(node, "axis", -2) % rank
    ctx = ctx.later(13)
    shape = spelling.shape_of(ctx, update)
    index = spelling.count_to(ctx, spelling.scalar_size(ctx, update, axis))
    behind = [-1, *[1] * (rank - 1 - axis)]
    index = ctx.op("Reshape", index, ctx.ints(*behind))
    if start:
        first = ctx.op("Reshape", start, ctx.ints(-1, *[1] * (rank - 1)))
        index = ctx.op("Add", first, index)
    if ctx.attribute(node, "mode", "linear") == "circular":
        index = ctx.op("Mod", index, spelling.scalar_size(ctx, cache, axis))
    index = ctx.op("Expand", index, shape)
    return ctx.last(node, "ScatterElements", cache, index, update, axis=axis)


@adapter_down("RotaryEmbedding", 23, exact=False)
def rotary_embedding_22(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The node is written out, with the sizes that are known.

    x (N, heads, S, size) or (N, S, heads * size); the caches (N, S, pairs), or with positions
    (N, S) those of (positions, pairs). Pairs are neighbours, or an element and that half behind it.
    """
    x, cosines, sines, positions = [*node.input, ""][:4]
    rank, pairs = ctx.known_rank(x), ctx.attribute(node, "rotary_embedding_dim", 0) // 2
    is_part = bool(pairs)
    pairs = pairs or (ctx.dims_of(cosines) or (None,))[-1]
    if not isinstance(pairs, int):
        raise ctx.refused("unknown-rank", f"the size of {cosines!r} is not known")
    ctx = ctx.later(9)
    split, heads_axis = x, 1
    if rank == _WITHOUT_HEADS:
        heads = ctx.attribute(node, "num_heads", 0)
        hidden = (ctx.dims_of(x) or (None,))[-1]
        if is_part and not isinstance(hidden, int):  # a size of -1 fails where x is empty
            size = ctx.op("Div", spelling.size_of_axis(ctx, x, 2), ctx.ints(heads))
            shape = ctx.op("Concat", ctx.ints(0, 0, heads), size, axis=0)
        else:
            shape = ctx.ints(0, 0, heads, hidden // max(1, heads) if is_part else 2 * pairs)
        split, heads_axis = ctx.op("Reshape", x, shape), 2
    turned = spelling.part(ctx, split, 3, 0, 2 * pairs) if is_part else split
    axis = 4 if ctx.attribute(node, "interleaved", 0) else 3
    both = [pairs, 2] if axis == 4 else [2, pairs]
    paired = ctx.op("Reshape", turned, ctx.ints(0, 0, 0, *both))
    first, second = (
        ctx.op("Gather", paired, ctx.whole(place, "place"), axis=axis) for place in (0, 1)
    )
    if positions:
        cosines, sines = (ctx.op("Gather", one, positions, axis=0) for one in (cosines, sines))
    cosine, sine = (spelling.unsqueeze(ctx, one, heads_axis) for one in (cosines, sines))
    real = ctx.op("Sub", ctx.op("Mul", cosine, first), ctx.op("Mul", sine, second))
    imaginary = ctx.op("Add", ctx.op("Mul", sine, first), ctx.op("Mul", cosine, second))
    columns = [spelling.unsqueeze(ctx, one, axis) for one in (real, imaginary)]
    rotated = ctx.op("Concat", *columns, axis=axis)
    if is_part:
        rotated = ctx.op("Reshape", rotated, ctx.ints(0, 0, 0, 2 * pairs))
        rest = spelling.part(ctx, split, 3, 2 * pairs, spelling.LAST)
        rotated = ctx.op("Concat", rotated, rest, axis=3)
    return ctx.last(node, "Reshape", rotated, spelling.shape_of(ctx, x))


_WITHOUT_HEADS = 3  # axes, the last of which has the heads, too


@adapter_down("LinearAttention", 27, exact=False)
def linear_attention_26(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """It becomes its function body, of which onnxruntime infers no types inside the Scan."""
    nodes = expand(node, ctx, 27)
    elem_type = ctx.known_elem_type(node.input[0])
    for scan in nodes:
        for _, graph in scoping.subgraphs(scan):
            for values in (graph.input, graph.output):
                for place, value in enumerate(values):  # the state comes first
                    kind, rank = (elem_type, 3) if place else (TensorProto.FLOAT, 4)
                    value.type.CopyFrom(tensor_type(kind, (None,) * rank))
                    ctx.made.declare(value.name, value.type)
    return nodes


@adapter_down("CausalConvWithState", 27, exact=False)
def causal_conv_with_state_26(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """It becomes a Conv of what has the state, or zeros, in front; the end of that is the state.

    x (N, C, L), weight (C, 1, k), state (N, C, k - 1).
    """
    x, weight, bias, past = [*node.input, "", ""][:4]
    output, present = [*node.output, ""][:2]
    channels, _, size = ctx.dims_of(weight) or (None, None, None)
    if not isinstance(channels, int) or not isinstance(size, int):
        return expand(node, ctx, 27)
    ctx = ctx.later(9)
    if past:
        padded = ctx.op("Concat", past, x, axis=2)
    else:
        padded = ctx.op("Pad", x, pads=[0, 0, size - 1, 0, 0, 0])
    has_activation = ctx.attribute(node, "activation", "none") != "none"
    inputs = [padded, weight, *[bias] * bool(bias)]
    found = ctx.op("Conv", *inputs, group=channels, outputs=() if has_activation else [output])
    if has_activation:
        ctx.op("Mul", found, ctx.op("Sigmoid", found), outputs=[output])
    if present:
        start = 1 - size if size > 1 else spelling.LAST
        ctx.op("Slice", padded, axes=[2], starts=[start], ends=[spelling.LAST], outputs=[present])
    return []


def time_first(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """`layout` is gone: what has the batch first is transposed, and Y and the states back."""
    if not ctx.attribute(node, "layout", 0):
        return [ctx.changed(node, without=["layout"])]
    inputs = [
        ctx.op("Transpose", name, perm=[1, 0, 2]) if name and BATCH_AXES.get(place) else name
        for place, name in enumerate(node.input)
    ]
    outputs = [ctx.fresh(f"{name}_time_first") if name else "" for name in node.output]
    ctx.adopt(ctx.changed(node, inputs=inputs, outputs=outputs, without=["layout"]))
    perms = [[2, 0, 1, 3], [1, 0, 2], [1, 0, 2]]  # Y (time, direction, batch, hidden), states
    for name, output, perm in zip(outputs, node.output, perms, strict=False):
        if output:
            ctx.op("Transpose", name, outputs=[output], perm=perm)
    return []


for _op in RECURRENT:
    identical(_op, 14, because="layout is new, and 0, time first, is what version 7 does")
    adapter_down(_op, 14)(time_first)
    identical(_op, 22)
