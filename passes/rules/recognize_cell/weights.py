"""The weights of a recurrent operator, made of those that the body of a loop multiplies by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np
from onnx import GraphProto, TensorProto

from passes.bodies.time_body import TimeBody
from passes.ir.constants import Constants, constant_tensor
from passes.rules.recognize_cell.cell_finder import OperatorCell
from passes.rules.recognize_cell.forms import Cell
from passes.rules.recognize_cell.gates import Bias, Matrix
from passes.writing import spelling
from passes.writing.author import Author
from passes.writing.spelling import Array


class CellWeights:
    """Writes W, R, B and P: computed beforehand where they are constant, else by operators."""

    def __init__(self, body: TimeBody, author: Author) -> None:
        self.body, self.author = body, author

    def write(self, cell: Cell) -> tuple[str, str, str, str]:
        """W float [1, gates * hidden, inputs], R float [1, gates * hidden, hidden], B float
        [1, 2 * gates * hidden] and P float [1, 3 * hidden], "" where there are none.

        Raises:
            Refused: `weights` where one is quantized, or a sparse constant.
        """
        if isinstance(cell, OperatorCell):
            self._check([name for name in cell.weights if name])
            w, r, b, p = (name and self.visible(name) for name in cell.weights)
            return w, r, b, p
        for gate in cell.gates:
            added = [*gate.biases, *gate.inner, *gate.peepholes]
            self._check([gate.w.name, gate.r.name, *(bias.columns.name for bias in added)])
        w = self._matrices([gate.w for gate in cell.gates], "W")
        r = self._matrices([gate.r for gate in cell.gates], "R")
        outer = [gate.biases for gate in cell.gates]
        inner = [gate.inner for gate in cell.gates]
        b = self._biases([*outer, *inner], cell.hidden, "B") if any(outer + inner) else ""
        looks = [gate.peepholes for gate in cell.gates[:3]]
        return w, r, b, self._biases(looks, cell.hidden, "P") if any(looks) else ""

    # -- matrices

    def _matrices(self, parts: Sequence[Matrix], hint: str) -> str:
        arrays = [self._array(part.name) for part in parts]
        known = [
            _part_of(array, part)
            for array, part in zip(arrays, parts, strict=True)
            if array is not None
        ]
        if len(known) == len(parts):
            return self.author.value(np.concatenate(known)[np.newaxis], hint)
        rows = [self._turned(part) for part in _joined(parts)]
        return spelling.unsqueeze(self.author, spelling.joined(self.author, rows), 0)

    def _turned(self, part: Matrix) -> str:
        """A part of a weight, transposed, by operators."""
        value = self.visible(part.name)
        cuts = (part.columns, part.rows) if part.turned else (part.rows, part.columns)
        for axis, (cut, size) in enumerate(zip(cuts, part.dims, strict=True)):
            if cut != (0, size):
                value = spelling.part(self.author, value, axis, *cut)
        value = value if part.turned else self.author.op("Transpose", value, perm=[1, 0])
        return self.author.op("Neg", value) if part.negative else value

    # -- biases

    def _biases(self, sums: Sequence[Sequence[Bias]], hidden: int, hint: str) -> str:
        """The sums of biases, concatenated, float [1, sums * hidden]."""
        found = [self._known_sum(biases, hidden) for biases in sums]
        known = [total for total in found if total is not None]
        if len(known) == len(found):
            return self.author.value(np.concatenate(known)[np.newaxis], hint)
        parts: list[str] = []
        for fixed, run in groupby(range(len(sums)), lambda position: found[position] is not None):
            places = list(run)
            if fixed:
                rows = [total for total in map(found.__getitem__, places) if total is not None]
                parts.append(self.author.value(np.concatenate(rows), hint))
            else:
                parts += [
                    self._sum(biases) for biases in _runs([sums[position] for position in places])
                ]
        return spelling.unsqueeze(self.author, self.author.op("Concat", *parts, axis=0), 0)

    def _known_sum(self, biases: Sequence[Bias], hidden: int) -> Array | None:
        total = np.zeros(hidden, np.float32)
        for bias in biases:
            array = self._array(bias.columns.name)
            if array is None:
                return None
            own = array.reshape(-1)[bias.columns.start : bias.columns.stop]
            total += -own if bias.negative else own
        return total

    def _sum(self, biases: Sequence[Bias]) -> str:
        total = ""
        for bias in biases:
            value, columns = self.visible(bias.columns.name), bias.columns
            if bias.rank == 2:
                value = spelling.squeeze(self.author, value, 1 if columns.turned else 0)
            if columns.count != columns.width:
                value = spelling.part(self.author, value, 0, columns.start, columns.stop)
            value = self.author.op("Neg", value) if bias.negative else value
            total = self.author.op("Add", total, value) if total else value
        return total

    # -- what a name means outside of the body

    def _array(self, name: str) -> Array | None:
        """The value where it is constant, and not external data."""
        own = self._own(name)
        if own is not None:
            return self.body.site.model.read(own)
        tensor = Constants(self.body.site.model, self.body.site.scope).tensor(name)
        if tensor is None or tensor.data_location == TensorProto.EXTERNAL:
            return None
        return self.body.site.model.read(tensor)

    def _own(self, name: str) -> TensorProto | None:
        """The constant of the body with this name."""
        graph, position = self.body.rows.graph, self.body.index.positions.get(name)
        if position is not None:
            return constant_tensor(self.body.nodes[position])
        return next((tensor for tensor in graph.initializer if tensor.name == name), None)

    def visible(self, name: str) -> str:
        """A name under which the value can be read outside of the body."""
        own = self._own(name)
        if own is None:
            return name
        return self.author.value(self.body.site.model.read(own), name)

    def _check(self, names: Sequence[str]) -> None:
        site, graph = self.body.site, self.body.rows.graph
        owners = [graph, *(scope.owner for scope in site.scope.chain())]
        graphs = [owner for owner in owners if isinstance(owner, GraphProto)]
        annotated = {
            annotation.tensor_name
            for owner in graphs
            for annotation in owner.quantization_annotation
        }
        sparse = {tensor.values.name for owner in graphs for tensor in owner.sparse_initializer}
        sparse |= {
            name for name in names if name in self.body.index.positions and self._own(name) is None
        }
        for name in names:
            if name in annotated:
                what = f"{name!r} is quantized, and its annotation would be lost"
                raise site.refused("weights", what, name)
            if name in sparse:
                what = f"{name!r} is a sparse constant"
                raise site.refused("weights", what, name)


def _part_of(array: Array, part: Matrix) -> Array:
    """A part of a weight, transposed."""
    rows, columns = slice(*part.rows), slice(*part.columns)
    found: Array = array[columns, rows] if part.turned else array[rows, columns].T
    return -found if part.negative else found


def _joined(parts: Sequence[Matrix]) -> list[Matrix]:
    """The parts, with adjacent parts of one weight merged."""
    found: list[Matrix] = []
    for part in parts:
        last = found[-1] if found else None
        same = last is not None and replace(last, columns=part.columns) == part
        if last is not None and same and last.columns[1] == part.columns[0]:
            found[-1] = replace(part, columns=(last.columns[0], part.columns[1]))
        else:
            found.append(part)
    return found


def _runs(sums: Sequence[Sequence[Bias]]) -> list[Sequence[Bias]]:
    """The sums, with adjacent columns of one bias merged."""
    found: list[Sequence[Bias]] = []
    for biases in sums:
        last = found[-1] if found else ()
        single = len(biases) == len(last) == 1 and biases[0].columns.name == last[0].columns.name
        if (
            single
            and biases[0].negative == last[0].negative
            and last[0].columns.stop == biases[0].columns.start
        ):
            columns = replace(last[0].columns, stop=biases[0].columns.stop)
            found[-1] = [replace(last[0], columns=columns)]
        else:
            found.append(biases)
    return found
