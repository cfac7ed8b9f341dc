"""Carried values that a body only writes: one node computes the next from the last."""

from __future__ import annotations

from passes.ir import scope as scoping
from passes.ir.graph_index import OUTPUT
from passes.ir.operators import op_of
from passes.loops.form import Carried, LoopForm


def only_written(form: LoopForm, carried: Carried) -> frozenset[int]:
    """The positions of the node that computes the next value, and of Identities that pass it on.

    Empty if anything else in the body reads the value, before that node or after it.
    """
    index, nodes = form.index, form.body.node
    position = index.positions.get(index.source(carried.body_output))
    if position is None or index.readers.get(carried.body_input) != [position]:
        return frozenset()
    reads, returned = nodes[position].input, scoping.output_names(form.body)
    if list(reads).count(carried.body_input) != 1 or returned.count(carried.body_output) != 1:
        return frozenset()
    found = [position]
    for at in found:  # which grows
        name = nodes[at].output[0]
        ends = {OUTPUT} if name == carried.body_output else set[int]()
        readers = set(index.readers.get(name, ())) - ends
        if any(reader == OUTPUT or op_of(nodes[reader]) != "Identity" for reader in readers):
            return frozenset()
        found += readers
    return frozenset(found)
