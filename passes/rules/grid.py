"""A tensor of rows of elements."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import TypeProto

from passes.rules.made_up_sizes import without_made_up
from passes.value_types import Dim, Dims, tensor_type


@dataclass(frozen=True)
class Grid:
    """A tensor whose elements are those of all rows: `across` is the axis of the rows, `along`
    that of the elements of a row, both counted from the front, in a tensor of sizes `dims`."""

    tensor: str
    across: int
    along: int
    dims: Dims
    elem_type: int

    @property
    def order(self) -> list[int]:
        """The axes, these two in front."""
        rest = [at for at in range(len(self.dims)) if at not in (self.across, self.along)]
        return [self.across, self.along, *rest]

    @property
    def element(self) -> Dims:
        """The sizes of an element."""
        return tuple(self.dims[at] for at in self.order[2:])

    def type_of(self, *lengths: Dim) -> TypeProto:
        """The type of elements along axes of these lengths."""
        return tensor_type(self.elem_type, without_made_up((*lengths, *self.element)))
