"""Proving two models equal against executing them on drawn inputs: golden pairs, and commands as a
user runs them; and what a proof costs as sizes and trip counts grow."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from statistics import median

import onnx
from onnx import ModelProto, parser

import passes
from benchmarks.harness import Aim, Bench, Row, Run, Side
from benchmarks.verification import Runner
from passes.ir.model import Model
from passes.reports.proof import Proof
from passes.reports.report import Size
from passes.verify import verification
from passes.verify.reference import ReferenceExecutor
from passes.verify.requirements import Limits, Models, Requirements
from tests.instruments import proven
from tests.instruments.proven import ExportedPair
from tests.instruments.proven import for_all_sizes as prove

Pair = tuple[ModelProto, ModelProto]
_SAMPLE = 30
_SECONDS = 20.0  # a proof, and an execution of a pair
_STEADY = Aim(ratio=1.5)
#: Of so many outcomes of exported models a proof takes no longer than verification, in the median,
#: and that of the one with the most nodes no longer than three times as long.
_OUTCOMES, _HALF, _LARGEST = 60, Aim(ratio=1), Aim(ratio=3)
#: A gated recurrence of 128 units; the @ is the number of steps.
_GATED = """<ir_version: 10, opset_import: ["" : 21]>
gated (float[@,128] x, float[128] h, float[128,128] w) => (float[128] last, float[@,128] y) {
    last, y = Scan <num_scan_inputs = 1, body = step (float[128] s, float[128] e)
        => (float[128] t, float[128] o) {
        p = MatMul (s, w) a = Add (p, e) g = Sigmoid (a) u = Tanh (a)
        k = Mul (g, s) t = Add (k, u) o = Identity (t)
    }> (h, x)
}"""


def measure(bench: Bench) -> None:
    """The golden pairs, outcomes of exported models, then a loop of more and more iterations."""
    pairs = golden_pairs(4 if bench.quick else _SAMPLE)
    equal = [pair for pair in pairs if proof_of(*pair).is_proven]
    for what, chosen in (("golden pairs", pairs), ("golden pairs that are proven", equal)):
        count = len(chosen)
        proving = Side("proving", lambda chosen=chosen: _prove(chosen), count)
        executing = Side("executing, reference executor", lambda c=chosen: _execute(c), count)
        bench.compare(f"{count} {what}", proving, executing, runs=2)
    _exported(bench, 2 if bench.quick else _OUTCOMES)
    few = 10
    for steps in (1_000,) if bench.quick else (1_000, 1_000_000):
        bench.compare(
            f"a Scan of {steps:,} steps and its Loop",
            Side("proving", _gated(steps)),
            Side(f"proving {few} steps", _gated(few)),
            aim=_STEADY,
        )


def _exported(bench: Bench, count: int) -> None:
    """Commands with `--prove`, each in a process of its own: the seconds of proofs against those of
    verification, as the reports tell them; the median of the ratios, then the largest outcome."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run, report = Runner(folder), folder / "report.json"

        def spent(pair: ExportedPair) -> tuple[float, float]:
            run(pair.command, pair.path, "--prove", "--json", str(report), "--force")
            seconds = json.loads(report.read_text(encoding="utf-8"))["spent"]
            return seconds["proving"], seconds["verifying"]

        every = proven.exported_pairs()
        drawn = random.Random(0).sample(every, len(every))
        pairs = list(islice((pair for pair in drawn if pair.sides()), count))
        spent(pairs[0])  # compiles what is imported
        each = [spent(pair) for pair in pairs]
        _row(bench, f"--prove, {count} outcomes of exported models", each, _HALF)
        largest = max({pair.path: None for pair in every}, key=_nodes)
        for pair in every:
            if pair.path == largest and pair.sides():
                _row(bench, f"--prove, {pair.name} (the most nodes)", [spent(pair)], _LARGEST)


def _nodes(path: Path) -> int:
    """The nodes of a model, bodies included."""
    return Size.of(Model.load(path)).nodes


def _row(bench: Bench, case: str, seconds: Sequence[tuple[float, float]], aim: Aim) -> None:
    """A row of the medians of proofs and verifications, and of their ratios."""
    proving, verifying = (median(side) for side in zip(*seconds, strict=True))
    ratio = median(one / other for one, other in seconds)
    extra = median(one - other for one, other in seconds)
    met = None if bench.quick else aim.met(ratio, extra, proving)
    sides = case, "proving", "verifying", proving, verifying, ratio, extra
    bench.rows.append(Row(*sides, aim=str(aim), met=met, runs=len(seconds)))


def _prove(pairs: Sequence[Pair]) -> None:
    for pair in pairs:
        proof_of(*pair)


def _execute(pairs: Sequence[Pair]) -> None:
    limits = Limits(budget=_SECONDS)
    terms = Requirements([ReferenceExecutor()], exact=False, lenient=True, limits=limits)
    for before, after in pairs:
        verification.verify(Models(before, after), terms)


def golden_pairs(count: int) -> list[Pair]:
    """Models before and after, drawn evenly from the golden ones."""
    found = proven.golden_pairs()
    chosen = [found[number * len(found) // count] for number in range(count)]
    return [
        (onnx.load(path), onnx.load(path.with_name(path.name.replace(".before.", ".after."))))
        for path in chosen
    ]


def proof_of(before: ModelProto, after: ModelProto) -> Proof:
    """The proof of a pair."""
    return prove(Model.load(before), Model.load(after), _SECONDS)


def _gated(steps: int) -> Run:
    """Proves a recurrence of so many steps equal to the Loop that `lower` writes."""
    before = parser.parse_model(_GATED.replace("@", str(steps)))
    after = passes.lower(before, verify=False).model

    def run() -> None:
        assert proof_of(before, after).is_proven

    return run
