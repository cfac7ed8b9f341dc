"""Facts about the values of one row, and the writer of nodes that work on all rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, TypeProto

from passes.ir.operators import op_of
from passes.ir.protos import changed
from passes.ir.site import Refused
from passes.types.value_types import Dim, Dims, dims_of, elem_type_of, tensor_type
from passes.vectorize.rows import Rows
from passes.writing import spelling
from passes.writing.author import Author
from passes.writing.spelling import Writer


@dataclass(frozen=True)
class Axis:
    """The new leading axis: `size` names its size (int64 [1]) where the body can read it.

    `static` is the size where it is known; `nonempty` says that it is never 0 where the body
    runs in onnxruntime, `unguarded` that it may be 0 there in other runtimes. `symbol` is what the
    model calls the size: runtimes join the nodes of nested bodies where they see that sizes are
    equal.
    """

    size: str
    static: int | None = None
    nonempty: bool = False
    unguarded: bool = False
    symbol: str | None = None

    @property
    def dim(self) -> Dim:
        """The size, as far as types declare it."""
        return self.symbol if self.static is None else self.static


class NeedsRows(Exception):
    """The nodes for an axis that may be empty would be wrong for an empty one."""


@dataclass(frozen=True)
class RowsWriter(Writer):
    """The facts that a rule sees, and its writer. All names are unique, at every depth of the body.

    `carrying` are the names that carry the axis; it grows as nodes are written. A name keeps
    its meaning but for the axis. Ranks, dims and axes are those of one row.
    """

    rows: Rows
    axis: Axis
    author: Author
    carrying: set[str]
    path: str
    spread_types: dict[str, TypeProto] = field(default_factory=dict)

    # --- what is known ---

    def has_rows(self) -> bool:
        """Return whether the axis is never empty, for what would else be wrong, in any runtime.

        Raises:
            NeedsRows: it may be, although it is not where onnxruntime is concerned.
        """
        if self.axis.static:
            return True
        if self.axis.nonempty and self.axis.unguarded:
            raise NeedsRows
        return self.axis.nonempty

    def carries(self, name: str) -> bool:
        """Return whether a value has the new axis."""
        return name in self.carrying

    def type_of(self, name: str) -> TypeProto | None:
        """The type of a value in one row."""
        known = self.rows.types.get(name)
        return known if dims_of(known) is not None else self.spread_types.get(name, known)

    def dims(self, name: str) -> Dims:
        """The dims of a value in one row.

        Raises:
            Refused: `unknown-rank` where inference does not even find the rank.
        """
        typed = self.type_of(name)
        known = dims_of(typed)
        if typed is not None and not typed.HasField("tensor_type"):
            self.refuse("no-batching-rule", f"{name!r} is no tensor, so it has no axes", name)
        if known is None:
            self.refuse("unknown-rank", f"the rank of {name!r} in the body is unknown", name)
        return known

    def rank(self, name: str) -> int:
        """The rank of a value in one row."""
        return len(self.dims(name))

    def elem_type(self, name: str) -> int:
        """The element type of a value.

        Raises:
            Refused: `unknown-type` where inference does not find it.
        """
        known = elem_type_of(self.type_of(name))
        if not known:
            self.refuse("unknown-type", f"the type of {name!r} in the body is unknown", name)
        return known

    def constant(self, name: str) -> npt.NDArray[Any] | None:
        """The value where it is fixed and small, else None."""
        return self.rows.constants.get(name)

    def refuse(self, code: str, sentence: str, *culprits: str) -> NoReturn:
        """Give up: this body cannot be vectorised."""
        raise Refused(code, f"{self.path}: {sentence}", [self.path, *culprits])

    def refuse_node(self, code: str, node: NodeProto, what: str) -> NoReturn:
        """The same because of a node."""
        self.refuse(code, f"{op_of(node)} {list(node.output)} {what}", *node.output)

    def only_rows(self, node: NodeProto, *positions: int) -> None:
        """Refuse where one of these inputs carries the axis: shapes, sizes and axes of a row
        may differ from row to row then.

        Raises:
            Refused: `batched-operand`.
        """
        for position in positions:
            if position < len(node.input) and self.carries(node.input[position]):
                self.refuse(
                    "batched-operand",
                    f"{op_of(node)} takes its input {position} ({node.input[position]!r}) from "
                    "each row, and the rows may differ",
                    node.input[position],
                )

    # --- writing ---

    @property
    def opset(self) -> int:
        """The opset that the nodes are written in."""
        return self.author.opset

    def fresh(self, hint: str) -> str:
        """A value name that occurs nowhere else."""
        return self.author.fresh(hint)

    def op(self, op_type: str, *inputs: str, outputs: Sequence[str] = (), **attributes: Any) -> str:
        """Write a new node; the name of its first output."""
        return self.author.op(op_type, *inputs, outputs=outputs, **attributes)

    def value(self, array: npt.NDArray[Any], hint: str = "constant") -> str:
        """The name of a fixed value; equal values are shared."""
        return self.author.value(array, hint)

    def once(self, key: Hashable, write: Callable[[], str]) -> str:
        """The result of `write`, which is called for the first one of equal keys."""
        return self.author.once(key, write)

    def again(
        self,
        node: NodeProto,
        inputs: Sequence[str] | None = None,
        outputs: Sequence[str] | None = None,
        **attributes: Any,
    ) -> None:
        """Write `node` once more with other inputs, outputs or attributes (None: without)."""
        self.author.adopt([changed(node, attributes, inputs=inputs, outputs=outputs)])

    def note(self, name: str, elem_type: int, dims: Sequence[Dim], *, carries: bool = True) -> str:
        """Let `rank`, `carries` and the rest know a value that a rule wrote: its type in a row."""
        self.spread_types[name] = tensor_type(elem_type, tuple(dims))
        if carries:
            self.carrying.add(name)
        return name

    def name_as(self, value: str, output: str) -> None:
        """Give `value` the name that the body knows it by."""
        self.author.name_as(value, output)

    def raised(self, name: str, rank: int) -> str:
        """A carrying value with axes of size 1 behind the new one, up to `rank` of a row, so
        that it broadcasts as the row does. A value without the axis broadcasts as it is."""
        missing = rank - self.rank(name)
        if not self.carries(name) or missing <= 0:
            return name
        axes = list(range(1, 1 + missing))
        return spelling.unsqueeze_axes(self, name, axes)

    def spread(self, name: str) -> str:
        """`name` with the new axis: itself, or the same value for every row."""
        if not name or self.carries(name):
            return name
        row = spelling.unsqueeze(self, name, 0)
        if self.axis.static == 0:  # an Expand to nothing is left out by onnxruntime
            wide = spelling.part(self, row, 0, 0, 0)
        else:
            ones = self.value(np.ones(self.rank(name), np.int64), "ones")
            shape = self.op("Concat", self.axis.size, ones, axis=0)
            wide = self.op("Expand", row, shape)
        known = self.type_of(name)
        if known is not None:
            self.spread_types[wide] = known
        self.carrying.add(wide)
        return wide
