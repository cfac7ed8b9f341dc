"""The body of a loop that does the iterations that are left."""

from __future__ import annotations

from onnx import GraphProto, helper

from passes.ir.repeated import replace_all
from passes.loops.form import LoopForm
from passes.rules.unroll.iteration import write_iteration
from passes.rules.unroll.shared_body import SharedBody
from passes.writing.author import Author
from passes.writing.body_outputs import named, own, without_copies


def remaining_body(
    inner: Author,
    form: LoopForm,
    body: SharedBody,
    tag: str,
    *,
    first: str = "",
    counted: bool = False,
) -> GraphProto:
    """The body under names of its own, which end in `tag`.

    `first`, an int64 scalar, is what a Loop's iteration number starts from, 0 where it is empty.
    `counted`: only a count ends the Loop, so the condition is handed on as it is.
    """
    fed = body.graph.input
    head = (form.iteration, form.condition.body_input) if form.condition else ()
    values = [*map(helper.make_value_info, head, form.head_types), *fed[len(head) :]]
    taken = [inner.fresh(one.name) for one in values]
    given = list(taken)
    if first:
        given[0] = inner.op("Add", taken[0], first)
    mapping = dict(zip([one.name for one in values], given, strict=True))
    written = write_iteration(inner, body, mapping, tag)
    inner.adopt(written.nodes)
    results = [taken[1], *written.outputs[1:]] if counted else written.outputs
    declared = list(body.graph.output)
    if counted:
        declared[0] = values[1]
    names = [own(inner, one, value) for one, value in zip(results, declared, strict=True)]
    inputs = [named(one, name) for one, name in zip(values, taken, strict=True)]
    outputs = [named(one, name) for one, name in zip(declared, names, strict=True)]
    graph = inner.graph(f"{body.graph.name or 'body'}_{tag}", inputs, outputs)
    nodes, names = without_copies(graph.node, names)
    replace_all(graph.node, nodes)
    replace_all(graph.output, [named(*one) for one in zip(declared, names, strict=True)])
    graph.value_info.extend(one for one in written.value_info if one.name not in names)
    graph.quantization_annotation.extend(written.annotations)
    return graph
