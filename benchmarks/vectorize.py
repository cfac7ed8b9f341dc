"""Upgraded Scan-8 cells in onnxruntime, one thread: against the original, and against the batched
Scan that a person would write.

Where the aim is a multiple of the original's speed, the products of the cell alone are timed, too:
those of all rows that are not padding at once, which is as fast as they get. No model that computes
them takes less.
"""

from __future__ import annotations

import importlib.util
from itertools import product
from typing import Any

import numpy as np

import passes
from benchmarks.cells import CELLS, by_hand, products, scan_8
from benchmarks.harness import Aim, Bench, Side
from benchmarks.scan8 import session_run

_OPSET = 21
_BY_HAND = Aim(ratio=1.1)
_AIMED = 16
"""The batch at which an upgraded cell is to be several times as fast as its Scan-8."""


def measure(bench: Bench) -> None:
    """Every cell over batch sizes, widths, and full and ragged rows."""
    if importlib.util.find_spec("onnxruntime") is None:
        bench.note("onnxruntime is not installed")
        return
    widths, batches, steps = (
        ((4,), (_AIMED,), 5) if bench.quick else ((64, 256), (1, 4, 16, 64), 128)
    )
    for cell, width, batch, ragged in product(CELLS, widths, batches, (False, True)):
        _compare(bench, cell, width, batch, steps, ragged)


def _compare(bench: Bench, cell: str, width: int, batch: int, steps: int, ragged: bool) -> None:
    original = scan_8(cell, width, ragged=ragged)
    upgraded = passes.upgrade(original, opset=_OPSET, batch="auto", verify=False).model
    feeds = _feeds(CELLS[cell][0], batch, width, steps, ragged)
    repeat = 1 if bench.quick else max(1, 64 // (batch * width // 64))
    runs = {
        name: session_run(model, feeds, repeat)
        for name, model in (
            ("upgraded", upgraded),
            ("Scan-8", original),
            ("by hand", by_hand(cell, width, ragged=ragged)),
        )
    }
    case = f"{cell}-{width}, batch {batch}, {'ragged' if ragged else 'full'}"
    ours = Side("upgraded", runs["upgraded"])
    bench.compare(case, ours, Side("Scan-8", runs["Scan-8"]), aim=_aim(batch, ragged), runs=7)
    bench.compare(case, ours, Side("by hand", runs["by hand"]), aim=_BY_HAND, runs=7)
    if batch == _AIMED:
        rows = int(feeds["lens"].sum()) if ragged else batch * steps
        drawn = np.random.default_rng(2).standard_normal((2, rows, width)).astype(np.float32)
        alone = session_run(products(cell, width), {"x": drawn[0], "h": drawn[1]}, repeat)
        against = Side("Scan-8", runs["Scan-8"])
        bench.compare(case, Side("its products alone", alone), against, runs=7)


def _aim(batch: int, ragged: bool) -> Aim | None:
    """Never slower at batch 1; at 16 a fifth of the time, a third where rows are ragged."""
    if batch == 1:
        return Aim(ratio=1.0)
    return Aim(ratio=1 / 3 if ragged else 0.2) if batch == _AIMED else None


def _feeds(states: list[str], batch: int, width: int, steps: int, ragged: bool) -> dict[str, Any]:
    draw = np.random.default_rng(1)
    feeds = {f"{name}0": draw.standard_normal((batch, width)).astype(np.float32) for name in states}
    feeds["x"] = draw.standard_normal((batch, steps, width)).astype(np.float32)
    if ragged:  # from half of the steps to all of them
        feeds["lens"] = np.linspace(steps, steps // 2, batch).astype(np.int64)
    return feeds
