"""Derives facts about inputs from the loops, and recurrent operators, that read them: which axes
agree, which values are lengths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from onnx import NodeProto, ValueInfoProto

from passes.ir import scope as scoping
from passes.ir.attributes import attribute
from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.ir.places import is_loop
from passes.ir.scope import Place
from passes.loops.form import Kind, LoopForm
from passes.operators.cells import RECURRENT, CellInputs
from passes.types.value_types import INFERRED, Dim, dims_of
from passes.verify.executor import Value
from passes.verify.inputs.drawer import Hint

_BATCH, _TIME = "loop batch", "loop time"


def hints_for(
    node: NodeProto,
    opset: int,
    inputs: Sequence[ValueInfoProto],
    seen: Sequence[Mapping[str, Value]] = (),
) -> dict[str, Hint]:
    """Hints for drawing the inputs of a region around `node`, which is any node."""
    dims = _loop_dims(LoopForm.from_node(node, opset), inputs) if is_loop(node) else {}
    lengths, time = _lengths(node, opset, dims, inputs)
    hints = {}
    for value in inputs:
        natural = tuple(feeds[value.name] for feeds in seen if value.name in feeds)
        hint = Hint(
            dims=tuple(dims[value.name]) if value.name in dims else None,
            length_of=time if value.name == lengths else None,
            natural=natural,
        )
        if hint != Hint():
            hints[value.name] = hint
    return hints


def model_hints(model: Model) -> dict[str, Hint]:
    """Return hints for the inputs of a whole model, from the loops that read them directly, at any
    depth.

    If several loops read one, its shape is that of the first, and it holds lengths if any
    loop takes it for lengths.
    """
    hints: dict[str, Hint] = {}
    inputs = {value.name: value for value in model.proto.graph.input}
    for place in scoping.walk(next(scoping.scopes(model.proto))):
        if is_loop(place.node) or op_of(place.node) in RECURRENT:
            read = [inputs[name] for name in _reads_of(model, place) if name in inputs]
            for name, hint in hints_for(place.node, model.opset(), read).items():
                first = hints.setdefault(name, replace(hint, chosen=True))
                if first.length_of is None:
                    hints[name] = replace(first, length_of=hint.length_of)
    return hints


def _reads_of(model: Model, place: Place) -> list[str]:
    """The inputs of a node that no body around it defines, in their order."""
    inner = [around.owner for around in place.scope.chain() if around.outer is not None]
    names = dict.fromkeys(filter(None, place.node.input))
    return [name for name in names if not any(model.defines(owner, name) for owner in inner)]


def _lengths(
    node: NodeProto,
    opset: int,
    dims: Mapping[str, list[Dim]],
    inputs: Sequence[ValueInfoProto],
) -> tuple[str, Dim]:
    """The input that holds sequence_lens, and the dim that bounds it."""
    if op_of(node) in RECURRENT and (lengths := CellInputs.of(node).lengths):
        axis = 1 if attribute(node, "layout", 0) else 0
        rows = [dims_of(value.type) or () for value in inputs if value.name == node.input[0]]
        return lengths, next((found[axis] for found in rows if found), None)
    if not is_loop(node):
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
    inside = list(_dims_in_body(form))
    dims |= {name: found for name, found in inside if declared.get(name, ()) is None}
    tensors = [scanned.tensor for scanned in form.scanned]
    states = [carried.initial for carried in form.carried] if batched else []
    lengths = [form.lengths] if form.lengths else []
    if batched:
        _unify(dims, [(name, 0) for name in (*tensors, *states, *lengths)], _BATCH)
    _unify(dims, [(scanned.tensor, scanned.axis) for scanned in form.scanned], _TIME)
    _take_sizes_of_body(dims, form, inside)
    return dims


def _take_sizes_of_body(
    dims: dict[str, list[Dim]], form: LoopForm, inside: Sequence[tuple[str, Sequence[Dim]]]
) -> None:
    """Take over sizes that the body declares and that inference outside of it does not know.

    A Scan of no iterations would take other ones, too, but none are meant. A Loop takes others
    anyway, so there a symbol outside means any size, unless inference made it up.
    """
    of_loop = form.kind is Kind.LOOP
    for name, row in inside:
        places = range(len(row)) if len(row) == len(dims.get(name, ())) else ()
        for place in places:
            size, known = row[place], dims[name][place]
            if not isinstance(size, int):
                continue
            if known is None:
                dims[name][place] = size
            elif isinstance(known, str) and (not of_loop or known.startswith(INFERRED)):
                for one_more in dims.values():
                    one_more[:] = [size if dim == known else dim for dim in one_more]


def _dims_in_body(form: LoopForm) -> Iterator[tuple[str, list[Dim]]]:
    """The dims of what is fed, as far as the body declares its inputs; of batch and time nothing is
    declared there."""
    declared = {value.name: dims_of(value.type) for value in form.body.input}
    batch: list[Dim] = [None] if form.kind is Kind.SCAN_8 else []
    for carried in form.carried:
        if (dims := declared.get(carried.body_input)) is not None:
            yield carried.initial, [*batch, *dims]
    for scanned in form.scanned:
        if (dims := declared.get(scanned.body_input)) is not None:
            rows = [*batch, *dims]
            rows.insert(scanned.axis % (len(rows) + 1), None)
            yield scanned.tensor, rows


def _unify(dims: dict[str, list[Dim]], axes: Sequence[tuple[str, int]], default: str) -> None:
    there = [(name, axis) for name, axis in axes if name in dims and axis < len(dims[name])]
    known = [dims[name][axis] for name, axis in there]
    size: Dim = next((dim for dim in known if isinstance(dim, int)), None)
    size = size if size is not None else next((dim for dim in known if dim), default)
    for name, axis in there:
        dims[name][axis] = size
