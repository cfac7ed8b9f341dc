"""Writes linear attention as a Scan."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from onnx import GraphProto, TensorProto, ValueInfoProto, helper

from passes.bodies.branches import Branch, Results, either
from passes.loops.form import Carried, Collected, Kind, LoopForm, Scanned
from passes.rule import Site
from passes.rules.attention.attention_form import AttentionForm
from passes.types.value_types import Dim, dims_of, tensor_type
from passes.writing import spelling
from passes.writing.author import Author


@dataclass(frozen=True)
class _Rows:
    """A scanned tensor, [steps, batch, heads, rows, columns], and these sizes."""

    tensor: str
    heads: int
    rows: int
    columns: int


@dataclass(frozen=True)
class WrittenScan:
    """Writes the Scan that a LinearAttention node computes."""

    site: Site
    form: AttentionForm
    author: Author

    def write(self) -> None:
        """Write it, its outputs under their names; onnxruntime fails on a Scan of no step."""
        form, author, query = self.form, self.author, self.site.node.input[0]
        outputs = [name or author.fresh("unread") for name in [*self.site.node.output, ""][:2]]
        if isinstance(form.steps, int) and form.steps:
            for value, name in zip(self._scan(), outputs, strict=True):
                author.name_as(value, name)
            return
        width = form.outputs * form.columns

        def no_step(inner: Author) -> Results:
            around = spelling.part(inner, spelling.shape_of(inner, query), 0, 0, 2)
            shape = inner.op("Concat", around, inner.ints(width), axis=0)
            state = inner.op("Identity", replace(self, author=inner)._initial())
            return Results([spelling.filled(inner, shape, TensorProto.FLOAT, 0), state])

        def scan(inner: Author) -> Results:
            return Results(replace(self, author=inner)._scan())

        sizes = (form.steps, width), (form.states, form.rows, form.columns)
        types = [tensor_type(TensorProto.FLOAT, (form.batch, *size)) for size in sizes]
        steps = spelling.scalar_size(author, query, 1)
        some = author.op("Greater", steps, author.int(0))
        either(author, some, Branch("steps", scan), Branch("no_step", no_step), outputs, types)

    def _scan(self) -> list[str]:
        """The output and the last state."""
        form, author = self.form, self.author
        query, key, value = self.site.node.input[:3]
        group = max(1, form.queries // form.states)
        scanned = {
            "q": self._rows(query, form.queries // group, group, form.rows),
            "k": self._rows(key, form.keys, form.rows, 1),
            "v": self._rows(value, form.states, 1, form.columns),
        }
        if form.decay:
            width = self._width(form.decay) // form.states
            scanned["g"] = self._rows(form.decay, form.states, width, 1)
        if form.beta:
            scanned["k_row"] = self._rows(key, form.keys, 1, form.rows)
            scanned["beta"] = self._rows(form.beta, self._width(form.beta), 1, 1, spread=False)
        names = {name: author.fresh(f"{name}_t") for name in scanned}
        body, state = self._body(scanned, names)
        last, read = author.fresh("last"), author.fresh("rows")
        loop = LoopForm(
            Kind.SCAN,
            body,
            (Carried(self._initial(), state, body.output[0].name, last),),
            tuple(Scanned(rows.tensor, names[name]) for name, rows in scanned.items()),
            (Collected(body.output[1].name, read),),
        )
        author.adopt([loop.to_node()])
        read = author.op("Transpose", read, perm=[1, 0, 2, 3, 4])
        read = author.op("Reshape", read, author.ints(0, 0, form.outputs * form.columns))
        if form.scale != 1:
            scale = author.value(np.array(form.scale, np.float32), "scale")
            read = author.op("Mul", read, scale)
        return [read, last]

    def _width(self, name: str) -> int:
        """The size of the last axis, of which `AttentionForm` sees that it is known."""
        dims = dims_of(self.site.type_of(name)) or ()
        return int(dims[2] or 0)

    def _rows(
        self, packed: str, heads: int, rows: int, columns: int, *, spread: bool = True
    ) -> _Rows:
        """Return the scanned form of [batch, steps, heads * rows * columns]: `spread`, a head for
        each state, if several states share one."""
        author, states = self.author, self.form.states
        apart = author.op("Reshape", packed, author.ints(0, 0, heads, rows, columns))
        value = author.op("Transpose", apart, perm=[1, 0, 2, 3, 4])
        if heads != states and spread:
            which = author.ints(*(state * heads // states for state in range(states)))
            value, heads = author.op("Gather", value, which, axis=2), states
        return _Rows(value, heads, rows, columns)

    def _initial(self) -> str:
        form, author = self.form, self.author
        if form.past:
            return form.past
        sizes = author.ints(form.states, form.rows, form.columns)
        batch = spelling.size_of_axis(author, self.site.node.input[0], 0)
        shape = author.op("Concat", batch, sizes, axis=0)
        return spelling.filled(author, shape, TensorProto.FLOAT, 0)

    def _body(self, scanned: dict[str, _Rows], names: dict[str, str]) -> tuple[GraphProto, str]:
        """The body, and the name of its state."""
        form, author = self.form, self.author.inside("attention")
        state = before = author.fresh("state")
        if "g" in names:
            before = author.op("Mul", author.op("Exp", names["g"]), before)
        value = names["v"]
        if "beta" in names:
            missing = author.op("Sub", value, author.op("MatMul", names["k_row"], before))
            value = author.op("Mul", names["beta"], missing)
        after = author.op("Add", before, author.op("Mul", names["k"], value))
        read = author.op("MatMul", names["q"], after)

        def typed(name: str, heads: Dim, rows: Dim, columns: Dim) -> ValueInfoProto:
            sizes = (form.batch, heads, rows, columns)
            return helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes)

        sizes = form.states, form.rows, form.columns
        inputs = [
            typed(names[name], rows.heads, rows.rows, rows.columns)
            for name, rows in scanned.items()
        ]
        outputs = [typed(after, *sizes), typed(read, form.states, scanned["q"].rows, form.columns)]
        return author.graph("attention", [typed(state, *sizes), *inputs], outputs), state
