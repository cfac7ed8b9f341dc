"""The rule `expand-cell`: an RNN, GRU or LSTM becomes plain operators in a loop over its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from onnx import TensorProto

from passes.bodies.branches import Branch, Results, either
from passes.bodies.copy_budget import allow
from passes.choices import Form
from passes.ir.attributes import attribute
from passes.ir.constants import Constants
from passes.ir.operators import op_of
from passes.ir.purposes import END_ROWS, GUARD_SIZES, HANDLE_NOTHING
from passes.loops.form import Kind
from passes.operators.cells import RECURRENT
from passes.rule import Edit, NothingToDo, Site, nodes_of, register
from passes.rules.expand_cell.cell_form import OTHERS, CellForm
from passes.rules.expand_cell.cell_loop import CellLoop
from passes.rules.expand_cell.cell_step import CellStep
from passes.types.value_types import Dim, dims_of, tensor_type
from passes.writing import guards, spelling
from passes.writing.author import Author

#: From how many rows on a Scan of an RNN is quicker than the operator, by its width.
_QUICKER = {128: 1, 64: 2, 32: 4}
#: The overhead of the Scan is that of so many steps.
_FEW_STEPS = 16


@register("expand-cell", considers=nodes_of(*RECURRENT, *OTHERS), optional=True)
def expand_cell(site: Site) -> Edit:
    """Write an RNN, GRU or LSTM in plain operators.

    Before:

        y, h = GRU <hidden_size = 4, linear_before_reset = 1> (x, w, r, b, , h0)

    After, where there are steps, else `y` is empty and `h` is `h0`:

        wx = MatMul (x, w1)
        xs = Add (wx, bias)
        hT, ys = Scan <num_scan_inputs = 1, body = step
            (float[B,4] h_in, float[B,12] x_t) => (float[B,4] h_out, float[B,4] y_t) {
            hr = MatMul (h_in, r1)
            q = Add (hr, rb)
            xz, xr, xn = Split <axis = 1, num_outputs = 3> (x_t)
            rz, rr, rn = Split <axis = 1, num_outputs = 3> (q)
            z = Sigmoid (Add (xz, rz))
            reset = Sigmoid (Add (xr, rr))
            n = Tanh (Add (xn, Mul (reset, rn)))
            h_out = Add (Mul (Sub (one, z), n), Mul (z, h_in))
            y_t = Identity (h_out)
        }> (h1, xs)
        y = Unsqueeze (ys, axis)
        h = Unsqueeze (hT, axis)

    The loop is a Scan, or a Loop, or its steps are written out, as `--as` asks for; for a target
    without control flow they are written out. Both directions have a loop of their own.
    sequence_lens becomes masks: beyond the length of a row, the output is 0 and its states stay.
    Sums and activations may differ in rounding. As the documents demand, NaN stays NaN, and the
    last state of a row of length 0 is its initial state, where onnxruntime's operators return
    numbers.

    `optimize` expands what the target lacks, and for onnxruntime an RNN that is quicker as a Scan.

    Refuses:
    - `activation`: an activation is unknown, or there are too few
    - `attribute-reference`: a function attribute decides what it computes
    - `clip`: the clip threshold is not above 0, on which runtimes differ
    - `contrib`: it is an operator of onnxruntime that does more
    - `default-differs`: runtimes differ on a parameter of an activation that is left out
    - `direction`: the direction is unknown, or does not fit the weights
    - `element-type`: it computes in a type other than a float, or an unknown one
    - `opset-too-old`: the opset is below 9, or one of the operators is newer
    - `steps-unknown`: the steps are to be written out, but their number is unknown
    - `too-many-nodes`: the steps written out are more nodes than `--max-nodes` allows
    """
    if not _is_wanted(site):
        raise NothingToDo
    form = CellForm.of(site)
    author = Author(site.target, site.names, site.node.name or form.operator.lower())
    expansion = Expansion(site, form, author)
    note = expansion.write()
    edit = author.edit(note, author.read(filter(None, expansion.outputs)))
    return replace(edit, exact=False)


def _is_wanted(site: Site) -> bool:
    """Return whether the operator is to be expanded: always, unless the target has it; even then
    where the loop is quicker."""
    options = site.options
    if options.lacking_cells and op_of(site.node) not in options.lacks:
        return options.quicker_cells and _is_quicker(site)
    return True


def _is_quicker(site: Site) -> bool:
    """Return whether the loop is quicker in onnxruntime, as measured in docs/expand.md, for weights
    that are known: others may be anything, with which an RNN is chaotic and cannot be verified."""
    node = site.node
    known = Constants(site.model, site.scope)
    if any(known.tensor(weight) is None for weight in node.input[1:3]):
        return False
    x, r = (dims_of(site.type_of(name)) or (None,) * 3 for name in (node.input[0], node.input[2]))
    if op_of(node) != "RNN" or attribute(node, "layout", 0):
        return False
    steps, rows, hidden = x[0], x[1], r[2]
    if not isinstance(hidden, int) or (isinstance(steps, int) and steps < _FEW_STEPS):
        return False
    least = [count for width, count in _QUICKER.items() if hidden >= width]
    return bool(least) and least[0] <= (rows if isinstance(rows, int) else 1)


_One = TypeVar("_One")


@dataclass(frozen=True)
class Expansion:
    """Writes the replacement of one node."""

    site: Site
    form: CellForm
    author: Author

    def write(self) -> str:
        """Write it, the outputs under their names; a note for the report.

        Raises:
            Refused: `steps-unknown` or `too-many-nodes`.
        """
        form, author, asked = self.form, self.author, self.site.options.form
        loops = self._loops() if form.steps != 0 else []
        if asked == Form.written_out and loops:
            if not isinstance(form.steps, int):
                raise self.site.refused("steps-unknown", "the number of steps is unknown")
            one = loops[0].loop(author, Kind.SCAN)
            allow(self.site, one, form.steps * len(loops))

        def steps(inner: Author) -> Results:
            return Results(self._named(self._steps(inner, loops, asked, ["", "", ""])))

        def no_steps(inner: Author) -> Results:
            return Results(self._named(self._no_steps(inner)))

        outputs = self._named(self.outputs)
        if not loops:
            for value, name in zip(no_steps(author).names, outputs, strict=True):
                author.name_as(value, name)
            return asked
        known = isinstance(form.steps, int) or self.site.assumes("non-empty")
        if known or asked == Form.loop:
            self._steps(author, loops, asked, [*self.outputs, "", ""])
            return asked
        with author.serving(HANDLE_NOTHING):
            count = spelling.squeeze(author, self._count, 0)
            runs = author.op("Greater", count, author.int(0))
        branches = Branch("steps", steps), Branch("no_steps", no_steps, extra=True)
        dims = self._sizes(form.steps, len(form.directions), form.rows, form.hidden)
        types = [tensor_type(form.elem_type, one) for one in self._named(dims)]
        either(author, runs, *branches, outputs, types, purpose=HANDLE_NOTHING)
        return asked

    @cached_property
    def outputs(self) -> list[str]:
        """Y, Y_h and Y_c, "" where nothing reads one; all, where nothing reads any."""
        named, readers = self.site.node.output, self.site.graph.readers
        read = [name if name in readers else "" for name in named]
        return read if any(read) else list(named)

    def _named(self, values: Sequence[_One]) -> list[_One]:
        """Those of Y, Y_h and Y_c that are read."""
        return [value for name, value in zip(self.outputs, values, strict=False) if name]

    def _sizes(self, steps: _One, ways: _One, rows: _One, hidden: _One) -> list[tuple[_One, ...]]:
        """The sizes of Y, Y_h and Y_c, made of these."""
        if self.form.batch_first:
            return [(rows, steps, ways, hidden), *[(rows, ways, hidden)] * 2]
        return [(steps, ways, rows, hidden), *[(ways, rows, hidden)] * 2]

    # -- sizes

    @cached_property
    def _count(self) -> str:
        """The number of steps, int64 [1]."""
        return self._size(self.form.steps, self.form.operands.x, 1 if self.form.batch_first else 0)

    @cached_property
    def _rows(self) -> str:
        """The number of rows, int64 [1]."""
        return self._size(self.form.rows, self.form.operands.x, 0 if self.form.batch_first else 1)

    @cached_property
    def _hidden(self) -> str:
        """The size of a state, int64 [1]."""
        return self._size(self.form.hidden, self.form.operands.r, 2)

    def _size(self, known: Dim, value: str, axis: int) -> str:
        if isinstance(known, int):
            return self.author.ints(known)
        return spelling.size_of_axis(self.author, value, axis)

    # -- where there are steps

    def _loops(self) -> list[CellLoop]:
        """Write what the loop of each direction reads."""
        form, author, x = self.form, self.author, self.form.operands.x
        x = author.op("Transpose", x, perm=[1, 0, 2]) if form.batch_first else x
        mask = self._mask()
        return [
            CellLoop(
                CellStep.of(self.site, form, author, x, way),
                is_reversed,
                [self._initial(state, way) for state in form.initials],
                mask,
                self._count,
                self.site.node.name and self.site.node.name + ("/reverse" if way else ""),
                bool(self.outputs[0]),
            )
            for way, is_reversed in enumerate(form.directions)
        ]

    def _initial(self, state: str, way: int) -> str:
        """A state before the first step, [rows, hidden]."""
        author, form = self.author, self.form
        if not state:
            return self._zeros
        axis = 1 if form.batch_first else 0
        state = self._of_rows(state, state, 1 - axis, form.elem_type)
        if len(form.directions) == 1:
            return spelling.squeeze(author, state, axis)
        return author.op("Gather", state, author.int(way), axis=axis)

    @cached_property
    def _zeros(self) -> str:
        """The state where none is given, [rows, hidden]."""
        shape = self.author.op("Concat", self._rows, self._hidden, axis=0)
        return spelling.filled(self.author, shape, self.form.elem_type, 0)

    def _mask(self) -> str:
        """A mask that is true until a row ends, bool [steps, rows, 1]; "" if all rows take all
        steps."""
        form, author, site = self.form, self.author, self.site
        if not form.operands.lengths:
            return ""
        known, steps = site.constant(form.operands.lengths), form.steps
        fits = False
        if known is not None and isinstance(steps, int):
            if known.shape == (form.rows,) and (known == steps).all():
                return ""
            fits = bool(((known >= 0) & (known <= steps)).all())
        ends = author.op("Cast", form.operands.lengths, to=TensorProto.INT64)
        if not fits and not site.assumes("valid-inputs"):
            time = spelling.squeeze(author, self._count, 0)
            ends = guards.guarded_ends(author, ends, ends, time, masked=True)
        ends = self._of_rows(ends, form.operands.lengths, 0, TensorProto.INT64)
        with author.serving(END_ROWS):
            if isinstance(steps, int):
                numbers = author.value(np.arange(steps).reshape(-1, 1), "numbers")
            else:
                numbers = spelling.unsqueeze(author, spelling.arange(author, self._count), 1)
            runs = author.op("Less", numbers, spelling.unsqueeze(author, ends, 0))
            return spelling.unsqueeze(author, runs, 2)

    def _of_rows(self, value: str, name: str, axis: int, elem_type: int) -> str:
        """`value`, or a failure where an axis of the input `name` has not the size of a batch."""
        form, author = self.form, self.author
        dims = dims_of(self.site.type_of(name)) or (None,) * (axis + 1)
        if self.site.assumes("valid-inputs") or dims[axis] == form.rows is not None:
            return value
        with author.serving(GUARD_SIZES):
            size = spelling.scalar_size(author, name, axis)
            same = author.op("Equal", size, spelling.squeeze(author, self._rows, 0))
            return guards.guarded(author, value, same, elem_type)

    def _steps(
        self, author: Author, loops: Sequence[CellLoop], asked: str, outputs: Sequence[str]
    ) -> list[str]:
        """Write the loops: Y, Y_h and Y_c, under the names that `outputs` has for them."""
        ran = [loop.write(author, asked) for loop in loops]
        rows, axis = [one.rows for one in ran], 0
        if self.form.batch_first:
            axis = 1
            rows = [one and author.op("Transpose", one, perm=[1, 0, 2]) for one in rows]
        values = [rows, *zip(*(one.states for one in ran), strict=True)]
        axes = [axis + 1, axis, axis]
        return [
            _stacked(author, *one) if all(one[0]) else ""
            for one in zip(values, axes, outputs, strict=False)
        ]

    # -- where there are none

    def _no_steps(self, author: Author) -> list[str]:
        """Write Y, of no steps, and the initial states."""
        ways = self.author.ints(len(self.form.directions))
        # not 0: where it is nested, onnxruntime takes the sizes of one branch for those of both
        sizes = self._sizes(self._count, ways, self._rows, self._hidden)

        def zeros(sizes: Sequence[str]) -> str:
            shape = author.op("Concat", *sizes, axis=0)
            return spelling.filled(author, shape, self.form.elem_type, 0)

        states = [
            author.op("Identity", one) if one else zeros(sizes[1]) for one in self.form.initials
        ]
        return [zeros(sizes[0]), *states]


def _stacked(author: Author, parts: Sequence[str], axis: int, name: str) -> str:
    """One value of both directions, with an axis of directions."""
    outputs = [name] if name else []
    if len(parts) == 1:
        return spelling.unsqueeze(author, parts[0], axis, outputs)
    rows = [spelling.unsqueeze(author, part, axis) for part in parts]
    return author.op("Concat", *rows, axis=axis, outputs=outputs)
