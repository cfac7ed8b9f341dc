"""Linear recurrences, optimized with `--allow-reassociation`: onnxruntime, one thread, against the
original, and against the products of matrices that the work in blocks needs; and their errors."""

from __future__ import annotations

import importlib.util
from statistics import geometric_mean

import numpy as np

import passes
from benchmarks.harness import Aim, Bench, Row, Side
from benchmarks.optimize import outputs_of, repeats
from benchmarks.scan8 import session_run
from benchmarks.suite_recurrences import Array, Recurrence, cases, exact

_NOT_SLOWER = Aim(ratio=1.05)
_PRODUCTS = Aim(ratio=2)
_MORE_ERROR = 2
_ORIGINAL, _FLOOR = "original", "its products"


def measure(bench: Bench) -> None:
    """Every recurrence, then the geometric means of the two kinds of states."""
    if importlib.util.find_spec("onnxruntime") is None:
        bench.note("onnxruntime is not installed")
        return
    kinds: dict[str, list[float]] = {"matrices": [], "elements": []}
    for case in cases(bench.quick):
        ratio = _compare(bench, case)
        kinds["matrices" if case.products else "elements"].append(ratio)
    for kind, ratios in kinds.items():
        mean = geometric_mean(ratios)
        bench.note(
            f"{kind}: geometric mean {mean:.2f}x of {len(ratios)} models, {1 / mean:.1f} times"
        )


def _compare(bench: Bench, case: Recurrence) -> float:
    """The rows of a model; the ratio to the original."""
    ours = passes.optimize(case.original, allow_reassociation=True, verify=False).model
    expected = exact(case)
    error, before = (_error(expected, outputs_of(one, case.feeds)) for one in (ours, case.original))
    more = error / before
    met = None if bench.quick else more <= _MORE_ERROR
    row = Row(
        case.name, f"error {error:.1e}", f"its error {before:.1e}", ratio=more,
        aim="" if bench.quick else f"<= {_MORE_ERROR}x", met=met,
    )  # fmt: skip
    bench.rows.append(row)
    repeat = repeats(bench, case.original, case.feeds)
    mine = Side("optimize", session_run(ours, case.feeds, repeat))
    original = Side(_ORIGINAL, session_run(case.original, case.feeds, repeat))
    ratio = bench.compare(case.name, mine, original, aim=_NOT_SLOWER).ratio
    if case.products is not None:
        floor = Side(_FLOOR, session_run(*case.products, repeat))
        bench.compare(case.name, mine, floor, aim=_PRODUCTS)
    assert ratio is not None
    return ratio


def _error(expected: list[Array], found: list[np.ndarray]) -> float:
    """The largest of the errors of the outputs, each the root of its mean square, relative."""
    return max(
        float(np.sqrt(np.mean((one - other) ** 2) / np.mean(one**2)))
        for one, other in zip(expected, found, strict=True)
    )
