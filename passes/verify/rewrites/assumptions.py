"""The assumptions that a user allows a rewrite to make, and the cases they exclude from
verification."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from passes.choices import Assumption
from passes.verify.executor import Value
from passes.verify.inputs.drawer import Case, Hint

VALID_INPUTS, NON_EMPTY = Assumption.valid_inputs, Assumption.non_empty
_INT32 = np.iinfo(np.int32)


def accepting(assumed: Sequence[str], hints: Mapping[str, Hint]) -> Callable[[Case], bool] | None:
    """Return a test of which cases count under these assumptions; None if all do."""
    if not assumed:
        return None
    lengths = [name for name, hint in hints.items() if hint.length_of is not None]

    def accepts(case: Case) -> bool:
        if VALID_INPUTS in assumed and case.kind == "invalid":
            return False
        if Assumption.int32_inputs in assumed and not all(map(_fits_int32, case.feeds.values())):
            return False
        return NON_EMPTY not in assumed or not _has_nothing(case.feeds, lengths)

    return accepts


def _fits_int32(value: Value) -> bool:
    """Return whether a value is no tensor of int64, or one whose elements fit int32."""
    if not isinstance(value, np.ndarray) or value.dtype != np.int64:
        return True
    return bool(np.all((_INT32.min <= value) & (value <= _INT32.max)))


def _has_nothing(feeds: Mapping[str, Value], lengths: Sequence[str]) -> bool:
    """Return whether some input is empty, or some length is 0."""
    arrays = {name: value for name, value in feeds.items() if isinstance(value, np.ndarray)}
    if any(value.size == 0 for value in arrays.values()):
        return True
    return any(name in arrays and not np.all(arrays[name]) for name in lengths)
