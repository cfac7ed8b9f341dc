"""Runs that round after every node, as few processors' kernels in half precision do not; and what
values of half precision were in them.

A node of half precision is computed in float32 and rounded once, as processors do that add up
products in float32; numpy alone would add them up in float16, and slowly.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
from onnx import NodeProto, TensorProto

from passes.ir.operators import op_of
from passes.ir.places import Key
from passes.operators.element_types import signature
from passes.operators.table import traits_of
from passes.operators.traits import Rounds, Values
from passes.verify.executor import Array, Value
from passes.verify.reference import ReferenceExecutor
from passes.verify.reference.evaluator import Evaluator
from passes.verify.reference.kernels import kernel_for
from passes.verify.reference.machine import Frame, Kernel

#: How a run is executed, in the words of reports.
EXECUTOR = "rounded after every node, products summed in float32"
#: The types of half precision.
_HALVES = frozenset((np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)))
_HALF_TYPES = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
#: Elements of a weight that a body reads again and again, and that is widened once.
_LARGE = 4096


@dataclass
class Seen:
    """The values of half precision that a node computed, in all its runs: before they were rounded,
    the `largest` and the `smallest` nonzero magnitude; how many elements became infinite and zero
    by it, and the type. `cancelled`: how many times as large as the result its largest operand was,
    at most, where it is a sum; `sums`: it may add elements up."""

    dtype: np.dtype[Any]
    sums: bool
    largest: float = 0.0
    smallest: float = np.inf
    overflows: int = 0
    underflows: int = 0
    cancelled: float = 0.0

    def note(self, exact: Array, rounded: Array) -> None:
        """Note elements before and after they are rounded."""
        sizes = np.abs(exact)
        largest = sizes.max(initial=0)
        if not np.isfinite(largest):
            sizes = sizes[np.isfinite(sizes)]
            largest = sizes.max(initial=0)
        self.largest = max(self.largest, float(largest))
        if np.isinf(np.asarray(largest, self.dtype)):
            self.overflows += int(np.count_nonzero(np.isinf(rounded) & np.isfinite(exact)))
        smallest = sizes.min(initial=np.inf)
        if not smallest:
            smallest = sizes.min(initial=np.inf, where=sizes > 0)
        self.smallest = min(self.smallest, float(smallest))
        if np.isfinite(smallest) and not np.asarray(smallest, self.dtype):
            self.underflows += int(np.count_nonzero((rounded == 0) & (exact != 0)))

    def note_sum(self, operands: Sequence[Value], result: Array) -> None:
        """Note how much of the operands cancels."""
        largest = float(np.abs(result).max(initial=0))
        if 0 < largest < np.inf:
            most = max(float(np.abs(one).max(initial=0)) for one in operands if one is not None)
            if most < np.inf:
                self.cancelled = max(self.cancelled, most / largest)


@dataclass
class Rounding:
    """Makes kernels that round once; `seen` is what nodes of half precision computed, by their keys
    in the model that runs."""

    seen: dict[Key, Seen] = field(default_factory=dict)

    def executor(self) -> ReferenceExecutor:
        """The reference executor with these kernels."""
        return ReferenceExecutor(keep=1, kernels=self.kernel)

    def kernel(self, node: NodeProto, evaluator: Evaluator) -> Kernel:
        """The kernel of a node, rounding what it computes in half precision."""
        kernel, traits = kernel_for(node, evaluator), traits_of(node)
        called = evaluator.machine.library.find(node) is not None
        if called or traits.rounds is Rounds.NEVER:  # what a function calls is rounded by itself
            return kernel
        alike, widened = _alike(node, evaluator.versions), _Widened(evaluator.around is not None)
        key = functools.cache(
            lambda: evaluator.key_of(node)
        )  # once the evaluator knows where it is
        sums, casts = traits.rounds is Rounds.INSIDE, traits.only_moves and traits.by_element
        adds = sums and traits.by_element and traits.values is Values.EXACT

        def rounding(operands: list[Value], frame: Frame) -> Sequence[Any]:
            halves = {
                place: one.dtype
                for place, one in enumerate(operands)
                if type(one) is np.ndarray and one.dtype in _HALVES
            }
            found = [halves[one] for places in alike.values() for one in places if one in halves]
            given = widened.of(operands, halves) if found else operands
            results = list(kernel(given, frame))
            for position, exact in enumerate(results):
                places = alike.get(position, ()) if found else ()
                dtype = next((halves[one] for one in places if one in halves), exact.dtype)
                if dtype not in _HALVES:
                    continue
                result = results[position] = exact.astype(dtype, copy=False)
                place = key()
                if place is not None and exact.size:
                    seen = self.seen.setdefault(place, Seen(dtype, sums))
                    seen.note(np.asarray(operands[0] if casts else exact, np.float32), result)
                    if adds:
                        seen.note_sum(given, exact)
            return results

        return rounding


def _alike(node: NodeProto, versions: Mapping[str, int]) -> Mapping[int, Sequence[int]]:
    """The inputs of the type of each output that may be of half precision, by positions; empty if
    there is such an output whose type no input has: that of a Cast."""
    known = signature(op_of(node), versions.get("", 1))
    if known is None:
        return {}
    inputs = [(place, known.input(place)) for place, _ in enumerate(node.input)]
    outputs = [(at, known.output(at)) for at, name in enumerate(node.output) if name]
    found = {
        at: [place for place, one in inputs if one is not None and one.variable == made.variable]
        for at, made in outputs
        if made is not None and not made.valid.isdisjoint(_HALF_TYPES)
    }
    return found if all(found.values()) else {}


@dataclass
class _Widened:
    """Operands in float32; a weight that a body reads in each iteration is widened once."""

    again: bool
    _known: dict[int, tuple[Value, Array]] = field(default_factory=dict)

    def of(self, operands: Sequence[Value], halves: Iterable[int]) -> list[Value]:
        """The operands, those at the places of `halves` in float32."""
        given = list(operands)
        for place in halves:
            value = operands[place]
            assert isinstance(value, np.ndarray)
            if not self.again or value.size < _LARGE:
                given[place] = value.astype(np.float32)
                continue
            if place not in self._known or self._known[place][0] is not value:
                self._known[place] = value, value.astype(np.float32)
            given[place] = self._known[place][1]
        return given
