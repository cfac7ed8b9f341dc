"""Decides which values of a model get a narrow element type: all that can, but what has to keep its
type, and what would only be cast to and fro."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from passes.ir.operators import CONTROL_FLOW
from passes.precision.flow import OMITTED, Flow, Read, Step, Value
from passes.precision.operands import WIDE, Narrowing, Operand, operands_of
from passes.precision.seeds import Reason, Seeds


@dataclass
class _Rule:
    """A cell that is raised once so many more are wide."""

    missing: int
    target: int
    reason: Reason


@dataclass
class _Cells:
    """Sets of values and nodes that have one type. A set is narrow until something raises it, and
    stays so if it is pinned."""

    parents: list[int] = field(default_factory=list)
    reasons: dict[int, Reason] = field(default_factory=dict)
    _waiting: dict[int, list[_Rule]] = field(default_factory=dict)
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
        """Raise a cell when all these are wide, or one of them is; never if there is none."""
        roots = {self.find(cell) for cell in cells} - {self.find(target)}
        rule = _Rule(len(roots) if every else min(len(roots), 1), target, reason)
        for root in roots:
            if root in self.reasons:
                rule.missing -= 1
            else:
                self._waiting.setdefault(root, []).append(rule)
        if roots and rule.missing <= 0:
            self.raise_(target, reason)

    def raise_(self, cell: int, reason: Reason) -> None:
        """Make a cell wide, and those that wait for that."""
        pending = [_Rule(0, cell, reason)]
        while pending:
            rule = pending.pop()
            root = self.find(rule.target)
            if root in self.reasons or root in self.pinned:
                continue
            self.reasons[root] = rule.reason
            for one in self._waiting.pop(root, ()):
                one.missing -= 1
                if one.missing == 0:
                    pending.append(one)


class Decision:
    """The types of values and of what reads them, after a narrowing.

    `signature_stays`: inputs and outputs of the model keep their types, else they all get the
    narrow one.
    """

    def __init__(
        self, flow: Flow, change: Narrowing, seeds: Seeds, *, signature_stays: bool
    ) -> None:
        self.flow, self.change, self._signature_stays = flow, change, signature_stays
        self._cells = _Cells()
        self._wide, self._narrow = self._cells.new(), self._cells.new()
        wide, narrow = change.names
        unable = f"the operator, or one that it feeds, does not support {narrow} here"
        self._unable = Reason("type", unable)
        self._of_values = {
            value.number: self._cells.new()
            for value in flow.values
            if self.concerns(value) and not value.constant
        }
        self._operands = {
            step.number: operands_of(step, flow, change)
            for step in flow.steps
            if step.op not in CONTROL_FLOW and step.op != "Constant"
        }
        self._of_steps = {
            (step, variable): self._wide if variable == WIDE else self._cells.new()
            for step, known in self._operands.items()
            for variable in known.variables
        }
        self._demands = self._demanded(self._linked())
        self._join()
        self._cells.pinned.add(self._cells.find(self._narrow))
        self._cells.raise_(self._wide, self._unable)
        self._raise(seeds)
        self._raise_surrounded(wide)

    def concerns(self, value: Value) -> bool:
        """Return whether a value had the wide type."""
        return value.elem_type == self.change.wide

    def own(self, value: Value) -> int:
        """The element type that a value, which is no constant, has where it is computed."""
        cell = self._of_values.get(value.number)
        return value.elem_type if cell is None else self._type(cell)

    def wanted(self, read: Read) -> int | None:
        """The element type in which a value is read, None if any will do."""
        cell = self._demands.get(read)
        return None if cell is None else self._type(cell)

    def _type(self, cell: int) -> int:
        return self.change.wide if self._cells.is_wide(cell) else self.change.narrow

    def kept(self) -> Iterator[tuple[Step, Reason]]:
        """Yield the nodes that compute in the wide type, and why."""
        for number, known in self._operands.items():
            cells = (self._cells.find(self._of_steps[number, one]) for one in known.variables)
            wide = [self._cells.reasons[one] for one in cells if one in self._cells.reasons]
            if wide:
                yield self.flow.steps[number], wide[0]

    # -- cells --------------------------------------------------------------------------------

    def _cell(self, step: int, operand: Operand) -> int | None:
        """The cell of an operand; None if it takes whatever type there is."""
        if operand is None or operand == WIDE:
            return self._wide if operand else None
        return self._of_steps[step, operand]

    def _linked(self) -> Mapping[Read, int]:
        """The cells of reads at the borders of bodies: those of the values that they become."""
        found: dict[Read, int] = {}
        for border in self.flow.borders:
            cells = [self._of_values[one] for one in border.made if one in self._of_values]
            for cell in cells:
                self._cells.join(cells[0], cell)
            found.update(dict.fromkeys(border.reads, cells[0]) if cells else {})
        return found

    def _demanded(self, linked: Mapping[Read, int]) -> Mapping[Read, int | None]:
        """The cell whose type each read wants; None if it takes whatever type there is."""
        found: dict[Read, int | None] = {}
        for read in self.flow.reads():
            if self.flow.elem_type(read.value) != self.change.wide:
                continue
            cell: int | None = linked.get(read, self._wide)
            if read not in linked and read.step in self._operands:
                cell = self._cell(read.step, self._operands[read.step].inputs[read.position])
            elif read not in linked and read.step is None and not read.graph:
                cell = self._wide if self._signature_stays else self._of_output(read.value)
            found[read] = cell
        return found

    def _of_output(self, number: int) -> int:
        """The cell of an output that is cast; a sequence or optional has the type that it can."""
        return self._of_values[number] if self._nested(number) else self._narrow

    def _nested(self, number: int) -> bool:
        """Return whether a value is a sequence or optional, which no Cast takes."""
        return self.flow.values[number].nested and number in self._of_values

    def _join(self) -> None:
        """Give outputs the types of their nodes, and sequences and optionals those of readers."""
        for step, known in self._operands.items():
            for number, operand in zip(self.flow.steps[step].outputs, known.outputs, strict=True):
                cell = self._cell(step, operand)
                if cell is not None:
                    self._cells.join(self._of_values[number], cell)
        for read, cell in self._demands.items():
            if cell not in (None, self._wide) and self._nested(read.value):
                self._cells.join(self._of_values[read.value], cell)

    # -- what is wide -------------------------------------------------------------------------

    def _raise(self, seeds: Seeds) -> None:
        """Raise what cannot be narrow, and what is not to be."""
        signature = f"it is an input of the model, which stays {self.change.names[0]}"
        linked = {one for border in self.flow.borders for one in border.made}
        for graph, inputs in enumerate(self.flow.inputs):
            for number in inputs:
                cell = self._of_values.get(number)
                if cell is None or (graph and number in linked):
                    continue
                if graph:
                    self._cells.raise_(cell, self._unable)
                elif self._signature_stays:
                    self._cells.raise_(cell, Reason("signature", signature))
                elif not self._nested(number):
                    self._cells.pinned.add(self._cells.find(cell))
        for read, wanted in self._demands.items():
            if wanted == self._wide and self._nested(read.value):
                self._cells.raise_(self._of_values[read.value], self._unable)
        for border in self.flow.borders:
            both = (*(read.value for read in border.reads), *border.made)
            if not all(one == OMITTED or self.flow.elem_type(one) for one in both):
                for one in border.made:  # the other side may be wide, too
                    if one in self._of_values:
                        self._cells.raise_(self._of_values[one], self._unable)
        for number, reason in seeds.steps.items():
            for variable in self._operands[number].variables if number in self._operands else ():
                self._cells.raise_(self._of_steps[number, variable], reason)
        for number, reason in seeds.values.items():
            if number in self._of_values:
                self._cells.raise_(self._of_values[number], reason)

    def _raise_surrounded(self, wide: str) -> None:
        """Raise what would only be cast to and fro, until nothing changes."""
        when = self._cells.when
        reason = Reason("surrounded", f"all that it reads is {wide}")
        for number, known in self._operands.items() if self.change.whole else ():
            step = self.flow.steps[number]
            if step.row.by_element or step.row.only_moves:
                for variable in known.variables:
                    pairs = zip(step.inputs, known.inputs, strict=True)
                    read = [value for value, operand in pairs if operand == variable]
                    cells = [self._of_values[one] for one in read if self._counts(one)]
                    when(cells, self._of_steps[number, variable], reason, every=True)
        reads_wide = Reason("surrounded", f"all of its readers take {wide}")
        returned = Reason("surrounded", f"a body returns it in {wide}")
        for border in self.flow.borders:
            made, read = border.made[0], [one.value for one in border.reads]
            if made not in self._of_values:
                continue
            if border.enters:
                self._if_read_wide(made, read[1:], reads_wide)
            else:
                cells = [self._of_values[one] for one in read if one in self._of_values]
                when(cells, self._of_values[made], returned, every=False)

    def _counts(self, number: int) -> bool:
        """Return whether the type of a value tells that of what reads it: not of constants, nor of
        inputs of the model."""
        return number in self._of_values and not self.flow.values[number].fed

    def _if_read_wide(self, entering: int, also: Sequence[int], reason: Reason) -> None:
        """Raise an input of a body if all of its readers take the wide type, and some other values
        have it."""
        cells = [self._demands[read] for read in self.flow.readers.get(entering, ())]
        known = [one for one in cells if one is not None]
        if known and len(known) == len(cells) and all(map(self._counts, also)):
            known += [self._of_values[one] for one in also]
            self._cells.when(known, self._of_values[entering], reason, every=True)
