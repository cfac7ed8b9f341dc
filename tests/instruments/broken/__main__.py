"""Damage real models, and see that every command answers with one sentence.

Use: `python -m tests.instruments.broken [--count N] [--seed S] [--seconds T] [--out FOLDER]`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.instruments.broken.run import run


def main() -> int:
    """Try mutants; exit code 1 where one is not refused as it should be."""
    parser = argparse.ArgumentParser(prog="python -m tests.instruments.broken", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="the first seed")
    parser.add_argument("--seconds", type=float, default=600.0, metavar="T")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where mutants are kept")
    parser.add_argument("--json", type=Path, metavar="FILE", help="for `tests.instruments.tally`")
    options = parser.parse_args()
    tally = run(options.seed, options.count, options.seconds, options.out)
    print("\n".join(tally.lines()))
    if options.json is not None:
        tally.save(options.json)
    return 1 if tally.faults else 0


if __name__ == "__main__":
    sys.exit(main())
