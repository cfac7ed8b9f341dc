"""Loop models, optimized: onnxruntime, one thread, against the original, what other optimizers make
of it, and what a person would write."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from statistics import geometric_mean

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto

import passes
from benchmarks.harness import Aim, Bench, Row, Side
from benchmarks.peers import PEERS, Failed, difference, optimized
from benchmarks.scan8 import session_run
from benchmarks.suite import Arrays, Case, cases

#: A model that was left as it is differs from itself by this much.
_NOISE = 0.05
_NOT_SLOWER = Aim(ratio=1 + _NOISE)
_BY_HAND = Aim(ratio=1.1)
_MEAN = 1 / 3
_SECONDS = 0.03  # a side runs about as long as this each time
_ORIGINAL, _HAND = "original", "by hand"


def measure(bench: Bench) -> None:
    """Every model of the suite against the others, then the geometric means."""
    if importlib.util.find_spec("onnxruntime") is None:
        bench.note("onnxruntime is not installed")
        return
    for case in cases(bench.quick):
        _compare(bench, case)
    _sum_up(bench)


def _compare(bench: Bench, case: Case) -> None:
    """The rows of a model; none is timed whose outputs are not those of the original."""
    peers = () if bench.quick and bench.rows else tuple(PEERS)  # to see that they run, one will do
    expected = outputs_of(case.original, case.feeds)
    ours = passes.optimize(case.original, opset=case.opset, verify=False).model
    if (off := difference(expected, outputs_of(ours, case.feeds))) is not None:
        bench.fail(case.name, "optimize", _ORIGINAL, f"WRONG: {off}")
        return
    repeat = repeats(bench, case.original, case.feeds)
    mine = Side("optimize", session_run(ours, case.feeds, repeat))

    def against(name: str, model: ModelProto, aim: Aim | None) -> None:
        other = Side(name, session_run(model, case.feeds, repeat))
        bench.compare(case.name, mine, other, aim=aim, runs=7)

    against(_ORIGINAL, case.original, _NOT_SLOWER)
    for peer in peers:
        try:
            made = optimized(peer, case.original, case.feeds, expected)
        except Failed as failed:
            bench.fail(case.name, "optimize", peer, str(failed))
        else:
            against(peer, made, _NOT_SLOWER)
    for name, model in {_HAND: case.by_hand, **case.others}.items():
        if (off := difference(expected, outputs_of(model, case.feeds))) is not None:
            bench.fail(case.name, "optimize", name, f"WRONG: {off}")
        else:
            against(name, model, _BY_HAND if name == _HAND else None)


def outputs_of(model: ModelProto, feeds: Arrays) -> list[NDArray[np.generic]]:
    """What onnxruntime computes."""
    found: list[NDArray[np.generic]] = []
    session_run(model, feeds, 1, found)()
    return found


def repeats(bench: Bench, model: ModelProto, feeds: Arrays) -> int:
    """How often a model runs in one go."""
    if bench.quick:
        return 1
    run = session_run(model, feeds, 1)
    run()
    start = bench.clock()
    run()
    return max(1, math.ceil(_SECONDS / max(1e-6, bench.clock() - start)))


def _sum_up(bench: Bench) -> None:
    """The geometric mean of each comparison, and on how many models the aim was missed."""
    for name in (_ORIGINAL, *PEERS, _HAND):
        rows = [row for row in bench.rows if row.against == name]
        timed = [row for row in rows if row.ratio is not None]
        bench.note(_mean(name, timed, len(rows) - len(timed), bench.quick))


def _mean(name: str, rows: Sequence[Row], failed: int, quick: bool) -> str:
    said = f"{name}: " + (f"fails on {failed} models" if failed else "")
    if not rows:
        return said
    mean = geometric_mean(row.ratio for row in rows if row.ratio is not None)
    told = [f"{name}: geometric mean {mean:.2f}x of {len(rows)} models"]
    if name == _ORIGINAL and not quick:
        told.append(f"aim <= {_MEAN:.2f}x, {'met' if mean <= _MEAN else 'MISSED'}")
    if missed := [row.case for row in rows if row.met is False]:
        told.append(f"missed on {', '.join(missed)}")
    if failed:
        told.append(f"fails on {failed}")
    return "; ".join(told)
