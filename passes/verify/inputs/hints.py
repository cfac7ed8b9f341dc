"""Derives facts about inputs from the loops, and recurrent operators, that read them: which axes
agree, which values are lengths, what multiplies a state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from onnx import NodeProto, ValueInfoProto

from passes.ir import scope as scoping
from passes.ir.attributes import attribute
from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.ir.places import is_loop
from passes.ir.scope import Place, Scope
from passes.loops.form import Kind, LoopForm
from passes.operators.cells import RECURRENT, CellInputs
from passes.operators.table import traits_of
from passes.operators.traits import Values
from passes.types.value_types import INFERRED, Dim, dims_of
from passes.verify.executor import Value
from passes.verify.inputs.draw import Hint

#: An input whose elements a value has, and the operators applied to these, the last one first.
Source = tuple[str, tuple[str, ...]]
#: The sources of values; None for what depends on a state.
_Known = dict[str, Source | None]
_BATCH, _TIME = "loop batch", "loop time"
#: Operators that may return a decay (Sub subtracts from 1), and those that multiply a state.
_GATES, _PRODUCTS = ("Exp", "Neg", "Sub"), ("Mul", "MatMul", "Gemm", "Einsum")


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


def multipliers(model: Model) -> list[tuple[Source, bool]]:
    """The inputs that multiply the state of a loop, moved or as gates: first those that do so
    element by element, then the others, with True."""
    known = _Known({value.name: (value.name, ()) for value in model.proto.graph.input})
    found = _multipliers(model, next(scoping.scopes(model.proto)), known)
    return sorted(found, key=lambda one: one[1])


def _multipliers(model: Model, scope: Scope, known: _Known) -> Iterator[tuple[Source, bool]]:
    """The same in a graph and its bodies; adds the graph's values to those that are known."""
    for index, node in enumerate(scope.owner.node):
        entering = _Known()
        if is_loop(node):
            form = LoopForm.from_node(node, model.opset())
            outer = {name: one.initial for name, one in form.unchanged.items()}
            outer |= {one.body_input: one.tensor for one in form.scanned}
            entering |= dict.fromkeys({one.body_input for one in form.carried} - {*outer})
            entering |= {name: known[fed] for name, fed in outer.items() if fed in known}
        for body in scope.inner(index):
            yield from _multipliers(model, body, known | entering)
        op, traits = op_of(node), traits_of(node)
        moves = traits.only_moves and traits.values is Values.EXACT and op != "Concat"
        reads = node.input[:1] if moves else scoping.free_names(node)
        states = [name for name in reads if known.get(name, ()) is None]
        source = known.get(reads[-1 if op == "Sub" else 0]) if reads else None
        if source and (moves or (op in _GATES and not states)):
            name, ops = source
            known |= dict.fromkeys(node.output, (name, ops if moves else (op, *ops)))
        elif states:
            known |= dict.fromkeys(node.output)
            shapes = {dims_of(model.types.of(scope, name)) for name in (*states, *node.output)}
            factors = filter(None, map(known.get, node.input if op in _PRODUCTS else ()))
            yield from ((factor, op != "Mul" or len(shapes - {None}) > 1) for factor in factors)


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
    for name, found in _dims_in_body(form).items():
        if name in declared and declared[name] is None:
            dims[name] = found
    tensors = [scanned.tensor for scanned in form.scanned]
    states = [carried.initial for carried in form.carried] if batched else []
    lengths = [form.lengths] if form.lengths else []
    if batched:
        _unify(dims, [(name, 0) for name in (*tensors, *states, *lengths)], _BATCH)
    _unify(dims, [(scanned.tensor, scanned.axis) for scanned in form.scanned], _TIME)
    _take_sizes_of_body(dims, form)
    return dims


def _take_sizes_of_body(dims: dict[str, list[Dim]], form: LoopForm) -> None:
    """Take over sizes that the body declares and that inference outside of it does not know.

    A Scan of no iterations would take other ones, too, but none are meant. A Loop takes others
    anyway, so there a symbol outside means any size, unless inference made it up.
    """
    declared = {value.name: dims_of(value.type) for value in form.body.input}
    of_loop = form.kind is Kind.LOOP
    batch = {0} if form.kind is Kind.SCAN_8 else set()
    rows = [(carried.initial, declared.get(carried.body_input), batch) for carried in form.carried]
    for scanned in form.scanned:
        rank = len(dims.get(scanned.tensor, ()))
        time = {scanned.axis % rank} if rank else set()
        rows.append((scanned.tensor, declared.get(scanned.body_input), batch | time))
    for name, row, outer in rows:
        places = [place for place in range(len(dims.get(name, ()))) if place not in outer]
        if row is None or len(row) != len(places):
            continue
        for place, size in zip(places, row, strict=True):
            known = dims[name][place]
            if not isinstance(size, int):
                continue
            if known is None:
                dims[name][place] = size
            elif isinstance(known, str) and (not of_loop or known.startswith(INFERRED)):
                for one_more in dims.values():
                    one_more[:] = [size if dim == known else dim for dim in one_more]


def _dims_in_body(form: LoopForm) -> dict[str, list[Dim]]:
    """The dims of what is fed, as far as the body declares the rank of its inputs."""
    inside = {value.name: dims_of(value.type) for value in form.body.input}
    batch: list[Dim] = [None] if form.kind is Kind.SCAN_8 else []
    known: dict[str, list[Dim]] = {}
    for carried in form.carried:
        dims = inside.get(carried.body_input)
        if dims is not None:
            known[carried.initial] = [*batch, *dims]
    for scanned in form.scanned:
        dims = inside.get(scanned.body_input)
        if dims is not None:
            rows = [*batch, *dims]
            rows.insert(scanned.axis % (len(rows) + 1), None)
            known[scanned.tensor] = rows
    return known


def _unify(dims: dict[str, list[Dim]], axes: Sequence[tuple[str, int]], default: str) -> None:
    there = [(name, axis) for name, axis in axes if name in dims and axis < len(dims[name])]
    known = [dims[name][axis] for name, axis in there]
    size: Dim = next((dim for dim in known if isinstance(dim, int)), None)
    size = size if size is not None else next((dim for dim in known if dim), default)
    for name, axis in there:
        dims[name][axis] = size
