"""Steps of ops on sequences, which came with opset 11, and on optionals, which came with 15;
of ops on strings: below the version that brought one nothing takes strings apart, joins or compares
them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto, TensorProto, helper

from passes.converters.steps import adapter_down, identical, identical_down, refusal_down
from passes.converters.writing.conversion import Conversion
from passes.ir import scope as scoping
from passes.ir.protos import copied, replace_all
from passes.loops.form import Carried, Condition, Kind, LoopForm
from passes.types.value_types import dims_of, elem_type_of, tensor_type

for _op in (
    "ConcatFromSequence",
    "SequenceAt",
    "SequenceConstruct",
    "SequenceEmpty",
    "SequenceErase",
    "SequenceInsert",
    "SequenceLength",
    "SplitToSequence",
):
    refusal_down(
        _op, 11, "no-equivalent", f"{_op} is about a sequence, and before opset 11 there are none"
    )


@adapter_down("SequenceMap", 17)
def sequence_map_16(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """A Loop that reads an element of each sequence and appends to each result."""
    (mapped,) = (graph for _, graph in scoping.subgraphs(node))
    step, go, on = ctx.fresh("step"), ctx.fresh("go"), ctx.fresh("on")
    reading = [helper.make_node("Identity", [go], [on])]
    for outer, value in zip(node.input, mapped.input, strict=True):
        sampled = _is_sequence(ctx, outer)
        inputs = [outer, step] if sampled else [outer]
        op = "SequenceAt" if sampled else "Identity"
        reading.append(helper.make_node(op, inputs, [value.name]))
    count = ctx.op("SequenceLength", node.input[0])
    values, writing, carried = [], [], []
    for name, value in zip(node.output, mapped.output, strict=True):
        inferred = ctx.site.body_type_of("body", value.name) or value.type
        elem_type, dims = elem_type_of(inferred), dims_of(inferred)
        if not elem_type:
            raise ctx.refused("unknown-type", f"the element type of {value.name!r} is not known")
        empty = ctx.op("SequenceEmpty", dtype=elem_type)
        before, after = ctx.fresh(f"{value.name}/so_far"), ctx.fresh(f"{value.name}/appended")
        kind = helper.make_sequence_type_proto(tensor_type(elem_type, dims))
        values += [helper.make_value_info(one, kind) for one in (before, after)]
        writing.append(helper.make_node("SequenceInsert", [before, value.name], [after]))
        carried.append(Carried(empty, before, after, name or ctx.fresh("unused")))
    body = copied(mapped)
    replace_all(body.node, [*reading, *mapped.node, *writing])
    body.value_info.extend(values)
    body.input.extend(
        [
            helper.make_value_info(step, tensor_type(TensorProto.INT64, ())),
            helper.make_value_info(go, tensor_type(TensorProto.BOOL, ())),
        ]
    )
    body.output.append(helper.make_value_info(on, tensor_type(TensorProto.BOOL, ())))
    loop = LoopForm(
        kind=Kind.LOOP,
        body=body,
        carried=tuple(carried),
        trip_count=count,
        condition=Condition("", go, on),
        iteration=step,
    )
    return [ctx.changed(loop.to_node())]


def _is_sequence(ctx: Conversion, name: str) -> bool:
    known = ctx.type_of(name)
    if known is None:
        raise ctx.refused("unknown-type", f"the type of {name!r} is unknown: it may be a sequence")
    return bool(known.HasField("sequence_type"))


@adapter_down("Identity", 14)
def identity_13(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Of a sequence: a tensor is appended and taken away again."""
    known = ctx.type_of(node.input[0])
    if known is None or not known.HasField("sequence_type"):
        return [node]
    elem_type = elem_type_of(known.sequence_type.elem_type)
    if not elem_type:
        raise ctx.refused("unknown-type", f"the tensors in {node.input[0]!r} are of unknown type")
    none = ctx.value(np.zeros(0, helper.tensor_dtype_to_np_dtype(elem_type)), "no_element")
    longer = ctx.op("SequenceInsert", node.input[0], none)
    return [ctx.changed(node, op="SequenceErase", inputs=[longer])]


identical("Optional", 28)
identical("OptionalGetElement", 18)  # tensors and sequences, which hold themselves, are new
identical("OptionalGetElement", 28)
identical("OptionalHasElement", 18, because="the input may now be missing, or be no optional")
identical("OptionalHasElement", 28)


@adapter_down("OptionalGetElement", 18)
def optional_get_element_15(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """A value that is no optional is its own element: an Identity."""
    if _is_optional(node.input[0], ctx):
        return [node]
    return [ctx.changed(node, op="Identity")]


@adapter_down("OptionalHasElement", 18)
def optional_has_element_15(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """A value that is no optional always has an element, and an omitted one never."""
    name = next(iter(node.input), "")
    if name and _is_optional(name, ctx):
        return [node]
    return [ctx.changed(node, op="Identity", inputs=[ctx.value(np.array(bool(name)), "has")])]


def _is_optional(name: str, ctx: Conversion) -> bool:
    known = ctx.type_of(name)
    if known is None:
        raise ctx.refused("unknown-type", f"whether {name!r} is an optional is not known")
    return bool(known.HasField("optional_type"))


for _op in ("Optional", "OptionalGetElement", "OptionalHasElement"):
    refusal_down(
        _op, 15, "no-equivalent", f"{_op} is about an optional, and before opset 15 there are none"
    )


def _optional(node: NodeProto, ctx: Conversion) -> str:
    known = ctx.type_of(node.input[0])
    if known is not None and known.HasField("optional_type"):
        return f"{node.input[0]!r} is an optional, which Identity takes from opset 16 on"
    return ""


identical_down("Identity", 16, because="optionals are new", unless=_optional)


for _op, _version, _does in (
    ("StringNormalizer", 10, "changes the case of strings"),
    ("StringConcat", 20, "joins strings"),
    ("StringSplit", 20, "takes strings apart"),
    ("RegexFullMatch", 20, "matches strings"),
    ("TfIdfVectorizer", 9, "counts n-grams"),
):
    refusal_down(_op, _version, "no-equivalent", f"before opset {_version} no op {_does}")
