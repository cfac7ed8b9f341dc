"""`python -m tests.instruments.soak [--count N] [--seed S] [--seconds T] [--small] [--dealing K]
[--only PIPELINE ...] [--cast] [--odd KIND ...] [--verified N] [--hashed N]
[--out FOLDER] [--json FILE]`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.instruments.generate.odd import KINDS
from tests.instruments.soak.digests import digest, digest_elsewhere
from tests.instruments.soak.run import Plan, soak


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.instruments.soak", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="the first seed")
    parser.add_argument("--seconds", type=float, default=600.0, metavar="T")
    parser.add_argument("--small", action="store_true", help="models with few nodes")
    parser.add_argument("--dealing", type=int, default=0, metavar="K", help="commands per model")
    parser.add_argument("--only", nargs="*", default=[], metavar="PIPELINE")
    parser.add_argument("--cast", action="store_true", help="other element types, nothing else")
    parser.add_argument("--odd", nargs="*", choices=KINDS, help="what models have, see `odd.py`")
    parser.add_argument(
        "--verified", type=int, default=16, metavar="N", help="of N models one is verified, too"
    )
    parser.add_argument(
        "--hashed", type=int, default=5, metavar="N", help="models run under another hash seed"
    )
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where faults are written")
    parser.add_argument("--json", type=Path, metavar="FILE", help="for `tests.instruments.tally`")
    parser.add_argument("--digest", action="store_true", help="only hash what commands write")
    return parser.parse_args()


def main() -> int:
    """Run the soak and print what it found; exit code 1 where there is a fault."""
    options = _options()
    small, dealing = options.small, options.dealing
    seeds = range(options.seed, options.seed + options.count)
    if options.digest:
        print(digest(seeds, small=small, dealing=dealing))
        return 0
    plan = Plan(small, dealing, options.only, options.odd, options.verified, options.cast)
    found = soak(options.seed, options.count, options.seconds, plan, options.out)
    sample = seeds[: options.hashed]
    here = digest(sample, small=small, dealing=dealing)
    there = digest_elsewhere(options.seed, len(sample), 1, small=small, dealing=dealing)
    found.tally.count(
        "models under another hash seed",
        "alike"
        if here == there
        else "in a run \
with another hash",
        len(sample),
    )
    if here != there:
        found.tally.faults["bytes differ under another PYTHONHASHSEED"] = list(sample)
    print("\n".join(found.lines()))
    if options.json is not None:
        found.tally.save(options.json)
    return 1 if found.tally.faults else 0


if __name__ == "__main__":
    sys.exit(main())
