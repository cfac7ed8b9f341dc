"""Writes the recurrent operator that takes the place of a Scan."""

from __future__ import annotations

from collections.abc import Callable

from onnx import GraphProto, NodeProto, TensorProto, helper

from passes.ir.repeated import replace_all
from passes.loops.form import Carried, Collected
from passes.rule import Edit, Refused
from passes.rules.recognize_cell.cost import most_rows
from passes.rules.recognize_cell.forms import Cell
from passes.rules.recognize_cell.sizes import Sizes
from passes.rules.recognize_cell.weights import CellWeights
from passes.rules.time_axis.moving import place_rows, time_first
from passes.rules.time_axis.time_body import TimeBody
from passes.rules.time_axis.time_length import Length
from passes.types.value_types import Dims, tensor_type
from passes.writing import spelling
from passes.writing.author import Author

#: The names under which the outputs of the Scan are to be written, by those that it has.
Names = dict[str, str]


class CellWriter:
    """Writes what one Scan becomes."""

    def __init__(self, body: TimeBody, cell: Cell) -> None:
        self.body, self.cell, self.form = body, cell, body.form
        self.sizes = Sizes(body)
        site = body.site
        self.author = Author(site.target, site.names, site.node.name or "scan")
        self.outputs: list[Carried | Collected] = [
            *(one for one in self.form.carried if one.final),
            *(one for one in self.form.collected if one.tensor),
        ]

    def edit(self) -> Edit:
        """The Edit.

        Raises:
            Refused: `not-worth-it`, `may-be-empty` or `weights`.
        """
        most = most_rows(self.body, self.cell, self.sizes.rows)
        conditions = self.sizes.conditions(self.author, most)
        if conditions and self.body.site.options.no_branches:
            raise Refused(
                "may-be-empty",
                "there may be no element or no row, for which runtimes lack the operator, and the "
                "target has no If",
                [self.body.site.path],
            )
        if conditions:
            self._branches(spelling.both(self.author, conditions))
        else:
            self._operator(self.author, {_name(one): _name(one) for one in self.outputs})
        return Edit(
            tuple(self.author.nodes),
            tuple(self.author.constants),
            note=self._note(most),
            exact=False,
            context=self.sizes.context,
            reduction=self.cell.inputs + self.cell.hidden,
            tidies=True,
        )

    # -- the If around the operator

    def _branches(self, condition: str) -> None:
        """Write the operator, or what is given where it cannot run."""
        kept = self.sizes.rows is None
        other = self._branch("other", self._scan) if kept else self._branch("none", self._nothing)
        self.author.op(
            "If",
            condition,
            outputs=[_name(one) for one in self.outputs],
            then_branch=self._branch("some", self._operator),
            else_branch=other,
        )

    def _branch(self, tag: str, write: Callable[[Author, Names], None]) -> GraphProto:
        inner = self.author.inside(f"{self.author.prefix}/{tag}")
        names = {_name(one): inner.fresh(_name(one)) for one in self.outputs}
        write(inner, names)
        infos = [
            helper.make_value_info(
                names[_name(one)], tensor_type(TensorProto.FLOAT, self._dims(one))
            )
            for one in self.outputs
        ]
        return inner.graph(inner.prefix, [], infos)

    def _dims(self, one: Carried | Collected) -> Dims:
        state = [self.sizes.rows, self.cell.hidden]
        if isinstance(one, Collected):
            state.insert(one.axis % 3, self.body.trips)
        return tuple(state)

    def _scan(self, author: Author, names: Names) -> None:
        """Write the Scan as it was; its name goes to the operator."""
        node = NodeProto()
        node.CopyFrom(self.body.site.node)
        if node.name:
            node.name = f"{node.name}/scan"
        replace_all(node.output, [names.get(name, name) for name in node.output])
        author.adopt([node])

    def _nothing(self, author: Author, names: Names) -> None:
        """Write what a loop gives that runs no iteration, or has no rows."""
        for one in self.form.carried:
            if one.final:
                author.op("Identity", one.initial, outputs=[names[one.final]])
        for row in self.form.collected:
            if row.tensor:
                sizes = [author.ints(self.sizes.rows or 0), author.ints(self.cell.hidden)]
                sizes.insert(row.axis % 3, spelling.size_of_axis(author, *self.sizes.time))
                zero = helper.make_tensor("value", TensorProto.FLOAT, [1], [0.0])
                shape = author.op("Concat", *sizes, axis=0)
                author.op("ConstantOfShape", shape, outputs=[names[row.tensor]], value=zero)

    # -- the operator

    def _operator(self, author: Author, names: Names) -> None:
        """Write the operator, with elements and rows to run on."""
        scanned = self.sizes.scanned
        weights = CellWeights(self.body, author).write(self.cell)
        elements = time_first(self.body, author, scanned, Length(""))
        initials = [spelling.unsqueeze(author, one.initial, 0) for one in self.cell.states]
        y = author.fresh(self.cell.operator.lower())
        finals = [author.fresh(one.final or "unused") for one in self.cell.states]
        author.op(
            self.cell.operator,
            *(elements, *weights, "", *initials),
            name=self.body.site.node.name,
            outputs=[y, *finals],
            **self._attributes(reverse=scanned.reversed),
        )
        for state, final in zip(self.cell.states, finals, strict=True):
            if state.final:
                spelling.squeeze(author, final, 0, [names[state.final]])
        for one in self.form.collected:
            turned = one.reversed != scanned.reversed
            if one.tensor and not turned and not one.axis % 3:
                spelling.squeeze(author, y, 1, [names[one.tensor]])
            elif one.tensor:
                rows = spelling.squeeze(author, y, 1)
                place_rows(author, rows, one.axis, 3, turned=turned, output=names[one.tensor])

    def _attributes(self, *, reverse: bool) -> dict[str, int | str]:
        given: dict[str, int | str] = {"hidden_size": self.cell.hidden}
        if reverse:
            given["direction"] = "reverse"
        if self.cell.linear:
            given["linear_before_reset"] = 1
        return given

    def _note(self, most: int | None) -> str:
        bound = "" if most is None else f", up to {most} rows"
        return f"{self.cell.operator} of width {self.cell.hidden}{bound}"


def _name(one: Carried | Collected) -> str:
    return one.final if isinstance(one, Carried) else one.tensor
