"""The nodes and values that keep int64: those whose numbers are not proven to fit int32."""

from __future__ import annotations

from onnx import TensorProto

from passes.analysis.integers.affine import LIMITS
from passes.operators.bounds import Interval
from passes.operators.comparisons import COMPARISONS
from passes.operators.traits import Values
from passes.precision.flow import OMITTED, Flow, Read, Step
from passes.precision.ranges import Ranges
from passes.precision.seeds import Reason, Seeds
from passes.types.value_types import is_static

_INT64 = LIMITS[TensorProto.INT64]
_INT32 = LIMITS[TensorProto.INT32]
_MAY_NOT_FIT = Reason("may-not-fit")
_INPUTS_MAY_NOT_FIT = Reason(
    "may-not-fit",
    "its numbers fit int32 if those of the int64 inputs do (--assume int32-inputs promises it)",
)
#: It fills in the sizes that it knows as int64, and finds two types.
_DETERMINED = Reason("type", "onnxruntime takes no int32 in a Range of what known sizes determine")
_FARTHEST = 20  # nodes between a Range and a size


def whole_number_seeds(flow: Flow, *, inputs_fit: bool) -> Seeds:
    """The nodes and values of a flow that keep int64 because their numbers may not fit int32.

    A node with operands of 32 bits computes the same if all that it reads and returns fits. Ends of
    Slices and trip counts that are too large, such as 2^63 - 1, are clamped: no axis is as long.
    `inputs_fit`: the numbers of int64 inputs are promised to fit.
    """
    found = _Fitting(flow, inputs_fit).seeds()
    fed = any(one.fed and one.elem_type == TensorProto.INT64 for one in flow.values)
    if inputs_fit or not fed or not (found.steps or found.values):
        return found
    still = _Fitting(flow, True).seeds()
    return Seeds(
        {one: still.steps.get(one, _INPUTS_MAY_NOT_FIT) for one in found.steps},
        {one: still.values.get(one, _INPUTS_MAY_NOT_FIT) for one in found.values},
    )


class _Fitting:
    def __init__(self, flow: Flow, inputs_fit: bool) -> None:
        self.flow = flow
        inputs = _INT32 if inputs_fit else _INT64
        self._determined: dict[int, bool] = {}
        self.ranges = Ranges(flow, inputs, self._clamp)

    def seeds(self) -> Seeds:
        """The nodes and values whose numbers may not fit."""
        values = [one.number for one in self.flow.values if not self._fits(one.number)]
        ranges = [step for step in self.flow.steps if step.op == "Range"]
        return Seeds(
            dict.fromkeys([one.number for one in ranges if self._loads_wide(one)], _DETERMINED)
            | {step.number: _MAY_NOT_FIT for step in self.flow.steps if not self._computes(step)},
            dict.fromkeys(values, _MAY_NOT_FIT),
        )

    def _loads_wide(self, step: Step) -> bool:
        """Return whether constants and sizes determine all that a Range reads."""
        fixed = all(self.flow.values[one].constant for one in step.inputs)
        return not fixed and all(self._is_determined(one, _FARTHEST) for one in step.inputs)

    def _is_determined(self, number: int, farthest: int) -> bool:
        """Return whether a value is computed of constants and known sizes alone."""
        if number == OMITTED or self.flow.values[number].constant:
            return True
        made = self.flow.producers[number]
        if made is None or farthest == 0:
            return False
        if number not in self._determined:
            step = self.flow.steps[made]
            if step.row.values is Values.SIZES:
                self._determined[number] = is_static(self.flow.dims(step.inputs[0]))
            else:
                read = [self._is_determined(one, farthest - 1) for one in step.inputs]
                self._determined[number] = all(read) and (
                    step.row.by_element or step.row.only_moves
                )
        return self._determined[number]

    def _fits(self, number: int) -> bool:
        whole = self.flow.elem_type(number) == TensorProto.INT64
        return not whole or _within(self.ranges.bounds[number], _INT32)

    def _computes(self, step: Step) -> bool:
        """Return whether a node computes the same with numbers of 32 bits."""
        if step.op == "Constant" or not all(map(self._fits, step.outputs)):
            return step.op == "Constant"
        unfit = [place for place, one in enumerate(step.inputs) if not self._fits(one)]
        if not all(self._may_clamp(step, place) for place in unfit):
            return False
        if step.op != "Range":
            return True
        start, end = (self.ranges.bounds[one] or _INT64 for one in step.inputs[:2])
        return _within((end[0] - start[1], end[1] - start[0]), _INT32)

    # -- clamped constants --------------------------------------------------------------------

    def _clamp(self, number: int, bounds: Interval) -> Interval:
        """The bounds of a constant, clamped if all that reads it does the same with that."""
        reads = self.flow.readers.get(number, ())
        if _within(bounds, _INT32) or not all(map(self._is_end, reads)):
            return bounds
        low, high = (min(max(end, _INT32[0]), _INT32[1]) for end in bounds)
        return low, high

    def _is_end(self, read: Read) -> bool:
        """Return whether a value is read as an end of a Slice, or as a trip count."""
        op = "" if read.step is None else self.flow.steps[read.step].op
        return op in ("Slice", "Loop") and (read.position == 0) == (op == "Loop")

    def _may_clamp(self, step: Step, place: int) -> bool:
        """Return whether a node does the same with a constant that is clamped, and stored so."""
        constant = self.ranges.array(self.flow.values[step.inputs[place]])
        if constant is None or step.op not in COMPARISONS:
            # else it is computed, or not stored once for each type
            return constant is not None and step.op == "Slice" and place > 0
        other = self.ranges.bounds[step.inputs[1 - place]]
        return _within(other, (_INT32[0] + 1, _INT32[1] - 1))


def _within(bounds: Interval | None, limits: Interval) -> bool:
    return bounds is not None and limits[0] <= bounds[0] and bounds[1] <= limits[1]
