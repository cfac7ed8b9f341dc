"""Decides which values of a model get a narrow element type: all that can, but what has to keep its
type, and what would only be cast to and fro."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from passes.ir.operators import CONTROL_FLOW
from passes.operators.table import TRAITS, UNKNOWN
from passes.precision.flow import OMITTED, Flow, Read, Step, Value
from passes.precision.operands import Fixed, Narrowing, Operand, Operands, operands_of
from passes.precision.seeds import Reason, Seeds

__all__ = ["Decision", "Narrowing", "decide"]

#: A demand of a read: a cell, whose type it wants, or a fixed type; ANY takes whatever there is.
_Demand = int | Fixed


@dataclass
class _Cells:
    """Sets of values and nodes that have one type. A set is narrow until something raises it; some
    raise others once that many of the sets that they wait for are wide."""

    parents: list[int] = field(default_factory=list)
    reasons: dict[int, Reason] = field(default_factory=dict)
    _waiting: dict[int, list[int]] = field(default_factory=dict)
    _rules: list[tuple[int, int, Reason]] = field(default_factory=list)
    pinned: set[int] = field(default_factory=set)

    def new(self) -> int:
        self.parents.append(len(self.parents))
        return len(self.parents) - 1

    def find(self, cell: int) -> int:
        root = cell
        while self.parents[root] != root:
            root = self.parents[root]
        while self.parents[cell] != root:
            self.parents[cell], cell = root, self.parents[cell]
        return root

    def join(self, one: int, other: int) -> None:
        """Give two cells one type, before any is raised."""
        self.parents[self.find(one)] = self.find(other)

    def is_wide(self, cell: int) -> bool:
        return self.find(cell) in self.reasons

    def when(self, cells: Iterable[int], target: int, reason: Reason, *, every: bool) -> None:
        """Raise a cell when all these are wide, or one of them is."""
        roots = {self.find(cell) for cell in cells} - {self.find(target)}
        wide = sum(map(self.is_wide, roots))
        missing = len(roots) - wide if every else 1 - wide
        if not roots:
            return
        if missing <= 0:
            self.raise_(target, reason)
            return
        self._rules.append((missing, target, reason))
        for root in roots:
            self._waiting.setdefault(root, []).append(len(self._rules) - 1)

    def raise_(self, cell: int, reason: Reason) -> None:
        pending = [(cell, reason)]
        while pending:
            cell, reason = pending.pop()
            root = self.find(cell)
            if root in self.reasons or root in self.pinned:
                continue
            self.reasons[root] = reason
            for number in self._waiting.pop(root, ()):
                missing, target, why = self._rules[number]
                self._rules[number] = (missing - 1, target, why)
                if missing == 1:
                    pending.append((target, why))


@dataclass(frozen=True)
class Decision:
    """The types of values and of what reads them, after a narrowing."""

    flow: Flow
    change: Narrowing
    operands: Mapping[int, Operands]
    _cells: _Cells
    _of_values: Mapping[int, int]
    _of_steps: Mapping[tuple[int, str], int]
    _demands: Mapping[Read, _Demand]
    _unable: Reason

    def concerns(self, value: Value) -> bool:
        """Return whether a value had the wide type."""
        return value.elem_type == self.change.wide

    def own(self, value: Value) -> int:
        """The element type that a value, which is no constant, has where it is computed."""
        if not self.concerns(value):
            return value.elem_type
        return self._type(self._of_values[value.number])

    def wanted(self, read: Read) -> int | None:
        """The element type in which a value is read, None if any will do."""
        demand = self._demands.get(read, Fixed.ANY)
        if demand is Fixed.WIDE:
            return self.change.wide
        return None if isinstance(demand, Fixed) else self._type(demand)

    def _type(self, cell: int) -> int:
        return self.change.wide if self._cells.is_wide(cell) else self.change.narrow

    @cached_property
    def wanted_of(self) -> Mapping[int, Sequence[int]]:
        """The element types in which each constant is read."""
        found: dict[int, list[int]] = {}
        for value in self.flow.values:
            if value.constant and self.concerns(value):
                wanted = map(self.wanted, self.flow.readers.get(value.number, ()))
                found[value.number] = sorted({one for one in wanted if one is not None})
        return found

    def kept(self) -> Iterator[tuple[Step, Reason]]:
        """Yield the nodes that compute in the wide type, and why."""
        for number, known in self.operands.items():
            step = self.flow.steps[number]
            roots = [self._cells.find(self._of_steps[number, one]) for one in known.variables]
            wide = [self._cells.reasons[one] for one in roots if one in self._cells.reasons]
            if wide:
                yield step, wide[0]
            elif not roots and Fixed.WIDE in (*known.inputs, *known.outputs):
                yield step, self._unable


def decide(flow: Flow, change: Narrowing, seeds: Seeds, *, signature_stays: bool) -> Decision:
    """Decide the type of each value, and of each node.

    `signature_stays`: inputs and outputs of the model keep their types, else they all get the
    narrow one.
    """
    return _Deciding(flow, change, signature_stays).decided(seeds)


class _Deciding:
    def __init__(self, flow: Flow, change: Narrowing, signature_stays: bool) -> None:
        self.flow, self.change, self.signature_stays = flow, change, signature_stays
        self.cells = _Cells()
        self.of_values: dict[int, int] = {}
        self.of_steps: dict[tuple[int, str], int] = {}
        self.demands: dict[Read, _Demand] = {}
        self.operands: dict[int, Operands] = {}
        wide, narrow = change.names
        self.surrounded = Reason("surrounded", f"all that it reads is {wide}")
        self.read_wide = Reason("surrounded", f"all of its readers take {wide}")
        self.returned = Reason("surrounded", f"a body returns it in {wide}")
        self.unable = Reason(
            "type", f"the operator, or one that is fed by it, takes or gives no {narrow} here"
        )
        self.signature = Reason("signature", f"it is an input of the model, which stays {wide}")

    def decided(self, seeds: Seeds) -> Decision:
        for value in self.flow.values:
            if value.elem_type == self.change.wide and not value.constant:
                self.of_values[value.number] = self.cells.new()
        for step in self.flow.steps:
            if step.op not in CONTROL_FLOW and step.op != "Constant":
                self._operands(step)
        linked = self._links()
        self._demand(linked)
        for read, demand in self.demands.items():
            if isinstance(demand, int) and self._nested(read.value):
                self.cells.join(self.of_values[read.value], demand)
        self._raise_fixed(seeds)
        self._rules()
        return Decision(
            self.flow,
            self.change,
            self.operands,
            self.cells,
            self.of_values,
            self.of_steps,
            self.demands,
            self.unable,
        )

    def _concerns(self, number: int) -> bool:
        return number != OMITTED and self.flow.values[number].elem_type == self.change.wide

    def _nested(self, number: int) -> bool:
        """Return whether a value is a sequence or optional, which no Cast takes."""
        return self.flow.values[number].nested and number in self.of_values

    # -- cells --------------------------------------------------------------------------------

    def _operands(self, step: Step) -> None:
        found = self.operands[step.number] = operands_of(step, self.flow, self.change)
        for variable in found.variables:
            self.of_steps[step.number, variable] = self.cells.new()
        for number, operand in zip(step.outputs, found.outputs, strict=True):
            if isinstance(operand, str):
                self.cells.join(self.of_values[number], self.of_steps[step.number, operand])

    def _links(self) -> dict[Read, int]:
        """The reads at the borders of bodies, each with the value whose type it has."""
        found: dict[Read, int] = {}
        for state in self.flow.states:
            if not self._concerns(state.entering):
                continue
            if self._concerns(state.final):
                self.cells.join(self.of_values[state.entering], self.of_values[state.final])
            found[state.initial] = found[state.returned] = state.entering
        for passed in (*self.flow.scanned, *self.flow.collected):
            if self._concerns(passed.value):
                found[passed.read] = passed.value
        for branches in self.flow.branches:
            if self._concerns(branches.output):
                found.update(dict.fromkeys(branches.returned, branches.output))
        return found

    def _demand(self, linked: Mapping[Read, int]) -> None:
        for read in self.flow.reads():
            if not self._concerns(read.value):
                continue
            if read in linked:
                self.demands[read] = self.of_values[linked[read]]
            elif read.step is None:
                self.demands[read] = self._of_output(read)
            elif (known := self.operands.get(read.step)) is None:
                self.demands[read] = Fixed.WIDE
            else:
                self.demands[read] = self._of_operand(read.step, known.inputs[read.position])

    def _of_operand(self, step: int, operand: Operand) -> _Demand:
        return operand if isinstance(operand, Fixed) else self.of_steps[step, operand]

    def _of_output(self, read: Read) -> _Demand:
        """The demand of an output of the model; a sequence or optional has the type that it can."""
        if read.graph or self.signature_stays:
            return Fixed.WIDE
        return self.of_values[read.value] if self._nested(read.value) else self._narrow_cell

    @cached_property
    def _narrow_cell(self) -> int:
        """A cell that stays narrow."""
        cell = self.cells.new()
        self.cells.pinned.add(cell)
        return cell

    # -- what is wide -------------------------------------------------------------------------

    def _raise_fixed(self, seeds: Seeds) -> None:
        """Raise what cannot be narrow, and what is not to be."""
        linked = {state.entering for state in self.flow.states}
        linked |= {passed.value for passed in self.flow.scanned}
        for graph, inputs in enumerate(self.flow.inputs):
            for number in filter(self._concerns, inputs):
                value = self.flow.values[number]
                if graph == 0 and not self.signature_stays:
                    if not value.nested:
                        self.cells.pinned.add(self.cells.find(self.of_values[number]))
                elif graph == 0:
                    self.cells.raise_(self.of_values[number], self.signature)
                elif number not in linked:
                    self.cells.raise_(self.of_values[number], self.unable)
        for step, known in self.operands.items():
            for number, operand in zip(self.flow.steps[step].outputs, known.outputs, strict=True):
                if operand is Fixed.WIDE:
                    self.cells.raise_(self.of_values[number], self.unable)
        for across, made in self.flow.borders():
            both = (*across, *made)
            if not all(one == OMITTED or self.flow.values[one].elem_type for one in both):
                for number in filter(self._concerns, made):  # the other side may be wide, too
                    self.cells.raise_(self.of_values[number], self.unable)
        for read, demand in self.demands.items():
            if demand is Fixed.WIDE and self._nested(read.value):
                self.cells.raise_(self.of_values[read.value], self.unable)
        for number, reason in seeds.steps.items():
            for variable in self.operands[number].variables if number in self.operands else ():
                self.cells.raise_(self.of_steps[number, variable], reason)
        for number, reason in seeds.values.items():
            if number in self.of_values:
                self.cells.raise_(self.of_values[number], reason)

    def _rules(self) -> None:
        """Raise what would only be cast to and fro, until nothing changes."""
        when = self.cells.when
        for number, known in self.operands.items() if self.change.whole else ():
            step = self.flow.steps[number]
            row = TRAITS.get(step.op, UNKNOWN)
            if not (row.by_element or row.only_moves):
                continue
            for variable in known.variables:
                pairs = zip(step.inputs, known.inputs, strict=True)
                read = [value for value, operand in pairs if operand == variable]
                cells = [self.of_values[one] for one in read if self._counts(one)]
                when(cells, self.of_steps[number, variable], self.surrounded, every=True)
        for passed in self.flow.scanned:
            if self._concerns(passed.value):
                self._if_read_wide(passed.value, [])
        for state in self.flow.states:
            if self._concerns(state.entering):
                self._if_read_wide(state.entering, [state.returned.value])
        returns: list[tuple[tuple[Read, ...], int]] = [
            ((passed.read,), passed.value) for passed in self.flow.collected
        ]
        returns += [(one.returned, one.output) for one in self.flow.branches]
        for returned, output in returns:
            if self._concerns(output):
                cells = [
                    self.of_values[one.value] for one in returned if one.value in self.of_values
                ]
                when(cells, self.of_values[output], self.returned, every=False)

    def _counts(self, number: int) -> bool:
        """Return whether the type of a value tells that of what reads it: not of constants, nor of
        inputs of the model."""
        return number in self.of_values and not self.flow.values[number].fed

    def _if_read_wide(self, entering: int, also: Sequence[int]) -> None:
        """Raise an input of a body if all of its readers take the wide type, and some other values
        have it."""
        demands = [self.demands[read] for read in self.flow.readers.get(entering, ())]
        own = self.cells.find(self.of_values[entering])
        if Fixed.ANY in demands or not demands or not all(map(self._counts, also)):
            return
        cells = [one for one in demands if isinstance(one, int)]
        cells += [self.of_values[one] for one in also]
        others = [cell for cell in cells if self.cells.find(cell) != own]
        if others:
            self.cells.when(others, own, self.read_wide, every=True)
        elif not also:
            self.cells.raise_(own, self.read_wide)
