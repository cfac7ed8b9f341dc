"""Writes one copy of a subgraph as the body of a loop."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from math import prod

from onnx import NodeProto, TensorProto, TypeProto

from passes.ir.attributes import numbers
from passes.ir.draft import ITERATION_KEY
from passes.ir.names import Names
from passes.ir.operators import op_of
from passes.ir.protos import replace_all
from passes.loops.form import Carried, Scanned
from passes.rules.reroll.chain import Chain, Inner, Outer, State, Wire
from passes.rules.reroll.flow import Value, reading
from passes.rules.reroll.slices import Slices, Slicing
from passes.types.value_types import dims_of
from passes.writing import spelling
from passes.writing.author import Author

_MOST = 16  # elements of a constant that is written into the body
_TAG = re.compile(r"/it\d+\b")


@dataclass(frozen=True)
class Row:
    """A value in the body; `axis`: it lacks that one, of size 1."""

    name: str
    axis: int | None = None


@dataclass
class Step:
    """The body of the loop that a chain becomes, in the making."""

    chain: Chain
    wires: list[list[Wire]]
    slicing: Slicing
    author: Author
    types: dict[str, TypeProto] = field(default_factory=dict)
    scanned: list[Scanned] = field(default_factory=list)
    states: dict[State, str] = field(default_factory=dict)
    values: dict[tuple[int, int], Row] = field(default_factory=dict)
    _scans: dict[object, Row] = field(default_factory=dict)
    _node_names: Names = field(default_factory=Names)

    def write(self) -> None:
        """Write the nodes of each place."""
        for place, row in enumerate(self.wires):
            node = self.node(place)
            if (slices := self.slicing.cut_by(node, row)) is not None:
                self.values[place, 0] = self._scan(slices)
            elif (value := self._squeezed(node, row)) is not None:
                self.values[place, 0] = value
            else:
                self._write(place, node, row)

    def node(self, place: int) -> NodeProto:
        """The node that the others of a place are like."""
        return self.chain.flow.node(self.chain.copies[1][place])

    def whole(self, row: Row) -> str:
        """The name of a value with all its axes."""
        axis = row.axis
        if axis is None:
            return row.name
        return self.author.once(row, lambda: spelling.unsqueeze(self.author, row.name, axis))

    def carried(self, state: State, final: str) -> Carried:
        """The carried value of the loop."""
        initial = self.chain.flow.name(state.initial)
        new = self.whole(self.values[state.place, state.out])
        return Carried(initial, self.states[state], new, final)

    def _write(self, place: int, node: NodeProto, row: list[Wire]) -> None:
        new = reading(node, [self._read(wire) for wire in row])
        kept = [entry for entry in node.metadata_props if entry.key != ITERATION_KEY]
        replace_all(new.metadata_props, kept)
        new.name = node.name and self._node_names.fresh(_TAG.sub("", node.name))
        for out, name in enumerate(node.output):
            if name:
                new.output[out] = self.author.names.fresh(_TAG.sub("", name))
                self.values[place, out] = Row(new.output[out])
        self.author.adopt([new])

    def _read(self, wire: Wire) -> str:
        row = self._value(wire)
        return self.whole(row)

    def _value(self, wire: Wire) -> Row:
        flow = self.chain.flow
        if isinstance(wire, Inner):
            return self.values[wire.place, wire.out]
        if isinstance(wire, State):
            if wire not in self.states:
                name = self.author.fresh("state")
                self.states[wire] = name
                self.types[name] = self.slicing.kinds.declared(flow.name(wire.initial))
            return Row(self.states[wire])
        if len(set(wire.values)) == 1:
            return Row(self._same(wire.values[0]))
        if wire not in self._scans:
            self._scans[wire] = self._scan(self.slicing.of(wire))
        return self._scans[wire]

    def _same(self, value: Value) -> str:
        """A value from outside; the axes and sizes among the constants are written into the body,
        where they tell the shapes of its values."""
        tensor = self.chain.flow.tensor(value)
        if tensor is None or tensor.data_type != TensorProto.INT64 or prod(tensor.dims) > _MOST:
            return self.chain.flow.name(value)
        return self.author.value(self.chain.flow.model.read(tensor))

    def _scan(self, slices: Slices) -> Row:
        """The slice of a tensor that an iteration reads."""
        key = (slices.tensor, slices.axis, slices.reversed)
        if key not in self._scans:
            name = self.author.fresh("each")
            self.scanned.append(Scanned(slices.tensor, name, slices.axis, slices.reversed))
            self.types[name] = slices.type
            self._scans[key] = Row(name)
        name = self._scans[key].name
        return Row(name, slices.axis if slices.kept else None)

    def _squeezed(self, node: NodeProto, row: list[Wire]) -> Row | None:
        """The row that a Squeeze returns of a slice that lacks the axis anyway."""
        if op_of(node) != "Squeeze" or isinstance(row[0], State) or any(map(is_varying, row[1:])):
            return None
        value = self._value(row[0])
        axes = numbers(node, 1, "axes", self.slicing.site.constant)
        if value.axis is None or not axes or len(axes) > 1:
            return None
        rank = 1 + len(dims_of(self.types[value.name]) or ())
        return Row(value.name) if axes[0] in (value.axis, value.axis - rank) else None


def is_varying(wire: Wire) -> bool:
    """Return whether the copies read values of their own."""
    return isinstance(wire, Outer) and len(set(wire.values)) > 1
