"""Writes the recurrent operator that replaces a Scan, where it is faster on onnxruntime.

Measured on one thread (`python -m benchmarks optimize` has the cells that are 256 wide), steps of
width 16 to 512, 1 to 256 rows: with few rows the operator takes down to a sixth of the time of the
loop, because it saves starting a dozen nodes in every step; with many, the products dominate, and
the loop is as fast.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from onnx import TensorProto, helper

from passes.analysis.bodies.context import context_of
from passes.bodies.branches import Branch, Results, either
from passes.bodies.moving import place_rows, time_first
from passes.bodies.time_body import TimeBody
from passes.bodies.time_length import Length
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.ir.protos import copied, replace_all
from passes.loops.form import Carried, Collected
from passes.operators.cells import RECURRENT
from passes.rule import Edit, Refused, Site
from passes.rules.recognize_cell.cell_finder import OperatorCell
from passes.rules.recognize_cell.ends import EndsWriter, sizes_of
from passes.rules.recognize_cell.forms import Cell
from passes.rules.recognize_cell.ragged import Ends
from passes.rules.recognize_cell.weights import CellWeights
from passes.types.value_types import Dim, Dims, elem_type_of, tensor_type
from passes.writing import spelling
from passes.writing.author import Author

#: The new names of the Scan's outputs, by their old names.
Names = dict[str, str]


class CellWriter:
    """Writes the replacement of one Scan; `plain` is its body as if no row ended."""

    def __init__(self, body: TimeBody, plain: TimeBody, cell: Cell, ends: Ends | None) -> None:
        self.body, self.cell, self.form = plain, cell, body.form
        self.sizes = sizes_of(plain, ends)
        self.author = Author.at(body.site, "scan")
        self.outputs: list[Carried | Collected] = [
            *(carried for carried in self.form.carried if carried.final),
            *(collected for collected in self.form.collected if collected.tensor),
        ]
        self.ends = EndsWriter(plain, self.sizes, ends, self.author) if ends else None

    def edit(self) -> Edit:
        """The Edit.

        Raises:
            Refused: `not-worth-it`, `may-be-empty` or `weights`.
        """
        most = most_rows(self.body, self.cell, self.sizes.rows)
        conditions = self.sizes.conditions(self.author, most)
        if self.ends:
            conditions += self.ends.conditions()
        if conditions and self.body.site.options.no_branches:
            raise self.body.site.refused(
                "may-be-empty",
                "there may be no element or no row, for which runtimes lack the operator, and the "
                "target has no If",
            )
        if self.ends:  # not in a branch
            _ = self.ends.lengths, self.ends.goes_on
        context = self.sizes.context
        if self.ends and self.ends.proof:
            context = context_of(self.body.site, is_known=self.ends.proof.__contains__)
        if conditions:
            self._branches(spelling.both(self.author, conditions))
        else:
            self._operator(self.author, {_name(output): _name(output) for output in self.outputs})
        edit = self.author.edit(self._note(most))
        return replace(edit, exact=False, context=context)

    # -- the If around the operator

    def _branches(self, condition: str) -> None:
        """Write the operator in an If, with another branch for what it cannot run on."""
        kept = self.sizes.rows is None or self.ends is not None
        other = self._branch("other", self._scan) if kept else self._branch("none", self._nothing)
        some, outputs = self._branch("some", self._operator), list(map(_name, self.outputs))
        types = [tensor_type(*self._type(output)) for output in self.outputs]
        either(self.author, condition, some, other, outputs, types)

    def _branch(self, label: str, write: Callable[[Author, Names], None]) -> Branch:
        def named(inner: Author) -> Results:
            names = {_name(output): inner.fresh(_name(output)) for output in self.outputs}
            write(inner, names)
            return Results(list(names.values()))

        return Branch(label, named)

    def _type(self, output: Carried | Collected) -> tuple[int, Dims]:
        if self.ends and output == self.ends.ends.counter:
            return elem_type_of(self.body.site.type_of(output.initial)), ()
        state: list[Dim] = [1, self.sizes.rows, self.cell.hidden]
        state = state[1 + self.sizes.flat if isinstance(output, Collected) else len(self._around) :]
        if isinstance(output, Collected):
            state.insert(output.axis % self.sizes.rank, self.body.trips)
        return TensorProto.FLOAT, tuple(state)

    def _scan(self, author: Author, names: Names) -> None:
        """Write the Scan as it was; the operator takes over its name."""
        node = copied(self.body.site.node)
        if node.name:
            node.name = f"{node.name}/scan"
        replace_all(node.output, [names.get(name, name) for name in node.output])
        author.adopt([node])

    def _nothing(self, author: Author, names: Names) -> None:
        """Write the outputs of a loop that runs no iteration, or whose batch is empty."""
        for carried in self.form.carried:
            if carried.final:
                author.op("Identity", carried.initial, outputs=[names[carried.final]])
        for row in self.form.collected:
            if row.tensor:
                sizes = [author.ints(self.sizes.rows or 0), author.ints(self.cell.hidden)]
                sizes = sizes[self.sizes.flat :]
                time = spelling.size_of_axis(author, *self.sizes.time)
                sizes.insert(row.axis % self.sizes.rank, time)
                zero = helper.make_tensor("value", TensorProto.FLOAT, [1], [0.0])
                shape = author.op("Concat", *sizes, axis=0)
                author.op("ConstantOfShape", shape, outputs=[names[row.tensor]], value=zero)

    # -- the operator

    def _operator(self, author: Author, names: Names) -> None:
        """Write the operator, for the case that there are elements and rows."""
        scanned, rank = self.sizes.scanned, self.sizes.rank
        *weights, peepholes = CellWeights(self.body, author).write(self.cell)
        elements = time_first(self.body, author, scanned, Length(""))
        around = [0, 1] if self.sizes.flat else [0]
        if self.sizes.flat:
            elements = spelling.unsqueeze(author, elements, 1)
        states, lengths = self.cell.states, self.ends.lengths if self.ends else ""
        initials = [
            spelling.unsqueeze_axes(author, state.initial, self._around)
            if self._around
            else state.initial
            for state in states
        ]
        y = author.fresh(self.cell.operator.lower())
        finals = [author.fresh(state.final or "unused") for state in self.cell.states]
        author.op(
            self.cell.operator,
            *(elements, *weights, lengths, *initials, *filter(None, [peepholes])),
            name=self.body.site.node.name,
            outputs=[y, *finals],
            **self._attributes(reverse=scanned.reversed),
        )
        for state, final in zip(self.cell.states, finals, strict=True):
            if state.final:
                self._final(author, final, state.initial, names[state.final])
        if self.ends:
            counter, repeated = self.ends.ends.counter, self.ends.ends.repeated
            if counter and counter.final:
                self.ends.count(author, counter, names[counter.final])
            if repeated and repeated.final:
                self._final(author, finals[0], repeated.initial, names[repeated.final])
        for collected in filter(lambda one: one.tensor, self.form.collected):
            turned = collected.reversed != scanned.reversed
            moved = turned or collected.axis % rank or self.ends
            inner, output = [axis + 1 for axis in around], names[collected.tensor]
            rows = spelling.along(author, "Squeeze", y, inner, [] if moved else [output])
            if self.ends:
                rows = self.ends.collected(author, rows, spelling.squeeze(author, finals[0], 0))
            if moved:
                place_rows(author, rows, replace(collected, tensor=output), rank, turned=turned)

    def _final(self, author: Author, value: str, initial: str, output: str) -> None:
        """Write a final state."""
        outputs = [] if self.ends else [output]
        if self._around:
            value = spelling.along(author, "Squeeze", value, self._around, outputs)
        elif outputs:
            author.name_as(value, output)
        if self.ends:
            self.ends.final(author, value, initial, output)

    @property
    def _around(self) -> list[int]:
        """The axes that the states of the operator have more."""
        return list(range(3 - self.sizes.state_rank))

    def _attributes(self, *, reverse: bool) -> dict[str, object]:
        cell = self.cell
        attributes: dict[str, object] = {"hidden_size": cell.hidden}
        if isinstance(cell, OperatorCell):
            own = {one.name: helper.get_attribute_value(one) for one in cell.node.attribute}
            turned = {"direction": "reverse"} if reverse else {}
            return {key: one for key, one in own.items() if key != "direction"} | turned
        names = tuple(kind.name for kind in cell.activations)
        if names != RECURRENT[cell.operator].activations:
            attributes["activations"] = names
        for place, key in enumerate(("activation_alpha", "activation_beta")):
            given = [kind.parameters[place] for kind in cell.activations if kind.parameters[place:]]
            if given:
                attributes[key] = given
        if cell.activations[0].clip:
            attributes["clip"] = cell.activations[0].clip
        if cell.coupled:
            attributes["input_forget"] = 1
        if reverse:
            attributes["direction"] = "reverse"
        if self.cell.linear:
            attributes["linear_before_reset"] = 1
        return attributes

    def _note(self, most: int | None) -> str:
        bound = "" if most is None else f", up to {most} rows"
        return f"{self.cell.operator} of width {self.cell.hidden}{bound}"


def _name(output: Carried | Collected) -> str:
    return output.final if isinstance(output, Carried) else output.tensor


#: Up to how many rows the operators are faster; fewer for a wide GRU. An RNN is, by the width that
#: it may have.
_ROWS_OF_LSTM, _ROWS_OF_GRU, _ROWS_OF_WIDE_GRU = 32, 16, 8
_ROWS_OF_RNN = {32: 2, 64: 1}
_WIDE = 128
#: Weights of more elements are not rearranged in every run, unless it takes many steps.
_FEW_ELEMENTS = 1 << 15
_MANY_STEPS = 128


def most_rows(body: TimeBody, cell: Cell, rows: int | None) -> int | None:
    """Up to how many rows the operator is faster; `rows` is their actual number, where known.

    None where they are so few, or where the operator is requested in any case.

    Raises:
        Refused: `not-worth-it` where it is faster for no possible number of rows, or the target
            lacks it.
    """
    site = body.site
    if cell.operator in site.options.lacks:
        raise _unworthy(site, f"the target lacks the {cell.operator}")
    if site.options.no_branches or isinstance(cell, OperatorCell):
        return None
    most = _ROWS_OF_LSTM
    if cell.operator == "RNN":
        most = max(count if cell.hidden <= width else 0 for width, count in _ROWS_OF_RNN.items())
    if cell.operator == "GRU":
        most = _ROWS_OF_GRU if cell.hidden <= _WIDE else _ROWS_OF_WIDE_GRU
    if (least := 1 if rows is None else rows) > most:
        what = (
            f"with {least} rows of width {cell.hidden} the loop is as fast as the {cell.operator}"
        )
        raise _unworthy(site, what)
    parts = [part for gate in cell.gates for part in (gate.w, gate.r)]
    many = sum(math.prod(matrix.shape) for matrix in parts) > _FEW_ELEMENTS
    if many and (body.trips or 0) < _MANY_STEPS and not _are_fixed(body, cell):
        raise _unworthy(site, "rearranging weights known only at run time takes too long")
    return None if rows is not None else most


def _unworthy(site: Site, why: str) -> Refused:
    return site.refused("not-worth-it", why)


def _are_fixed(body: TimeBody, cell: Cell) -> bool:
    """Return whether the weights are known when the model is loaded."""
    return all(body.is_constant(part.name) for gate in cell.gates for part in (gate.w, gate.r))


def check_left(body: TimeBody) -> None:
    """Check that this is not the loop that an If keeps for when its operator does not pay.

    Raises:
        Refused: `not-worth-it` where it is.
    """
    site, holder = body.site, body.site.scope.holder
    if holder is None or site.scope.key[-1] != "else_branch" or site.options.no_branches:
        return
    branches = dict(scoping.subgraphs(holder.node))
    nodes = branches["then_branch"].node
    read = {name for node in nodes for name in node.input}
    initials = {state.initial for state in body.form.carried}
    if initials <= read and any(op_of(node) in RECURRENT for node in nodes):
        raise _unworthy(site, "the If around the loop runs the operator where that is faster")
