"""Steps of Attention."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto

from converters.conversion import Conversion
from converters.steps import adapter

_MASK, _PAST_KEY = 3, 4


@adapter("Attention", 24)
def attention_24(node: NodeProto, at: Conversion) -> Sequence[NodeProto]:
    """A mask that is short along its last axis is now padded, a length of 1 too.

    Version 23 broadcasts the mask to (batch, heads, queries, keys), so what is not known to have
    the number of keys is expanded to it: those of K, (.., keys, size), and of past_key.
    """
    inputs = [*node.input, *[""] * (_PAST_KEY + 1)]
    mask, past = inputs[_MASK], inputs[_PAST_KEY]
    if not mask or _has_length_of_keys(mask, inputs[1], past, at):
        return [node]
    counts = [at.node("Shape", [name], start=-2, end=-1) for name in (inputs[1], past) if name]
    made, total = list(counts), counts[0].output[0]
    if past:
        made.append(at.node("Add", [one.output[0] for one in counts]))
        total = made[-1].output[0]
    wide = at.node("Expand", [mask, total])
    changed = [wide.output[0] if at_ == _MASK else name for at_, name in enumerate(node.input)]
    return [*made, wide, at.changed(node, inputs=changed)]


def _has_length_of_keys(mask: str, keys: str, past: str, at: Conversion) -> bool:
    last = (at.dims_of(mask) or (1,))[-1]
    if isinstance(last, int):
        return last != 1  # only 1 broadcasts
    return last is not None and not past and last == (at.dims_of(keys) or (None, None))[-2]


@adapter("Attention", 25)
def attention_25(node: NodeProto, at: Conversion) -> Sequence[NodeProto]:
    """Windows are new and off by default; for 4-D inputs the numbers of heads must not be said."""
    heads = {"q_num_heads", "kv_num_heads"}
    if len(at.dims_of(node.input[0]) or ()) != 4 or not any(
        a.name in heads for a in node.attribute
    ):
        return [node]
    return [at.changed(node, without=heads)]
