"""What stays in float32 in a cast to half precision, unless the user decides otherwise.

Errors grow with the length of a loop if a state is added to or scaled, but not if it passes a
saturating function or a product of matrices. The factors of such a state need more digits still:
float16 has no number between 0.9995 and 1, bfloat16 none between 0.996 and 1. An integer, a branch
or a trip count is right or wrong, so what it is computed of stays in float32, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, compress, product
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
from onnx import TensorProto, helper

from passes.analysis.safety.randomness import draws
from passes.errors import nearest
from passes.ir.attributes import text
from passes.ir.operators import HOLDERS, op_of
from passes.ir.places import Key, Place
from passes.ir.selection import NothingMatches, matches
from passes.operators.traits import Values
from passes.precision.flow import OMITTED, Flow, Step, Value
from passes.precision.seeds import Reason, Seeds
from passes.types.value_types import FLOATS, element

_CASTS = ("Cast", "CastLike")
#: Integers of more than 8 bits, which half precision does not hold exactly.
_INTEGERS = (
    *(TensorProto.INT16, TensorProto.INT32, TensorProto.INT64),
    *(TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64),
)
#: Constants of at most so many elements are parameters, of which a small one is no noise.
_FEW = 16
#: Elements of a weight that are looked at together.
_BLOCK = 1 << 20

_ENDS = Reason("decides", "it decides when a loop ends: the trip count might change")
_DECIDES = Reason("decides")


def float_seeds(flow: Flow, narrow: int, keep: Sequence[str], half: Sequence[str]) -> Seeds:
    """The nodes and values of float32 that stay so in a cast to `narrow`, float16 or bfloat16.

    `half` lifts the defaults of nodes, `keep` adds nodes; both are patterns of operators, paths or
    names of nodes, and include the bodies of what they match. Nodes with bodies are no seeds: what
    crosses the borders of the bodies is.

    Raises:
        NothingMatches: a pattern matches no node.
    """
    defaults = _Defaults(flow, narrow)
    defaults.by_choice(keep, half)
    defaults.by_range()
    defaults.by_states()
    defaults.by_decisions()
    defaults.by_operator()
    return defaults.seeds


def _names(place: Place) -> list[str]:
    """What patterns match of a node: its operator, path and name."""
    return list(filter(None, (op_of(place.node), place.path, place.node.name)))


def _by_element(step: Step) -> bool:
    """Return whether a node computes element by element, or chooses elements."""
    row = step.row
    elements = row.by_element or row.chooses
    return elements and row.values is not Values.SIZES and step.op not in HOLDERS


def _computes(step: Step) -> bool:
    """Return whether a node computes its outputs, rather than to tell sizes or positions, or to
    draw."""
    return not step.row.counting and not draws(step.node) and step.op not in HOLDERS


@dataclass
class _Defaults:
    """The seeds of a flow, which grow; the first reason is kept. The nodes and values that are
    `lifted` are no seeds from then on."""

    flow: Flow
    narrow: int
    seeds: Seeds = field(default_factory=Seeds)
    lifted: set[int] = field(default_factory=set)
    lifted_values: set[int] = field(default_factory=set)
    _reached: dict[str, set[int]] = field(default_factory=lambda: {"+": set(), "+*": set()})

    @cached_property
    def info(self) -> Any:
        """The limits of the narrow type."""
        return ml_dtypes.finfo(helper.tensor_dtype_to_np_dtype(self.narrow))

    def is_float(self, value: int) -> bool:
        """Return whether a value has floats, of any size."""
        return self.flow.elem_type(value) in FLOATS

    def stay(self, step: Step, reason: Reason) -> None:
        """A node stays in float32 if it reads or returns any; constants become what reads them."""
        types = map(self.flow.elem_type, (*step.inputs, *step.outputs))
        free = step.number in self.lifted or step.op in (*HOLDERS, "Constant")
        if not free and TensorProto.FLOAT in types:
            self.seeds.steps.setdefault(step.number, reason)

    def stays(self, value: int, reason: Reason) -> None:
        """A value stays in float32: the node that computes it, or what crosses a border."""
        producer = self.flow.producers[value]
        if producer is None or self.flow.steps[producer].op in HOLDERS:
            wide = self.flow.elem_type(value) == TensorProto.FLOAT
            if wide and value not in self.lifted_values:
                self.seeds.values.setdefault(value, reason)
        else:
            self.stay(self.flow.steps[producer], reason)

    # -- states -------------------------------------------------------------------------------

    def by_states(self) -> None:
        """States that grow or decay through sums, and what multiplies them.

        A path through what chooses, Max or Where, is no way out: errors of a sum that is clipped
        at 0 grow as those of one that is not.
        """
        import networkx as nx

        part: dict[int, int] = {}
        parts = nx.strongly_connected_components(nx.DiGraph(self._paths()))
        for number, values in enumerate(one for one in parts if len(one) > 1):
            part.update(dict.fromkeys(values, number))
        growing, factors = set[int](), list[int]()
        for step in self.flow.steps:
            how = step.row.accumulates
            mine = {part[value] for value in step.outputs if value in part} if how else ()
            on_path = [value for value in step.inputs if part.get(value, -1) in mine]
            if on_path:
                growing.update(mine)
                if how == "*":
                    factors += (value for value in step.inputs if value not in on_path)
        for value, number in part.items():
            if number in growing:
                self.stays(value, Reason("accumulator"))
        self._back(factors, Reason("factor"), _by_element, self.flow.sources)

    def _paths(self) -> Iterator[tuple[int, int]]:
        """The pairs of values, within bodies, of which the first one adds to the second one."""
        values = self.flow.values
        for step in self.flow.steps:
            row = step.row
            if step.graph and (row.chooses or row.accumulates) and step.op not in HOLDERS:
                moved = [
                    value
                    for position, value in enumerate(step.inputs)
                    if self.is_float(value) and (not row.moves or position in row.moves)
                ]
                yield from product(moved, filter(self.is_float, step.outputs))
        for source, value in self.flow.crossings:
            if values[value].graph and self.is_float(value):
                yield source, value

    # -- decisions ----------------------------------------------------------------------------

    def by_decisions(self) -> None:
        """What decides on integers, positions, branches and trip counts. Only what decides when a
        loop ends is followed through products and states; a greedy decoder, which ends on an index
        that it chose, would be in float32 altogether if it were followed through that."""
        flow = self.flow
        ends = [value for value, of_loop in flow.deciding if of_loop]
        self._back(ends, _ENDS, _computes, flow.sources)
        decides = [value for value, of_loop in flow.deciding if not of_loop]
        for step in flow.steps:
            row, read = step.row, [*step.inputs]
            if not row.counting or row.values is Values.SIZES:
                read = [read[i] for i in row.deciding if i < len(read)]
            read = [one for one in read if self.is_float(one) and not flow.values[one].constant]
            if read:
                self.stay(step, _DECIDES)
            elif step.op in _CASTS and not self.is_float(step.outputs[0]):
                read = [step.inputs[0]]
            decides += filter(self.is_float, read)
        states = {value for state in flow.states for value in (state.entering, state.final)}
        borders = {value: read for value, read in flow.sources.items() if value not in states}
        self._back(decides, _DECIDES, _by_element, borders)

    def _back(
        self,
        values: Iterable[int],
        reason: Reason,
        through: Callable[[Step], bool],
        borders: Mapping[int, Sequence[int]],
    ) -> None:
        """Values stay in float32, and those that they are computed of, back through some nodes and
        across some borders of bodies, to where neither leads further."""
        flow, pending, seen = self.flow, [*values], set[int]()
        while pending:
            value = pending.pop()
            if value == OMITTED or value in seen or flow.values[value].constant:
                continue
            seen.add(value)
            producer = flow.producers[value]
            if value in borders:
                self.stays(value, reason)
                pending += borders[value]
            elif producer is not None:
                step = flow.steps[producer]
                if through(step) and self._reads_elements(step):
                    self.stays(value, reason)
                    pending += step.inputs

    def _reads_elements(self, step: Step) -> bool:
        """Return whether a node reads elements; it does not if it tells the length of a sequence,
        or whether an optional is empty."""
        return not step.row.wraps or any(map(self.is_float, step.outputs))

    # -- operators ----------------------------------------------------------------------------

    def by_operator(self) -> None:
        """Casts of integers, and operators that lose too much."""
        exact = 2 ** (self.info.nmant + 1)
        casts = Reason(
            "from-integers",
            f"it makes floats of integers, exact in {element(self.narrow)} only up to {exact}",
        )
        for step in self.flow.steps:
            reduces = text(step.node, "reduction", "none") != "none"  # a Scatter, a loss
            if step.row.stays_wide or draws(step.node) or reduces:
                self.stay(step, Reason("block-list"))
            elif step.op in _CASTS and self.flow.elem_type(step.inputs[0]) in _INTEGERS:
                self.stay(step, casts)

    # -- range --------------------------------------------------------------------------------

    def by_range(self) -> None:
        """What computes with constants that the narrow type does not hold."""
        for value in self.flow.values:
            tensor = self._held(value) if value.elem_type == TensorProto.FLOAT else None
            odd = None if tensor is None else self._odd(self.flow.model.read(tensor).reshape(-1))
            if odd is not None:
                large = abs(odd) > 1
                what = "out of the range" if large else "below the smallest normal number"
                what = f"it computes with '{value.name}': its element {odd:.6g} is {what}"
                reason = Reason("range", f"{what} of {element(self.narrow)}")
                if not value.constant:
                    self.stays(value.number, reason)
                self._forward(value.number, reason, "+*" if large else "+")

    def _held(self, value: Value) -> TensorProto | None:
        """The tensor of a constant, or the one that fills a tensor; None for other values."""
        if value.constant:
            return self.flow.tensor(value)
        number = self.flow.producers[value.number]
        node = None if number is None else self.flow.steps[number].node
        filled = node is not None and op_of(node) == "ConstantOfShape" and node.attribute
        return filled[0].t if filled else None

    def _odd(self, elements: npt.NDArray[Any]) -> float | None:
        """An element that the narrow type does not hold; None if there is none that matters."""
        for begin in range(0, elements.size, _BLOCK):
            block = elements[begin : begin + _BLOCK]
            sizes = np.where(np.isfinite(block), np.abs(block), 0)
            if sizes.max() > float(self.info.max):
                return float(block[sizes.argmax()])
        few, least = elements[: _FEW + 1], float(self.info.smallest_normal)
        small = [float(one) for one in few if 0 < abs(one) < least]
        return small[0] if small and elements.size <= _FEW else None

    def _forward(self, value: int, reason: Reason, through: str) -> None:
        """What reads a value stays in float32, and what reads the value that is handed on, or to
        which it is added: the mask of an attention, a norm and its epsilon."""
        flow, pending, reached = self.flow, [value], self._reached[through]
        while pending:
            value = pending.pop()
            if value in reached:
                continue
            reached.add(value)
            for target in flow.targets.get(value, ()):
                self.stays(target, reason)
                pending.append(target)
            for read in flow.readers.get(value, ()):
                step = None if read.step is None else flow.steps[read.step]
                if step is not None and step.op not in HOLDERS:
                    self.stay(step, reason)
                    row = step.row
                    if row.chooses or (row.accumulates and row.accumulates in through):
                        pending += filter(self.is_float, step.outputs)
                    elif step.op == "Reciprocal":  # of a small number, which is a large one
                        self._forward(step.outputs[0], reason, "+*")

    # -- choices of the user ------------------------------------------------------------------

    def by_choice(self, keep: Sequence[str], half: Sequence[str]) -> None:
        """What the user keeps in float32, and what no default may keep."""
        for pattern in keep:
            reason = Reason("kept", f"it is kept by --keep {pattern}")
            steps, values = self._matched(pattern)
            for step in steps:
                self.stay(step, reason)
            for value in values:
                self.stays(value, reason)
        for pattern in half:
            steps, values = self._matched(pattern)
            self.lifted.update(step.number for step in steps)
            self.lifted_values.update(values)

    def _matched(self, pattern: str) -> tuple[Sequence[Step], Sequence[int]]:
        """The nodes that a pattern matches, with all in their bodies, and the values that cross the
        borders of these bodies."""
        flow, held = self.flow, dict[Key, bool]()
        for scope in flow.scopes:
            at = scope.holder
            held[scope.key] = at is not None and (
                held[at.scope.key] or matches(pattern, _names(at))
            )
        inside = [held[scope.key] for scope in flow.scopes]
        steps = [
            step
            for step in flow.steps
            if inside[step.graph] or matches(pattern, _names(flow.place(step)))
        ]
        if not steps:
            known = dict.fromkeys(step.op for step in flow.steps)
            what = f"no node has an operator, path or name that matches {pattern!r}"
            raise NothingMatches(f"{what}; {nearest(pattern, known)}")
        values = list(chain.from_iterable(compress(flow.inputs, inside)))
        values += chain.from_iterable(step.outputs for step in steps if step.op in HOLDERS)
        return steps, [value for value in values if value != OMITTED]
