"""Proving two models equal against executing them on drawn inputs, and what a proof costs as sizes
and trip counts grow."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import ModelProto, parser

import passes
from benchmarks.harness import Aim, Bench, Run, Side
from passes.ir.model import Model
from passes.verify import verification
from passes.verify.prove.prover import Proof, prove
from passes.verify.reference import ReferenceExecutor
from passes.verify.terms import Limits, Models, Terms

_GOLDEN = Path(__file__).parent.parent / "golden_models"
_SAMPLE = 30
_SECONDS = 20.0  # a proof, and an execution of a pair
_STEADY = Aim(ratio=1.5)
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
    """The golden pairs, then a loop of more and more iterations."""
    pairs = golden_pairs(3 if bench.quick else _SAMPLE)
    proofs: list[Proof] = []

    def proven() -> None:
        proofs.extend(proof_of(*pair) for pair in pairs)

    def executed() -> None:
        executor = ReferenceExecutor()
        terms = Terms([executor], exact=False, lenient=True, limits=Limits(budget=_SECONDS))
        for before, after in pairs:
            verification.verify(Models(before, after), terms)

    bench.compare(
        f"{len(pairs)} golden pairs",
        Side("proving", proven, len(pairs)),
        Side("executing, reference executor", executed, len(pairs)),
        runs=1,
    )
    bench.note(f"{sum(one.is_proven for one in proofs)} of {len(pairs)} golden pairs are proven")
    few = 10
    for steps in (1_000,) if bench.quick else (1_000, 1_000_000):
        bench.compare(
            f"a Scan of {steps:,} steps and its Loop",
            Side("proving", _gated(steps)),
            Side(f"proving {few} steps", _gated(few)),
            aim=_STEADY,
        )


def golden_pairs(count: int) -> list[tuple[ModelProto, ModelProto]]:
    """Models before and after, drawn evenly from the golden ones."""
    found = sorted(_GOLDEN.glob("*/*.before.onnxtxt"))
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
