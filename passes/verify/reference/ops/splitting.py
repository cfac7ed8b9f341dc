"""Split: the parts must add up."""

from __future__ import annotations

import numpy as np

from passes.verify.executor import Array
from passes.verify.reference.registry import Call, implements


@implements("Split")
def split(call: Call, x: Array, parts: Array | None = None) -> tuple[Array, ...]:
    """Split-2 to -18: `split` as an attribute, from opset 13 on as an int64 input.

    Without it the parts are equal; from opset 18 on the last one may be smaller. Raises
    ValueError where the lengths are negative, too few, too many, or do not add up.
    """
    axis, count = call.get("axis", 0), call.get("num_outputs", call.outputs)
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis {axis} does not fit {x.ndim} dimensions")
    length = x.shape[axis]
    given = call.get("split") if parts is None else [int(part) for part in parts]
    lengths = _equal(call, length, count) if given is None else list(given)
    if min(lengths, default=0) < 0 or sum(lengths) != length or len(lengths) != call.outputs:
        raise ValueError(f"lengths {lengths} for {call.outputs} parts of {length}")
    return tuple(np.split(x, np.cumsum(lengths)[:-1], axis))


def _equal(call: Call, length: int, count: int) -> list[int]:
    if call.version < 18 and length % count:
        raise ValueError(f"{length} does not split into {count} equal parts")
    size = -(-length // count)
    return [max(0, min(size, length - size * place)) for place in range(count)]
