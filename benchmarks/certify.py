"""Proofs of this prover and of `onnxsim.certify`, side by side: golden pairs, which are right, and
mutants of golden outcomes that execution tells apart.

`PEERS_PYTHON` names a Python that has onnxsim and z3-solver; without it, this one is asked.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from statistics import median

import onnx
from onnx import ModelProto

from benchmarks.harness import Bench
from benchmarks.prove import Pair, golden_pairs, proof_of
from passes.ir.places import graphs_below
from passes.verify.reference import ReferenceExecutor
from tests.instruments.definedness.trial import mutants, tried

_EACH = 25
_MOST_NODES = 60
_GOLDEN = 500
#: Prints the status of each pair of a folder, and the seconds that it took.
_CERTIFY = """
import json, pathlib, sys, time
import onnx, z3
from onnxsim.certify import certify
found = []
for number in range(int(sys.argv[2])):
    pair = [onnx.load(pathlib.Path(sys.argv[1]) / f"{number}.{side}.onnx") for side in ("a", "b")]
    begin = time.perf_counter()
    try:
        report = certify(*pair, timeout_ms=10_000, total_timeout_ms=20_000)
        refuted = "refuted" in report.outputs.values()
        status = "proven" if report.ok else "refuted" if refuted else "skipped"
    except Exception as error:
        status = "crashed"
    found.append((status, time.perf_counter() - begin))
print(json.dumps(found))
"""


def measure(bench: Bench) -> None:
    """As many right pairs as wrong ones, with control flow and without."""
    warnings.simplefilter("ignore")
    each = 2 if bench.quick else _EACH
    for flows in (True, False):
        for right in (True, False):
            pairs = _right(flows, each) if right else list(islice(_wrong(flows), each))
            what = f"{len(pairs)} {'right' if right else 'wrong'} pairs"
            what += " with control flow" if flows else " without control flow"
            bench.note(f"{what}: passes: {_told(list(_ours(pairs, bench)))}")
            bench.note(f"{what}: onnxsim.certify: {_certified(pairs)}")


def _right(flows: bool, count: int) -> list[Pair]:
    """Golden pairs, drawn evenly from the small ones of which the two sides differ."""
    found = [
        pair
        for pair in golden_pairs(_GOLDEN)
        if pair[0] != pair[1]
        and max(len(one.graph.node) for one in pair) <= _MOST_NODES
        and _flows(pair) is flows
    ]
    return [found[number * len(found) // count] for number in range(min(count, len(found)))]


def _wrong(flows: bool) -> Iterator[Pair]:
    executors = [ReferenceExecutor()]
    for mutant in mutants(7, accept=lambda outcome: _flows((outcome,)) is flows):
        pair = mutant.equal, mutant.model
        if _flows(pair) is flows and tried(mutant, executors).failure is not None:
            yield pair


def _flows(models: Sequence[ModelProto]) -> bool:
    """Return whether one of these models has a body."""
    return any(len(list(graphs_below(one.graph))) > 1 for one in models)


def _ours(pairs: Sequence[Pair], bench: Bench) -> Iterator[tuple[str, float]]:
    for pair in pairs:
        begin = bench.clock()
        verdict = proof_of(*pair).verdict
        yield verdict, bench.clock() - begin


def _certified(pairs: Sequence[Pair]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        for number, sides in enumerate(pairs):
            for side, model in zip("ab", sides, strict=True):
                onnx.save(model, Path(folder) / f"{number}.{side}.onnx")
        python = os.environ.get("PEERS_PYTHON", sys.executable)
        done = subprocess.run(
            [python, "-c", _CERTIFY, folder, str(len(pairs))],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["failed"])[-1]
    return _told([(status, seconds) for status, seconds in json.loads(done.stdout)])


def _told(found: Sequence[tuple[str, float]]) -> str:
    counts = Counter(status for status, _ in found)
    told = ", ".join(f"{many} {status}" for status, many in counts.most_common())
    seconds = [one for _, one in found]
    return f"{told}; {sum(seconds):.1f} s, the median {1000 * median(seconds):.0f} ms"
