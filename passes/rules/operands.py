"""What a condition compares: whole numbers, or whole numbers that it casts to floats first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
from onnx import TensorProto, TypeProto

from passes.operators import op_of
from passes.rules.affine import Affine
from passes.rules.integer_ops import WHOLE, attribute
from passes.rules.integers import Integers
from passes.value_types import elem_type_of

#: Up to where a float tells a whole number from the next one.
_FLOATS = {"float32": 1 << 24, "float64": 1 << 53}
_LIMITS: dict[int, int] = {
    TensorProto.FLOAT: _FLOATS["float32"],
    TensorProto.DOUBLE: _FLOATS["float64"],
}


@dataclass(frozen=True)
class Operand:
    """A side of a comparison.

    `name` is the whole number, in front of the cast; `value` what is known of it; `elem_type` its
    type, 0 where unknown. Where floats are compared, they are exact below `limit`, else 0.
    """

    name: str
    value: Affine | None
    elem_type: int
    limit: int = 0

    @property
    def exact(self) -> bool:
        """Whether no other number rounds to it: it compares to all numbers as it ought to."""
        number = None if self.value is None else self.value.number
        return not self.limit or (number is not None and abs(number) < self.limit)


@dataclass(frozen=True)
class Operands:
    """Reads sides of comparisons, as the body sees them or, `outside`, in front of the loop."""

    integers: Integers
    type_of: Callable[[str], TypeProto | None]
    outside: bool = False

    def read(self, name: str) -> Operand:
        """The side of a comparison that has a name."""
        found = self._cast(name) or self._fixed(name)
        return found or Operand(name, self._value(name), elem_type_of(self.type_of(name)))

    def _cast(self, name: str) -> Operand | None:
        """A whole number that is cast to a float."""
        node = self.integers.producer(name) if self.outside else self.integers.source(name)
        if node is None or op_of(node) != "Cast":
            return None
        limit = _LIMITS.get(attribute(node, "to") or 0, 0)
        captured = not self.outside and self.integers.is_outer(name)
        if captured and not self.integers.same_meaning(node, name):
            return None
        whole = node.input[0]
        elem_type = elem_type_of(self.type_of(whole))
        if not limit or elem_type not in WHOLE:
            return None
        return Operand(whole, self._value(whole), elem_type, limit)

    def _fixed(self, name: str) -> Operand | None:
        """A float that is fixed, and a whole number."""
        array = self._constant(name)
        if array is None or array.size != 1 or str(array.dtype) not in _FLOATS:
            return None
        number, limit = float(array.item()), _FLOATS[str(array.dtype)]
        if not abs(number) < limit or number != int(number):
            return None
        return Operand(name, Affine(int(number)), TensorProto.UNDEFINED, limit)

    def _value(self, name: str) -> Affine | None:
        if self.outside:
            found = self.integers.outside(name)
        else:
            found = self.integers.inside(name) or self.integers.wrapping(name)
        return None if found is None else found.single

    def _constant(self, name: str) -> npt.NDArray[Any] | None:
        if self.outside:
            return self.integers.site.constant(name)
        return self.integers.constant_inside(name)
