"""`python -m tests.instruments.definedness [--count N] [--seed S] [--exported]`."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from time import monotonic

import onnx

from passes.verify.installed import executors
from tests.instruments.definedness.sources import exported, golden
from tests.instruments.definedness.trial import Tried, mutants, tried
from tests.instruments.definedness.veiled import veiled


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what is proven, and a table by kind; 1 where something proven differs."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.instruments.definedness", description=__doc__
    )
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after these")
    parser.add_argument("--exported", action="store_true", help="outcomes of exporters' models")
    parser.add_argument(
        "--veiled", action="store_true", help="with operators that are not modelled"
    )
    parser.add_argument("--outcomes", type=Path, help="where these are, and are put once made")
    parser.add_argument("--save", type=Path, help="where to put proven pairs that differ")
    parser.add_argument("--quiet", action="store_true", help="print no proven pair that is equal")
    asked = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    sources = partial(exported, outcomes=asked.outcomes) if asked.exported else golden
    sources = veiled(sources) if asked.veiled else sources
    counts: Counter[tuple[str, str]] = Counter()
    end = monotonic() + asked.seconds
    with executors("both") as both:
        for mutant in islice(mutants(asked.seed, sources), asked.count):
            if monotonic() > end:
                break
            found = tried(mutant, both)
            counts[mutant.kind, found.executed] += 1
            if not found.proof.is_proven:
                continue
            counts[mutant.kind, f"{found.executed}, proven ({found.proof.scope.kind})"] += 1
            if found.failure or not asked.quiet:
                print(found.executed, found, flush=True)
            if found.is_false and asked.save:
                _save(found, asked.save)
    for kind in sorted({kind for kind, _ in counts}):
        print(f"{kind:<20}", {became: n for (k, became), n in counts.items() if k == kind})
    whole = Counter[str]()
    for (_, became), many in counts.items():
        whole[became] += many
    print("all", dict(whole))
    return int(any(became.startswith("differs, proven") for became in whole))


def _save(found: Tried, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    number = len([*folder.glob("*.before.onnx")])
    onnx.save(found.mutant.equal, folder / f"{number}.before.onnx")
    onnx.save(found.mutant.model, folder / f"{number}.after.onnx")


if __name__ == "__main__":
    sys.exit(main())
