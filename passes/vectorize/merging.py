"""The new axis merged into an axis of a row that counts independent cases, and split off again.

Ops with a batch axis of their own take both as one: [B, ..., N, ...] becomes [..., B*N, ...].
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from onnx import NodeProto

from passes.ir.versions import ZERO_IS_A_SIZE
from passes.vectorize.vectorizer import Vectorizer
from passes.writing import spelling

#: A size: a number, or the name of an int64 [1].
Size = int | str


def row_size(ctx: Vectorizer, name: str, axis: int) -> Size:
    """The size of an axis (0 or more) of a row."""
    known = ctx.dims(name)[axis]
    if isinstance(known, int):
        return known
    return spelling.size_of_axis(ctx, name, axis + ctx.carries(name))


@dataclass(frozen=True)
class Merging:
    """Merges into axes of one size, the `rows` that each row brings."""

    ctx: Vectorizer
    rows: Size

    @classmethod
    def like(cls, ctx: Vectorizer, name: str, axis: int = 0) -> Merging:
        """The merging into this axis of a value."""
        return cls(ctx, row_size(ctx, name, axis))

    def write(
        self, node: NodeProto, inputs: Sequence[str], hint: str, axes: Sequence[int] = ()
    ) -> None:
        """Write `node` on merged inputs, and split its outputs along these axes."""
        outputs = [self.ctx.fresh(hint) if name else "" for name in node.output]
        self.ctx.again(node, inputs, outputs)
        axes = axes or (0,) * len(outputs)
        for value, output, axis in zip(outputs, node.output, axes, strict=False):
            self.split(value, output, axis)

    def merged(self, name: str, axis: int = 0) -> str:
        """[B, ..., N, ...] as [..., B*N, ...], N being axis `axis` of a row.

        A value without the new axis is spread first; an omitted one stays omitted.
        """
        if not name:
            return name
        ctx = self.ctx
        value = ctx.spread(name)
        rank = ctx.rank(name)
        if self.rows == 1:
            lines = spelling.squeeze(ctx, value, axis + 1)
            return spelling.axis_moved(ctx, lines, 0, axis, rank)
        sizes = _other_sizes(ctx, name, name, axis, int(ctx.carries(name)))
        front = spelling.axis_moved(ctx, value, 0, axis, rank + 1)
        return self._reshape(front, [*sizes[:axis], self._both(), *sizes[axis:]], axis)

    def split(self, value: str, output: str, axis: int = 0, named: str = "") -> None:
        """[..., B*N, ...] as [B, ..., N, ...], the `output` of a row, under its name or `named`."""
        ctx = self.ctx
        if not output:
            return
        if self.rows == 1:
            front = spelling.axis_moved(ctx, value, axis, 0, ctx.rank(output)) if axis else value
            ctx.name_as(spelling.unsqueeze(ctx, front, axis + 1), named or output)
            return
        sizes = _other_sizes(ctx, output, value, axis, 0)
        parts = [*sizes[:axis], self._new(), self.rows, *sizes[axis:]]
        apart = self._reshape(value, parts, axis)
        ctx.name_as(spelling.axis_moved(ctx, apart, axis, 0, len(parts)), named or output)

    def _new(self) -> Size:
        """B."""
        axis = self.ctx.axis
        return axis.size if axis.static is None else axis.static

    def _both(self) -> Size:
        """B*N."""
        new = self._new()
        if isinstance(new, int) and isinstance(self.rows, int):
            return new * self.rows
        return self.ctx.op("Mul", *(_named(self.ctx, size) for size in (new, self.rows)))

    def _reshape(self, value: str, parts: Sequence[Size], place: int) -> str:
        """`value` with these sizes; the one at `place` has the new axis in it.

        Raises:
            Refused: `may-be-empty` at opset 13, where a size of 0 cannot be expressed.
        """
        ctx = self.ctx
        fixed = [self.rows, *(size for index, size in enumerate(parts) if index != place)]
        full = all(isinstance(size, int) and size > 0 for size in fixed)
        if full and isinstance(parts[place], str) and ctx.axis.nonempty:
            shape = ctx.ints(*(-1 if isinstance(size, str) else size for size in parts))
            return ctx.op("Reshape", value, shape)
        if full:  # a 0 at `place` says that the axis there stays: it is empty, too
            return ctx.op("Reshape", value, _vector(ctx, parts))
        if ctx.opset < ZERO_IS_A_SIZE:
            ctx.refuse("may-be-empty", "opset 13 has no Reshape to a size that may be 0", value)
        return ctx.op("Reshape", value, _vector(ctx, parts), allowzero=1)


def over_batch(node: NodeProto, ctx: Vectorizer, batched: Collection[int] = (0,)) -> None:
    """Write `node`, whose inputs at `batched` and all outputs have their batch axis in front.

    The others, weights most of all, must be the same for all rows.
    """
    ctx.only_rows(node, *(place for place in range(len(node.input)) if place not in batched))
    merging = Merging.like(ctx, node.input[min(batched)])
    inputs = [
        merging.merged(name) if place in batched else name for place, name in enumerate(node.input)
    ]
    merging.write(node, inputs, "merged")


def _named(ctx: Vectorizer, size: Size) -> str:
    return ctx.ints(size) if isinstance(size, int) else size


def _other_sizes(ctx: Vectorizer, like: str, value: str, axis: int, lead: int) -> list[Size]:
    """The sizes of one row of `like` but the one of `axis`; where inference does not find them,
    they are read from `value`, which has `lead` more axes in front."""
    dims = [(place, dim) for place, dim in enumerate(ctx.dims(like)) if place != axis]
    known = all(isinstance(dim, int) for _, dim in dims)
    whole = "" if known else ctx.op("Shape", value)
    return [
        dim if isinstance(dim, int) else ctx.op("Gather", whole, ctx.ints(place + lead), axis=0)
        for place, dim in dims
    ]


def _vector(ctx: Vectorizer, parts: Sequence[Size]) -> str:
    """Sizes as an int64 vector; neighbours that are known are one constant."""
    pieces: list[list[int] | str] = []
    for size in parts:
        if isinstance(size, str):
            pieces.append(size)
        elif pieces and isinstance(pieces[-1], list):
            pieces[-1].append(size)
        else:
            pieces.append([size])
    named = [ctx.ints(*piece) if isinstance(piece, list) else piece for piece in pieces]
    return spelling.joined(ctx, named)
