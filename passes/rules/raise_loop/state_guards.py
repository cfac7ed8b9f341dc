"""Guards of carried values that a Scan does not need: it checks shapes itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from onnx import GraphProto

from passes.analysis.integers.integers import Integers
from passes.ir.graph_index import GraphIndex
from passes.ir.live import orphaned
from passes.ir.protos import copied, drop_at, replace_all
from passes.loops.form import LoopForm
from passes.rule import Site
from passes.types.value_types import Dims, dims_of
from passes.writing.guards import state_of


def without_state_guards(site: Site, form: LoopForm) -> tuple[LoopForm, frozenset[str]]:
    """The loop without the guards that `same_shape` and `same_sizes` wrote.

    Also returns the carried values (body inputs) that had one: a Scan itself requires
    that they have the same shape in each iteration (operator document of Scan 9).
    """
    constant = Integers(site, form.body).constant_inside

    def dims(name: str) -> Dims | None:
        return dims_of(site.body_type_of("body", name))

    bare: dict[str, str] = {}
    for state in form.carried:
        found = state_of(
            state.body_output, state.body_input, form.index.producers.get, constant, dims
        )
        if found is not None:
            bare[state.body_output] = found
    if not bare:
        return form, frozenset()
    guarded_inputs = {state.body_input for state in form.carried if state.body_output in bare}
    carried = [
        replace(state, body_output=bare.get(state.body_output, state.body_output))
        for state in form.carried
    ]
    body = copied(form.body)
    for position, state in enumerate(form.carried, start=1):  # behind the condition
        body.output[position].name = bare.get(state.body_output, state.body_output)
    _drop_unread(body, bare)
    return replace(form, body=body, carried=tuple(carried)), frozenset(guarded_inputs)


def _drop_unread(body: GraphProto, names: Iterable[str]) -> None:
    """Drop the nodes that only computed the named values, and the constants that they read."""
    index = GraphIndex(body)
    gone = orphaned(index, names)
    unread = {name for name, found in index.readers.items() if gone.issuperset(found)}
    drop_at(body.node, gone)
    replace_all(body.initializer, [one for one in body.initializer if one.name not in unread])
