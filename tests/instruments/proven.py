"""How many golden pairs are proven, by command and by why the others are not.

Use: `python -m tests.instruments.proven [PART OF A PATH]`.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from time import monotonic

import onnx

from passes.ir.model import Model
from passes.verify.prove.prover import Proof, prove

FOLDER = Path(__file__).parent.parent.parent / "golden_models"
_BUDGET = 4.0


def golden_pairs(part: str = "") -> list[Path]:
    """The models before, whose path has this part."""
    return [path for path in sorted(FOLDER.glob("*/*.before.onnxtxt")) if part in str(path)]


def proof_of(before: Path, budget: float = _BUDGET) -> Proof:
    """The proof of a golden pair, in so many seconds."""
    after = before.with_name(before.name.replace(".before.", ".after."))
    return prove(Model.load(onnx.load(before)), Model.load(onnx.load(after)), budget)


def main(part: str = "") -> None:
    """Print a line for each pair that is not proven, and the tables."""
    proven: Counter[str] = Counter()
    tried: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    begin = monotonic()
    for path in golden_pairs(part):
        proof = proof_of(path)
        tried[path.parent.name] += 1
        proven[path.parent.name] += proof.is_proven
        codes[f"{proof.verdict} {proof.code}".strip()] += 1
        if not proof.is_proven:
            name = path.name.removesuffix(".before.onnxtxt")
            print(f"{path.parent.name}/{name}: {proof.sentence()[:200]}")
    for command, count in tried.items():
        print(f"{command:<28}{proven[command]:>4} of {count}")
    for code, count in codes.most_common():
        print(f"{code:<28}{count:>4}")
    print(f"{proven.total()} of {tried.total()} in {monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main(*sys.argv[1:2])
