"""Runs whose arithmetic is perturbed: how far roundings alone can move an output.

Monte Carlo arithmetic (Parker, 1997): every operator that rounds gets its float operands and
results moved by a few units in their last place, up or down at random. What then comes out
differs from the unperturbed answer as answers of other correct programs do: element by element,
by the operators on its own path, their dtypes and how their errors grow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from onnx import NodeProto, TensorProto, helper

from passes.ir.attributes import attribute, text
from passes.ir.operators import HOLDERS, op_of
from passes.operators.table import where
from passes.operators.traits import Rounds
from passes.types.dtypes import is_float
from passes.verify.executor import Value

#: Units in the last place by which a number moves, by the width of its dtype in bytes: wide ones
#: are summed up in other orders, narrow ones are rounded once.
_UNITS = {8: 8.0, 4: 8.0, 2: 1.0, 1: 1.0}
_EXACT = where(lambda row: row.rounds is Rounds.NEVER)
_ROUNDS_ONCE = where(lambda row: row.rounds is Rounds.ONCE)

#: What IEEE 754 defines to the last bit, so that its result on numbers that no input decides, sizes
#: and constants, is the same in every executor.
_ARITHMETIC = frozenset({"Add", "Cast", "CastLike", "Div", "Mul", "Reciprocal", "Sqrt", "Sub"})
_DEFINED = (_EXACT - HOLDERS) | _ARITHMETIC
#: What gives some numbers to the last bit, as 2.5 of a quarter: no rounding decides what becomes of
#: their halves.
_SCALES = frozenset({"Div", "Mul"})

#: What kernels approximate to within an absolute error, its values lying about 1.
_APPROXIMATED = frozenset(
    {"Erf", "GRU", "Gelu", "LSTM", "Mish", "RNN", "Sigmoid", "Softplus", "Swish", "Tanh"}
)
#: That error in units: onnxruntime's Sigmoid of -20 is off by a tenth of one.
_ABSOLUTE_UNITS = 0.25

#: What rounds positions, so that an element weighs a little more or less; the other operands are
#: sizes, or scales that decide them, and not moved.
_SAMPLES = frozenset({"Resize", "Upsample"})
#: What rounds the angles of its waves: a sum that cancels may be off by units of the largest one.
_WAVES = frozenset({"DFT", "STFT"})
#: What stands for all that comes of NaN and infinities, by the run: the documents leave it open
#: whether a weight of 0 makes NaN of them.
_NOT_FINITE = (0.0, np.nan, np.inf, -np.inf)

#: How many steps are drawn, for all arrays but the largest: to draw them anew takes longer than
#: most operators.
_DRAWN = 8191
#: Elements that are moved at a time.
_BLOCK = 1 << 16


def rounds_as(node: NodeProto) -> str:
    """The operator that rounds as a node does: a Resize to the nearest elements picks them."""
    op = op_of(node)
    return "Gather" if op in _SAMPLES and text(node, "mode", "nearest") == "nearest" else op


#: What computes in the type of its attribute `stash_type`, by the version that has it.
_STASHING = {"LayerNormalization": 17, "GroupNormalization": 21, "RMSNormalization": 23}
_STASHED = (TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE)


def computes_in(node: NodeProto, version: int) -> np.dtype[Any] | None:
    """Return the type that a node of the standard domain computes in, if an attribute chooses
    it."""
    if version < _STASHING.get(op_of(node), version + 1):
        return None
    kind = attribute(node, "stash_type", TensorProto.FLOAT)
    return helper.tensor_dtype_to_np_dtype(kind) if kind in _STASHED else None


def sums(op: str) -> bool:
    """Return whether an operator may add its operands up, or approximates a function of them."""
    return op not in _EXACT


def is_settled(op: str, reads: Iterable[bool]) -> bool:
    """Return whether the outputs of an operator follow from sizes and constants alone, rounded as
    IEEE 754 defines; `reads` tells the same of each input."""
    return op in ("Shape", "Size") or (op in _DEFINED and all(reads))


class Roundings:
    """Perturbs the arithmetic of one run."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._open = _NOT_FINITE[seed % len(_NOT_FINITE)]
        self._steps: dict[np.dtype[Any], np.ndarray[Any, Any]] = {}
        self._place = 0

    def of_operands(
        self, op: str, operands: Sequence[Value], within: np.dtype[Any] | None = None
    ) -> list[Value]:
        """The operands of an operator, which computes `within` a type; moved where it adds them
        up."""
        if op in _EXACT or op in _ROUNDS_ONCE:
            return list(operands)
        if op in _SAMPLES:
            return [self._blurred(operands[0]), *operands[1:]]
        if op in _WAVES:
            return [self.moved(operands[0]), *operands[1:]]
        return [self.moved(operand, within=within) for operand in operands]

    def of_results(
        self,
        op: str,
        operands: Sequence[Value],
        results: Sequence[Any],
        within: np.dtype[Any] | None = None,
    ) -> list[Any]:
        """The results of an operator; moved where it rounds them."""
        widens = op in ("Cast", "CastLike") and not _is_wider(operands[0], results[0])
        if op in _EXACT or widens:
            return list(results)
        if op in _WAVES and not np.isfinite(np.asarray(operands[0])).all():
            return [np.full_like(result, self._open) for result in results]
        if op in _SAMPLES:
            return [self._opened(result) for result in results]
        if op in _WAVES:
            return [self._blurred(result) for result in results]
        if op in _SCALES:
            return [_unless_exact(op, operands, results[0], self.moved(results[0]))]
        least = _ABSOLUTE_UNITS if op in _APPROXIMATED else 0.0
        return [self.moved(result, least, within) for result in results]

    def moved(self, value: Value, least: float = 0.0, within: np.dtype[Any] | None = None) -> Value:
        """A value with every finite float a few units larger or smaller, those of `within` where
        that is a narrower type, and by `least` of 1."""
        if isinstance(value, list):
            return [self.moved(item, least) for item in value]
        if value is None or not isinstance(value, np.ndarray):
            return value
        if value.dtype.kind == "c":
            parts = [self._floats(part, least) for part in (value.real, value.imag)]
            return np.asarray(parts[0] + 1j * parts[1], value.dtype)
        return self._floats(value, least, within) if is_float(value.dtype) else value

    def _blurred(self, value: Value) -> Value:
        """A value with every float moved by a few units of the largest."""
        if not isinstance(value, np.ndarray) or not is_float(value.dtype):
            return value
        finite = np.isfinite(value)
        largest = np.abs(value[finite]).max(initial=0)
        moved = np.asarray(value + largest * self._steps_like(value), value.dtype)
        return np.where(finite, moved, value)

    def _opened(self, value: Value) -> Value:
        """A value that is moved where it is finite, and what is open elsewhere."""
        if not isinstance(value, np.ndarray) or not is_float(value.dtype):
            return value
        other = np.asarray(self._open, value.dtype)
        return np.where(np.isfinite(value), self._floats(value, 0.0), other)

    def _floats(
        self, array: np.ndarray[Any, Any], least: float, within: np.dtype[Any] | None = None
    ) -> np.ndarray[Any, Any]:
        if array.size > _BLOCK:  # a large weight would be held several times
            flat = array.reshape(-1)
            result = np.empty_like(flat)
            for start in range(0, flat.size, _BLOCK):
                block = slice(start, start + _BLOCK)
                result[block] = self._floats(flat[block], least, within)
            return result.reshape(array.shape)
        steps = self._steps_like(array)
        if within is not None and _is_narrower(within, array.dtype):
            steps = self._steps_like(np.empty(array.shape, within)).astype(array.dtype)
        moved = np.asarray(array + array * steps)
        if least:
            part = array.dtype.type(least / _UNITS[array.dtype.itemsize])
            moved = np.asarray(moved + steps * part)
        finite = np.isfinite(moved)
        return moved if finite.all() else np.where(finite, moved, array)

    def _steps_like(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The relative steps of an array's elements: of those drawn, from where others ended."""
        dtype, size = array.dtype, array.size
        if dtype not in self._steps:
            step = float(ml_dtypes.finfo(dtype).eps) * _UNITS[dtype.itemsize]
            self._steps[dtype] = (step * self._rng.choice((-1.0, 1.0), _DRAWN)).astype(dtype)
        steps = self._steps[dtype]
        if self._place + size > _DRAWN:
            self._place = int(self._rng.integers(_DRAWN // 2))
        if self._place + size > _DRAWN:
            return np.asarray(self._rng.choice(steps, array.shape))
        self._place += size
        return steps[self._place - size : self._place].reshape(array.shape)


def _unless_exact(op: str, operands: Sequence[Value], result: Any, moved: Value) -> Any:
    """A product or quotient, moved where it was rounded, as far as doubles tell."""
    value = np.asarray(result)
    if not is_float(value.dtype) or value.dtype.itemsize > 4:
        return moved
    left, right, own = (np.asarray(part, np.float64) for part in (*operands, value))
    with np.errstate(all="ignore"):
        exact = own * right == left if op == "Div" else left * right == own
    return np.where(exact, value, np.asarray(moved))


def _is_wider(left: Value, right: Value) -> bool:
    """Return whether a float type has more bits in its fraction than another; other types have
    more."""
    dtypes = [np.asarray(value).dtype for value in (left, right)]
    if not is_float(dtypes[1]):
        return False
    return not is_float(dtypes[0]) or _is_narrower(dtypes[1], dtypes[0])


def _is_narrower(one: np.dtype[Any], other: np.dtype[Any]) -> bool:
    """Return whether a float type has fewer bits in its fraction than another."""
    return bool(ml_dtypes.finfo(one).nmant < ml_dtypes.finfo(other).nmant)
