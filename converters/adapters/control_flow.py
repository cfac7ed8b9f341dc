"""Steps of If, Loop and Scan.

Their bodies are converted node by node; what the ops themselves do has not changed but for
Scan, which lost its batch axis in version 9. Documents: If 1..25, Loop 1..25, Scan 8..25.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from onnx import NodeProto, TensorProto, TypeProto, helper

from passes.converters.scan_8.batched_scan import row_type
from passes.converters.steps import adapter_down, by_rule, identical, identical_down, refusal_down
from passes.converters.writing.conversion import Conversion
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.ir.protos import copied
from passes.loops.form import Carried, LoopForm
from passes.types.value_types import dims_of, may_be_equal, tensor_type


def _returned(node: NodeProto, ctx: Conversion) -> Iterator[tuple[str, TypeProto]]:
    """Yield the outputs of an If or Loop, and the carried values of a Loop, with their types if
    known."""
    for name in (*node.input, *node.output):
        if name and (known := ctx.type_of(name)) is not None:
            yield name, known


def _passing(kind: str, since: int, node: NodeProto, ctx: Conversion) -> str:
    """An objection to a sequence or optional before the opset in which it may be passed on."""
    for name, known in _returned(node, ctx):
        if known.WhichOneof("value") == f"{kind}_type":
            article = "an" if kind == "optional" else "a"
            what = f"passes on {name!r}, {article} {kind}"
            return f"{op_of(node)} {what}, for which it takes opset {since}"
    return ""


_optional, _sequence = partial(_passing, "optional", 16), partial(_passing, "sequence", 13)


def _two_shapes(node: NodeProto, ctx: Conversion) -> str:
    """An objection to branches whose shapes cannot be the same."""
    own = scoping.holds_graphs(ctx.site.node)  # of others, the bodies are made by a step
    given = [
        [
            dims_of(ctx.site.body_type_of(part, value.name) if own else value.type)
            for value in graph.output
        ]
        for part, graph in scoping.subgraphs(node)
    ]
    for name, *shapes in zip(node.output, *given, strict=False):
        if len(shapes) == 2 and not may_be_equal(*shapes):
            return f"the branches give {name!r} in two shapes, for which If takes opset 11"
    return ""


identical("If", 11, because="the branches may now differ in shape")
identical("If", 13, 16, 19, 21, 23, 24, 25)
identical_down("If", 16, because="optionals are new", unless=_optional)
identical_down("If", 13, because="sequences are new", unless=_sequence)
identical_down("If", 11, because="its branches may differ in shape", unless=_two_shapes)

identical(
    "Loop", 11, because="the same loop, specified better; no carried value is needed any more"
)
identical("Loop", 13, 16, 19, 21, 23, 24, 25)
identical_down("Loop", 16, because="optionals are new", unless=_optional)
identical_down("Loop", 13, because="sequences are new", unless=_sequence)


@adapter_down("Loop", 11)
def loop_1(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """A Loop that carries nothing carries a number that nobody reads."""
    form = LoopForm.from_node(node, ctx.version + 1)
    if form.carried:
        return [node]
    number = tensor_type(TensorProto.FLOAT, ())
    given, returned = ctx.fresh("carried"), ctx.fresh("carried_on")
    body = copied(form.body)
    body.node.append(helper.make_node("Identity", [given], [returned]))
    body.input.append(helper.make_value_info(given, number))
    body.value_info.append(helper.make_value_info(returned, number))
    start = ctx.value(np.array(0, np.float32), "carried")
    company = Carried(start, given, returned, ctx.fresh("unused"))
    return [ctx.changed(replace(form, body=body, carried=(company,)).to_node())]


by_rule("Scan", 9, "scan-8")
identical("Scan", 11, because="negative axes are new")
identical("Scan", 16, 19, 21, 23, 24, 25)


@adapter_down("Scan", 11)
def scan_9(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Negative axes are counted from the front."""
    form = LoopForm.from_node(node, ctx.version + 1)
    axes = [one.axis for one in form.scanned] + [one.axis for one in form.collected]
    if min(axes, default=0) >= 0:
        return [node]
    scanned = [
        replace(one, axis=one.axis % ctx.known_rank(one.tensor)) if one.axis < 0 else one
        for one in form.scanned
    ]
    collected = [
        replace(one, axis=one.axis % (1 + len(row_type(ctx.site, (one.body_output,)).dims)))
        if one.axis < 0
        else one
        for one in form.collected
    ]
    form = replace(form, scanned=tuple(scanned), collected=tuple(collected))
    return [ctx.changed(form.to_node())]


refusal_down(
    "Scan",
    9,
    "no-equivalent",
    "opset 9 is the lowest with a Scan that has no batch axis (lower writes it as a Loop)",
)
refusal_down("Scan", 8, "no-equivalent", "before opset 8 nothing runs over a batch of sequences")
