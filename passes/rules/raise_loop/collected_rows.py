"""The collected outputs of a Scan, and what is done with them after it."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import TypeProto

from passes.analysis.sizes.made_up_sizes import without_made_up
from passes.bodies.element_sizes import known_size, shape_of_none
from passes.ir.versions import SHAPES_MAY_DIFFER
from passes.rules.raise_loop.accumulators import Accumulator, Joined
from passes.rules.raise_loop.raising import Raising
from passes.types.value_types import Dim, dims_of, tensor_type
from passes.writing import spelling
from passes.writing.author import Author


@dataclass(frozen=True)
class ScanOutput:
    """A collected output of a Scan, of elements called `result` in its body.

    `covered` are nodes after the Loop whose work is done here. `joined` elements already have the
    axis on which they are collected, so two axes are merged. An `accumulator` is put
    after its initial value (before it, if it is reversed).
    """

    raising: Raising
    result: str
    name: str
    element: TypeProto
    axis: int = 0
    reversed: bool = False
    covered: tuple[int, ...] = ()
    accumulator: Accumulator | None = None
    join: Joined | None = None
    joined: bool = False
    begins_with: str = ""

    @property
    def finishes(self) -> bool:
        """True if there is something left to do after the Scan."""
        return self.joined or bool(self.begins_with)

    @property
    def type(self) -> TypeProto:
        """The type of the output, without the size of the collected axis."""
        element = self.raising.types.certainly(self.result, self.element)
        dims: list[Dim] = list(dims_of(element) or ())
        if self.joined:
            dims[self.axis] = None
        else:
            dims.insert(self.axis, None)
        return tensor_type(self.element.tensor_type.elem_type, without_made_up(tuple(dims)))

    @property
    def element_type(self) -> TypeProto:
        """The type of an element, as a body may declare it."""
        element = self.raising.types.certainly(self.result, self.element)
        dims = dims_of(element)
        return tensor_type(element.tensor_type.elem_type, dims and without_made_up(dims))

    def finish(self, author: Author, rows: str, output: str) -> None:
        """Join what the Scan collected, and concatenate it with the initial value."""
        outputs = [] if self.begins_with else [output]
        if self.joined:
            rows = self._merged(author, rows, outputs)
        if self.begins_with:
            begun = self._begun(author)
            parts = [rows, begun] if self.reversed else [begun, rows]
            author.op("Concat", *parts, outputs=[output], axis=self.axis)

    def _merged(self, author: Author, rows: str, outputs: list[str]) -> str:
        """Merge the collected axis and the one after it."""
        shape = author.op("Shape", rows)
        rank = len(dims_of(self.element) or ()) + 1
        sizes = [author.op("Gather", shape, author.ints(axis), axis=0) for axis in range(rank)]
        merged = author.op("Mul", sizes[self.axis], sizes[self.axis + 1])
        sizes[self.axis : self.axis + 2] = [merged]
        return spelling.reshaped(author, rows, author.op("Concat", *sizes, axis=0), outputs)

    def _begun(self, author: Author) -> str:
        """The initial value, as a tensor."""
        if self.join is None:
            return self.begins_with
        return self._original_join(author)

    def _original_join(self, author: Author) -> str:
        assert self.accumulator is not None
        assert self.join is not None
        return author.op(
            "ConcatFromSequence",
            self.accumulator.carried.initial,
            axis=self.join.axis,
            new_axis=int(self.join.stacks),
        )

    def idle(self, author: Author) -> str:
        """The value where no iteration runs."""
        if self.join is not None:
            return self._original_join(author)  # fails on an empty sequence, as it did
        if self.accumulator is not None:
            initial = self.accumulator.carried.initial
            if self.begins_with or author.opset >= SHAPES_MAY_DIFFER:
                return author.op("Identity", initial)
            # inference would take the size 0 of this branch for that of the If
            shape = author.op("Add", author.op("Shape", initial), self._computed_zero(author))
            return author.op("Reshape", initial, shape)
        site = self.raising.site
        known = dims_of(self.element) or ()
        declared = dims_of(site.body_type_of("body", self.result))
        if declared is None or len(declared) != len(known):
            declared = known
        sizes = [self._size(author, *dims) for dims in zip(known, declared, strict=True)]
        seen_by_both = author.opset < SHAPES_MAY_DIFFER
        nothing = self._computed_zero(author) if seen_by_both else ""
        shape = shape_of_none(author, sizes, self.axis, nothing)
        return spelling.zeros(author, shape, self.element.tensor_type.elem_type)

    def _size(self, author: Author, dim: Dim, declared: Dim) -> str:
        """A size of an element: static, or that of an outer value; 0 where it is unknown."""
        form, site = self.raising.form, self.raising.site
        atom = self.raising.types.sizes.get(dim)
        if atom is None or atom.axis is None:
            known = known_size(author, site, form, dim if isinstance(dim, int) else declared)
            if known:
                return known
            return self._computed_zero(author)
        return spelling.size_of_axis(author, atom.tensor, atom.axis)

    def _computed_zero(self, author: Author) -> str:
        """A 0 computed from the trip count: from a constant, onnxruntime would infer the size, and
        then reject an If whose other branch is known to have another one."""
        count = self.raising.trips.scalar(author)
        return spelling.unsqueeze(author, author.op("Sub", count, count), 0)
