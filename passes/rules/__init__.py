"""The rules about loops, one a file; importing this package registers them."""

from __future__ import annotations

from passes.rules import (
    batch_inputs,
    batch_outputs,
    count_loop,
    dissolve_map,
    fold_constants,
    hoist_constants,
    hoist_invariants,
    inline_if,
    inline_loop,
    lower_scan,
    peel,
    prune_if,
    prune_loop,
    raise_loop,
    recognize_cell,
    share_subexpressions,
    sink_weights,
    unroll,
    unroll_partial,
)

__all__ = [
    "batch_inputs",
    "batch_outputs",
    "count_loop",
    "dissolve_map",
    "fold_constants",
    "hoist_constants",
    "hoist_invariants",
    "inline_if",
    "inline_loop",
    "lower_scan",
    "peel",
    "prune_if",
    "prune_loop",
    "raise_loop",
    "recognize_cell",
    "share_subexpressions",
    "sink_weights",
    "unroll",
    "unroll_partial",
]
