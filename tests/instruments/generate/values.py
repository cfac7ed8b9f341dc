"""What the generator knows of a value: its name, type and shape, and whether it is rounded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, TypeProto, ValueInfoProto, helper

Dim = int | str
Shape = tuple[Dim, ...]

FLOAT, INT64, INT32, BOOL = (
    TensorProto.FLOAT,
    TensorProto.INT64,
    TensorProto.INT32,
    TensorProto.BOOL,
)
STRING = TensorProto.STRING
FLOATS = (FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)
INTS = (INT64, INT32)
#: Types that few operators take: what is left is to move them.
MOVED = (
    *(BOOL, STRING, TensorProto.INT8, TensorProto.INT16, TensorProto.UINT8),
    *(TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64, TensorProto.BFLOAT16),
)
#: By how often they are drawn.
DTYPES = (*(FLOAT,) * 12, *(INT64,) * 4, *FLOATS[1:], INT32, *MOVED)
#: Types that onnxruntime's Where takes.
SELECTED = (FLOAT, TensorProto.DOUBLE, *INTS, STRING, TensorProto.UINT8)
_NARROW = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
#: Types that are hardly computed with, and the opset that loops and branches take them from.
RARE = {
    TensorProto.BFLOAT16: 16,
    TensorProto.FLOAT8E4M3FN: 19,
    TensorProto.FLOAT8E4M3FNUZ: 19,
    TensorProto.FLOAT8E5M2: 19,
    TensorProto.FLOAT8E5M2FNUZ: 19,
    TensorProto.INT4: 21,
    TensorProto.UINT4: 21,
    TensorProto.FLOAT4E2M1: 23,
}
#: Those that executors neither take nor give as values of the main graph.
INNER = frozenset(RARE) - {TensorProto.BFLOAT16}
WHOLE = (TensorProto.INT4, TensorProto.UINT4)
_UNSIGNED = (
    *(TensorProto.UINT4, TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32),
    TensorProto.UINT64,
)


@dataclass(frozen=True)
class Value:
    """A tensor, or a sequence of tensors of this type.

    Dims of the same name have the same size wherever the value is seen. `rough`: its last bits
    may depend on the order of sums, so nothing may be decided by it. `data` is what a constant
    holds.
    """

    name: str
    elem: int
    shape: Shape
    sequence: bool = False
    rough: bool = False
    data: TensorProto | None = field(default=None, compare=False, repr=False)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def is_float(self) -> bool:
        return self.elem in FLOATS

    @property
    def narrow(self) -> bool:
        """Whether executors compute it in a wider type, and round where they like."""
        return self.elem in _NARROW

    def type(self) -> TypeProto:
        return type_of(self.elem, self.shape, self.sequence)

    def info(self, name: str = "") -> ValueInfoProto:
        """A declaration of this value, under another name perhaps."""
        return helper.make_value_info(name or self.name, self.type())

    def like(self, elem: int, shape: Sequence[Dim]) -> bool:
        """Whether this is a tensor of that type and shape."""
        return not self.sequence and self.elem == elem and self.shape == tuple(shape)


def type_of(elem: int, shape: Shape, sequence: bool = False) -> TypeProto:
    tensor = helper.make_tensor_type_proto(elem, shape)
    return helper.make_sequence_type_proto(tensor) if sequence else tensor


def array_of(elem: int, shape: Sequence[int], numbers: Sequence[int]) -> npt.NDArray[np.generic]:
    """An array of small values, quarters where it holds floats; `numbers` may be repeated."""
    size = int(np.prod(shape, dtype=np.int64))
    drawn = np.resize(np.array(numbers or [0]), size).reshape(shape)
    if elem == STRING:
        return np.array([f"s{one}" for one in drawn.flat], object).reshape(shape)
    if elem == BOOL:
        return np.asarray(drawn % 2 == 1)
    dtype = helper.tensor_dtype_to_np_dtype(elem)
    if elem in FLOATS or (elem in RARE and elem not in WHOLE):
        return np.asarray(drawn / 4).astype(dtype)
    return np.asarray(abs(drawn) if elem in _UNSIGNED else drawn).astype(dtype)
