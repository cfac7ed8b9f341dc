"""Linear recurrences, optimized: onnxruntime, one thread, against the
original, and against the least that they need; their errors; and loops of a few iterations."""

from __future__ import annotations

import importlib.util
from statistics import geometric_mean

import numpy as np

import passes
from benchmarks.harness import Aim, Bench, Row, Side
from benchmarks.optimize import outputs_of, repeats
from benchmarks.scan8 import session_run
from benchmarks.suite_recurrences import Array, Recurrence, cases, exact, short_cases

_NOT_SLOWER = Aim(ratio=1.05)
_SHORT = Aim(ratio=1.02)
_LEAST = Aim(ratio=2)
_MORE_ERROR = 2
_ORIGINAL, _PLAIN, _FLOOR = "original", "--keep-order", "its floor"
_GAIN = 3.7


def measure(bench: Bench) -> None:
    """Every recurrence, then the geometric mean of the thirteen kinds, and the slowest one."""
    if importlib.util.find_spec("onnxruntime") is None:
        bench.note("onnxruntime is not installed")
        return
    kinds: dict[str, list[float]] = {}
    for case in cases(bench.quick):
        ratio = _compare(bench, case)
        if case.kind:
            kinds.setdefault(case.kind, []).append(ratio)
    means = {kind: geometric_mean(ratios) for kind, ratios in kinds.items()}
    mean, slowest = geometric_mean(means.values()), max(means, key=lambda kind: means[kind])
    gain = f"geometric mean of {len(means)} kinds, each that of its sizes: {1 / mean:.2f} times"
    bench.note(f"{gain} as quick, aim {_GAIN}; {slowest} the least, {1 / means[slowest]:.2f} times")
    for case in short_cases(bench.quick):
        _compare_short(bench, case)


def _compare_short(bench: Bench, case: Recurrence) -> None:
    """The rows of a loop of a few iterations: it gains little, and is to lose nothing."""
    regrouped, plain = (
        passes.optimize(case.original, keep_order=not regroup, verify=False).model
        for regroup in (True, False)
    )
    repeat = repeats(bench, case.original, case.feeds)
    mine = Side("optimize", session_run(regrouped, case.feeds, repeat))
    for name, model, aim in (
        (_ORIGINAL, case.original, _SHORT),
        (_PLAIN, plain, _NOT_SLOWER),
    ):
        other = Side(name, session_run(model, case.feeds, repeat))
        bench.compare(case.name, mine, other, aim=aim)


def _compare(bench: Bench, case: Recurrence) -> float:
    """The rows of a model; the ratio to the original."""
    ours = passes.optimize(case.original, verify=False).model
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
    floor = Side(_FLOOR, session_run(*case.floor, repeat))
    bench.compare(case.name, mine, floor, aim=_LEAST)
    assert ratio is not None
    return ratio


def _error(expected: list[Array], found: list[np.ndarray]) -> float:
    """The largest of the errors of the outputs, each the root of its mean square, relative."""
    return max(
        float(np.sqrt(np.mean((one - other) ** 2) / np.mean(one**2)))
        for one, other in zip(expected, found, strict=True)
    )
