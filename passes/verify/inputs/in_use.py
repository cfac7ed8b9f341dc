"""Inputs as in use: what multiplies the state of a loop lets it neither grow nor vanish."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.ir.places import is_loop
from passes.ir.scope import Scope
from passes.loops.form import LoopForm
from passes.operators.table import traits_of
from passes.operators.traits import Values
from passes.types.dtypes import is_float
from passes.types.value_types import dims_of
from passes.verify.executor import Feeds

#: The largest part of a state that a decay takes away.
_LOST = 0.1
#: An input whose elements a value has, and the operators applied to these, the last one first.
Source = tuple[str, tuple[str, ...]]
#: The sources of values; None for what depends on a state.
_Known = dict[str, Source | None]
#: Operators that may return a decay (Sub subtracts from 1), and those that multiply a state.
_GATES, _PRODUCTS = ("Exp", "Neg", "Sub"), ("Mul", "MatMul", "Gemm", "Einsum")


def in_use(model: Model, feeds: Feeds) -> Feeds:
    """Inputs that are drawn as normal deviates, as they are in use: what multiplies a state of a
    loop is a decay if it does so element by element, else a row of norm 1."""
    used = dict(feeds)
    for (name, ops), is_row in _all_multipliers(model):  # rows prevail, for they are last
        drawn = feeds.get(name)
        if isinstance(drawn, np.ndarray) and is_float(drawn.dtype):
            value = drawn.astype(np.float64)
            decay = 1 - _LOST / (1 + np.exp(-value))
            for op in ops:
                decay = np.log(decay) if op == "Exp" else (op == "Sub") - decay
            row = value / max(drawn.shape[-2:], default=1) ** 0.5
            used[name] = np.asarray(row if is_row else decay).astype(drawn.dtype)
    return used


def _all_multipliers(model: Model) -> list[tuple[Source, bool]]:
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
