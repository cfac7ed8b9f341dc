"""Guards of carried values that a Scan does not need: it fails itself where a shape changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt
from onnx import GraphProto, NodeProto

from passes.analysis.bodies.readers import makers_in, readers_in
from passes.analysis.integers.guards import Producer, Shapes, conjuncts, guarded
from passes.analysis.integers.integer_ops import attribute
from passes.analysis.integers.integers import Integers
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.ir.repeated import replace_all
from passes.loops.form import Carried, LoopForm
from passes.rule import Site
from passes.types.value_types import Dims, dims_of

Constant = Callable[[str], npt.NDArray[Any] | None]


def without_state_guards(site: Site, form: LoopForm) -> tuple[LoopForm, frozenset[str]]:
    """The loop without the guards that `same_shape` and `same_sizes` of `spelling` wrote.

    Answers also with the carried values (body inputs) that had one: a Scan itself requires
    that they have the same shape in each iteration (operator document of Scan 9).
    """
    constant = Integers(site, form.body).constant_inside

    def dims(name: str) -> Dims | None:
        return dims_of(site.body_type_of("body", name))

    makers = {name: node for node in form.body.node for name in node.output if name}
    bare: dict[str, str] = {}
    for one in form.carried:
        found = _unguarded(one, makers.get, constant, dims)
        if found is not None:
            bare[one.body_output] = found
    if not bare:
        return form, frozenset()
    guarded_inputs = {one.body_input for one in form.carried if one.body_output in bare}
    carried = [
        replace(one, body_output=bare.get(one.body_output, one.body_output)) for one in form.carried
    ]
    body = GraphProto()
    body.CopyFrom(form.body)
    for position, one in enumerate(form.carried, start=1):  # behind the condition
        body.output[position].name = bare.get(one.body_output, one.body_output)
    _drop_unread(body, bare)
    return replace(form, body=body, carried=tuple(carried)), frozenset(guarded_inputs)


def _unguarded(one: Carried, producer: Producer, constant: Constant, dims: Shapes) -> str | None:
    """What a carried value is where its guard lets it through, None where it has no guard."""
    node = producer(one.body_output)
    if node is None:
        return None
    row = _counted(node, producer, constant, one.body_input)
    if row is not None:
        # what the guard gives has the rank of what it guards, and is declared
        after, before = dims(one.body_output), dims(one.body_input)
        told = after is not None and before is not None
        return row if told and len(after or ()) == len(before or ()) else None
    guard = guarded(node, producer, constant, dims)
    if guard is None and op_of(node) == "Squeeze":  # a list of one, reshaped
        inner = producer(node.input[0])
        guard = guarded(inner, producer, constant, dims) if inner is not None else None
        rows = producer(guard.value) if guard is not None else None
        if guard is None or rows is None or op_of(rows) != "Unsqueeze":
            return None
        guard = replace(guard, value=rows.input[0])
    if guard is None:
        return None
    compares = _Compares([guard.value, one.body_input], producer, constant)
    return guard.value if compares.shapes(guard.condition) else None


def _counted(node: NodeProto, producer: Producer, constant: Constant, old: str) -> str | None:
    """The value that `spelling.same_sizes` guards, None where a node is another one."""
    if op_of(node) != "Gather" or attribute(node, "axis", 0):
        return None
    rows = producer(node.input[0])
    if rows is None or op_of(rows) != "Unsqueeze":
        return None
    axes = constant(rows.input[1]) if len(rows.input) > 1 else None
    first = [0] if axes is None else axes.tolist()
    if axes is None and any(list(one.ints) != [0] for one in rows.attribute):
        return None
    compares = _Compares([rows.input[0], old], producer, constant)
    return rows.input[0] if first == [0] and compares.counts(node.input[1]) else None


@dataclass(frozen=True)
class _Compares:
    """Sees whether a condition compares the shapes of two values."""

    values: list[str]
    producer: Producer
    constant: Constant

    def shapes(self, condition: str) -> bool:
        """Whether it says that they have the same rank and differ nowhere."""
        nodes = [node for node in conjuncts(condition, self.producer) if op_of(node) == "Equal"]
        return any(map(self._ranks, nodes)) and any(map(self._sizes, nodes))

    def _ranks(self, node: NodeProto) -> bool:
        ranks = ("Squeeze", "Shape", "Shape")
        return [self._behind(name, ranks) for name in node.input] == self.values

    def _sizes(self, node: NodeProto) -> bool:
        """The sum of what differs is 0."""
        zero = self.constant(node.input[1])
        return zero is not None and not zero.any() and self.counts(node.input[0])

    def counts(self, name: str) -> bool:
        """Whether a number is that of the sizes in which they differ."""
        differ = self.producer(self._behind(name, ("ReduceSum", "Cast", "Not")))
        if differ is None or op_of(differ) != "Equal":
            return False
        return [self._behind(name, ("Shape",)) for name in differ.input] == self.values

    def _behind(self, name: str, ops: tuple[str, ...]) -> str:
        """What a chain of ops, the last first, was computed from; empty where it is another."""
        for op in ops:
            node = self.producer(name)
            if node is None or op_of(node) != op:
                return ""
            if op in ("Shape", "ReduceSum") and (len(node.input) > 1 or _axes(node)):
                return ""  # of some axes only
            name = node.input[0]
        return name


def _axes(node: NodeProto) -> bool:
    return any(one.name in ("start", "end", "axes") for one in node.attribute)


def _drop_unread(body: GraphProto, names: dict[str, str]) -> None:
    """Drop the nodes that only computed the named values."""
    readers = {name: len(found) for name, found in readers_in(body).items()}
    makers = makers_in(body)
    gone: set[int] = set()
    pending = [name for name in names if not readers.get(name)]
    while pending:
        at = makers.get(pending.pop())
        if at is None or any(readers.get(name) for name in body.node[at].output):
            continue
        gone.add(at)
        for name in scoping.free_names(body.node[at]):
            readers[name] -= 1
            if not readers[name]:
                pending.append(name)
    replace_all(body.node, [node for at, node in enumerate(body.node) if at not in gone])
    unread = {name for name, count in readers.items() if not count}
    replace_all(body.initializer, [one for one in body.initializer if one.name not in unread])
