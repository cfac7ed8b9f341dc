"""`python -m tests.soak [--models N] [--seed S] [--seconds T] [--jobs J] [--out FOLDER]
[--only PIPELINE ...]`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.soak.digests import digest, digest_elsewhere
from tests.soak.run import soak_in_parallel

#: Models whose outcomes are compared, byte for byte, with those of another process.
_SAMPLE = 5


def main() -> int:
    """Run the soak and print what it found; exit code 1 where there is a fault."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--models", type=int, default=1000, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="the first seed")
    parser.add_argument("--seconds", type=float, default=600.0, metavar="T")
    parser.add_argument("--jobs", type=int, default=1, metavar="J")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where faults are written")
    parser.add_argument("--only", nargs="*", default=[], metavar="PIPELINE")
    parser.add_argument("--digest", action="store_true", help="only hash what commands write")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.models)
    if options.digest:
        print(digest(seeds))
        return 0
    found = soak_in_parallel(
        options.seed,
        options.models,
        options.seconds,
        options.out,
        options.jobs,
        options.only,
    )
    sample = min(_SAMPLE, options.models)
    if digest(seeds[:sample]) != digest_elsewhere(options.seed, sample, 1):
        found.faults["bytes differ under another PYTHONHASHSEED"] = list(seeds[:sample])
    print("\n".join(found.lines()))
    return 1 if found.faults else 0


if __name__ == "__main__":
    sys.exit(main())
