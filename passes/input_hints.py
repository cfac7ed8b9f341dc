"""What a loop says of the inputs it reads: which axes agree, which values are lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import NodeProto, ValueInfoProto

from passes import scope as scoping
from passes.loop_form import Kind, LoopForm
from passes.model import Model
from passes.value_types import Dim, dims_of
from passes.verify.draw import Hint
from passes.verify.executor import Value

_BATCH, _TIME = "loop batch", "loop time"


def hints_for(
    node: NodeProto,
    opset: int,
    inputs: Sequence[ValueInfoProto],
    seen: Sequence[Mapping[str, Value]] = (),
) -> dict[str, Hint]:
    """Hints for drawing the inputs of a region around `node`, which is any node."""
    dims = _loop_dims(LoopForm.from_node(node, opset), inputs) if _is_loop(node) else {}
    lengths, time = _lengths(node, opset, dims)
    hints = {}
    for value in inputs:
        natural = tuple(one[value.name] for one in seen if value.name in one)
        hint = Hint(
            dims=tuple(dims[value.name]) if value.name in dims else None,
            length_of=time if value.name == lengths else None,
            natural=natural,
        )
        if hint != Hint():
            hints[value.name] = hint
    return hints


def model_hints(model: Model) -> dict[str, Hint]:
    """Hints for the inputs of a whole model, from the loops that read them directly."""
    hints: dict[str, Hint] = {}
    inputs = list(model.proto.graph.input)
    for node in model.proto.graph.node:
        if _is_loop(node):
            for name, hint in hints_for(node, model.opset(), inputs).items():
                hints.setdefault(name, hint)
    return hints


def _is_loop(node: NodeProto) -> bool:
    return node.op_type in ("Scan", "Loop") and scoping.is_onnx_domain(node.domain)


def _lengths(node: NodeProto, opset: int, dims: Mapping[str, list[Dim]]) -> tuple[str, Dim]:
    """The input that holds sequence_lens, and the dim that bounds it."""
    if not _is_loop(node):
        return "", None
    form = LoopForm.from_node(node, opset)
    if not form.lengths:
        return "", None
    time = dims[form.scanned[0].tensor][1] if form.scanned[0].tensor in dims else None
    return form.lengths, time


def _loop_dims(form: LoopForm, inputs: Sequence[ValueInfoProto]) -> dict[str, list[Dim]]:
    """Dims of the loop's inputs, with one name (or size) for batch and for time throughout."""
    declared = {value.name: dims_of(value.type) for value in inputs}
    dims: dict[str, list[Dim]] = {name: list(known) for name, known in declared.items() if known}
    batched = form.kind is Kind.SCAN_8
    tensors = [one.tensor for one in form.scanned]
    states = [one.initial for one in form.carried] if batched else []
    lengths = [form.lengths] if form.lengths else []
    if batched:
        _unify(dims, [(name, 0) for name in (*tensors, *states, *lengths)], _BATCH)
    _unify(dims, [(one.tensor, one.axis) for one in form.scanned], _TIME)
    return dims


def _unify(dims: dict[str, list[Dim]], axes: Sequence[tuple[str, int]], default: str) -> None:
    there = [(name, axis) for name, axis in axes if name in dims and axis < len(dims[name])]
    known = [dims[name][axis] for name, axis in there]
    size: Dim = next((dim for dim in known if isinstance(dim, int)), None)
    size = size if size is not None else next((dim for dim in known if dim), default)
    for name, axis in there:
        dims[name][axis] = size
