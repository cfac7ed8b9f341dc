"""The body of a loop over the remaining iterations."""

from __future__ import annotations

from onnx import GraphProto, helper

from passes.bodies.iteration import write_iteration
from passes.ir.protos import named, replace_all
from passes.rules.unroll.unrolling import Unrolling
from passes.writing.author import Author
from passes.writing.body_outputs import own, without_copies


def remaining_body(
    loop: Unrolling, inner: Author, *, first: str = "", counted: bool = False
) -> GraphProto:
    """The body under names of its own, written by `inner`.

    `first`, an int64 scalar, is the number of the first iteration of a Loop, 0 where it is empty.
    `counted`: only the trip count ends the Loop, so the condition is handed on as it is.
    """
    form, body = loop.form, loop.body
    fed = body.graph.input
    head = (form.iteration, form.condition.body_input) if form.condition else ()
    values = [*map(helper.make_value_info, head, form.head_types), *fed[len(head) :]]
    taken = [inner.fresh(value.name) for value in values]
    sources = list(taken)
    if first:
        sources[0] = inner.op("Add", taken[0], first)
    mapping = dict(zip([value.name for value in values], sources, strict=True))
    written = write_iteration(inner, body, mapping, "rest")
    inner.adopt(written.nodes)
    results = [taken[1], *written.outputs[1:]] if counted else written.outputs
    declared = list(body.graph.output)
    if counted:
        declared[0] = values[1]
    names = [own(inner, result, value) for result, value in zip(results, declared, strict=True)]
    inputs = [named(value, name) for value, name in zip(values, taken, strict=True)]
    outputs = [named(value, name) for value, name in zip(declared, names, strict=True)]
    graph = inner.graph(f"{body.graph.name or 'body'}_rest", inputs, outputs)
    nodes, names = without_copies(graph.node, names)
    replace_all(graph.node, nodes)
    replace_all(graph.output, [named(*pair) for pair in zip(declared, names, strict=True)])
    graph.value_info.extend(value for value in written.value_info if value.name not in names)
    graph.quantization_annotation.extend(written.annotations)
    return graph
