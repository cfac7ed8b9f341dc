"""If, Scan and Loop inside a body: one run for all rows where they agree, else each row its own."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from onnx import AttributeProto, GraphProto, NodeProto, helper

from passes.ir import scope as scoping
from passes.ir.protos import copied
from passes.loops.form import Collected, Kind, LoopForm
from passes.vectorize.row_loops import chosen, each_its_own, flat, may_run_for_all, one_shape
from passes.vectorize.vectorizer import BatchedBody, Vectorizer, batched, shifted
from passes.writing.scan_axes import write_scan


@batched("If")
def branch(node: NodeProto, ctx: Vectorizer) -> set[str] | None:
    """All rows take one branch where the condition is one for all; else each takes its own."""
    if ctx.carries(node.input[0]):
        _by_row(node, ctx)
        return None
    return _together(node, ctx)


def _together(node: NodeProto, ctx: Vectorizer) -> set[str]:
    """Outputs that carry the axis in one branch are spread in the other."""
    bodies = dict(scoping.subgraphs(node))
    found = {name: ctx.body(graph, (), ()) for name, graph in bodies.items()}
    wanted = [any(flags) for flags in zip(*(body.carrying for body in found.values()), strict=True)]
    for name, graph in bodies.items():
        if list(found[name].carrying) != wanted:
            outputs = zip(scoping.output_names(graph), wanted, strict=True)
            found[name] = ctx.body(graph, (), {output for output, carries in outputs if carries})
    copy = copied(node)
    for attribute in copy.attribute:
        if attribute.type == AttributeProto.GRAPH:
            attribute.g.CopyFrom(found[attribute.name].graph)
    ctx.author.adopt([copy])
    outputs = zip(node.output, wanted, strict=False)
    return {name for name, carries in outputs if name and not carries}


def _by_row(node: NodeProto, ctx: Vectorizer) -> None:
    """Both branches run for all rows, out in the open, and each row takes what is its own."""
    branches = dict(scoping.subgraphs(node))
    then, otherwise = branches["then_branch"], branches["else_branch"]
    may_run_for_all(ctx, node, [then, otherwise])
    mask = flat(ctx, node.input[0], ctx.rank(node.input[0]))
    for graph in (then, otherwise):
        _open(graph, ctx)
    ends = zip(scoping.output_names(then), scoping.output_names(otherwise), strict=True)
    for output, (new, old) in zip(node.output, ends, strict=False):
        if output:
            one_shape(ctx, node, new, old)
            ctx.name_as(chosen(ctx, mask, new, old, new), output)


def _open(graph: GraphProto, ctx: Vectorizer) -> None:
    """Write the nodes of a branch in place of the If; names are unique at every depth."""
    ctx.author.adopt([], graph.initializer)
    for sparse in graph.sparse_initializer:
        constant = helper.make_node("Constant", [], [sparse.values.name], sparse_value=sparse)
        ctx.author.adopt([constant])
    ctx.nodes(graph.node)


@batched("Scan", "Loop")
def loop(node: NodeProto, ctx: Vectorizer) -> set[str]:
    """All rows run one loop, where they all run it equally often.

    Which carried values have the axis is a fixpoint that starts from the initial ones: a value
    that becomes one of each row is spread from the start.
    """
    form = LoopForm.from_node(node, ctx.opset)
    starts = form.condition.initial if form.condition is not None else ""
    by_row = ctx.carries(form.trip_count) or ctx.carries(starts)
    inside = _Inside.of(ctx, form)
    if by_row or inside.ends_by_row:
        each_its_own(node, ctx, form)
        return set()
    return inside.write(ctx)


@dataclass(frozen=True)
class _Inside:
    """A loop with its vectorised body, whose outputs `form` names; flags tell which have the
    axis."""

    form: LoopForm
    ends_by_row: bool
    states: tuple[bool, ...]
    elements: tuple[bool, ...]

    @classmethod
    def of(cls, ctx: Vectorizer, form: LoopForm) -> _Inside:
        body = _fixpoint(ctx, form)
        first = int(form.condition is not None)
        count = first + len(form.carried)
        return cls(
            form=_on_body(form, body),
            ends_by_row=any(body.carrying[:first]),
            states=body.carrying[first:count],
            elements=body.carrying[count:],
        )

    def write(self, ctx: Vectorizer) -> set[str]:
        """Write the loop; returns its outputs that are the same for all rows."""
        form = self.form
        collected = [
            _placed(ctx, form, *pair) for pair in zip(form.collected, self.elements, strict=True)
        ]
        written = replace(
            form,
            carried=tuple(
                replace(
                    carried,
                    initial=ctx.spread(carried.initial) if wide else carried.initial,
                    final=carried.final or ctx.fresh("unused"),
                )
                for carried, wide in zip(form.carried, self.states, strict=True)
            ),
            scanned=tuple(
                replace(scanned, axis=shifted(scanned.axis))
                if ctx.carries(scanned.tensor)
                else scanned
                for scanned in form.scanned
            ),
            collected=tuple(collected),
        )
        write_scan(ctx.author, written, rows=int(ctx.axis.nonempty))
        for original, made in zip(form.collected, collected, strict=True):
            if original.tensor and original.tensor != made.tensor:
                _to_front(ctx, form, original, made.tensor)
        flags = zip(form.outputs, (*self.states, *self.elements), strict=True)
        return {name for name, wide in flags if name and not wide}


def _fixpoint(ctx: Vectorizer, form: LoopForm) -> BatchedBody:
    """The body in which the fewest carried values have the axis; at most one round for each."""
    scanned = {scanned.body_input for scanned in form.scanned if ctx.carries(scanned.tensor)}
    first = int(form.condition is not None)
    found = {index for index, state in enumerate(form.carried) if ctx.carries(state.initial)}
    while True:
        carried = [form.carried[index] for index in found]
        inputs = scanned | {state.body_input for state in carried}
        body = ctx.body(form.body, inputs, {state.body_output for state in carried})
        now = {index for index in range(len(form.carried)) if body.carrying[first + index]}
        if now <= found:
            return body
        found |= now


def _on_body(form: LoopForm, body: BatchedBody) -> LoopForm:
    """The loop on another body, whose outputs may have other names."""
    outputs = iter(scoping.output_names(body.graph))
    condition = form.condition
    if condition is not None:
        condition = replace(condition, body_output=next(outputs))
    return replace(
        form,
        body=body.graph,
        condition=condition,
        carried=tuple(replace(carried, body_output=next(outputs)) for carried in form.carried),
        collected=tuple(replace(output, body_output=next(outputs)) for output in form.collected),
    )


def _placed(ctx: Vectorizer, form: LoopForm, collected: Collected, wide: bool) -> Collected:
    """A collected output of all rows; a Loop puts the new axis second, so it gets a draft name.

    No output is omitted: onnxruntime has no loops without them.
    """
    drafted = not collected.tensor or (wide and form.kind is Kind.LOOP)
    tensor = ctx.fresh("collected") if drafted else collected.tensor
    axis = shifted(collected.axis) if wide and form.kind is Kind.SCAN else collected.axis
    return replace(collected, tensor=tensor, axis=axis)


def _to_front(ctx: Vectorizer, form: LoopForm, collected: Collected, draft: str) -> None:
    """[time, B, ...] as [B, time, ...].

    Where no iteration ran, onnxruntime gives a size that it does not know as 0: the new axis
    gets its size again then (a 0 in a Reshape keeps the axis there).
    """
    rank = ctx.rank(collected.tensor)
    front = ctx.op("Transpose", draft, perm=[1, 0, *range(2, 1 + rank)])
    if ctx.axis.static is None and not _runs(ctx, form):
        first = np.eye(1, 1 + rank, dtype=np.int64)[0]  # a Concat onnxruntime would turn into a -1
        shape = ctx.op("Mul", ctx.axis.size, ctx.value(first, "first"))
        front = ctx.op("Reshape", front, shape)
    ctx.name_as(front, collected.tensor)


def _runs(ctx: Vectorizer, form: LoopForm) -> bool:
    """Return whether the Loop is known to run once at least."""
    most = ctx.constant(form.trip_count)
    starts = form.condition.initial if form.condition is not None else ""
    true = ctx.constant(starts)
    started = not starts or (true is not None and bool(true.all()))
    return started and most is not None and bool(most.ravel()[0] > 0)
