"""`python -m tests.instruments.definedness [--count N] [--seed S] [--jobs J] [--exported]`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from tests.instruments.definedness.counting import counts_of


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what is proven, and a table by kind; 1 where something proven differs."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.instruments.definedness", description=__doc__
    )
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="as many processes, of a seed each")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after these")
    parser.add_argument("--exported", action="store_true", help="outcomes of exporters' models")
    parser.add_argument(
        "--veiled", action="store_true", help="with operators that are not modelled"
    )
    parser.add_argument("--outcomes", type=Path, help="where these are, and are put once made")
    parser.add_argument("--save", type=Path, help="where to put proven pairs that differ")
    parser.add_argument("--quiet", action="store_true", help="print no proven pair that is equal")
    asked = parser.parse_args(arguments)
    counts: Counter[tuple[str, str]] = Counter()
    with ProcessPoolExecutor(asked.jobs, get_context("spawn")) as pool:
        for found in pool.map(partial(counts_of, asked), range(asked.jobs)):
            counts += found
    _print_table(counts)
    return int(any(became.startswith("differs, proven") for _, became in counts))


def _print_table(counts: Counter[tuple[str, str]]) -> None:
    for kind in sorted({kind for kind, _ in counts}):
        print(f"{kind:<20}", {became: n for (k, became), n in counts.items() if k == kind})
    whole = Counter[str]()
    for (_, became), many in counts.items():
        whole[became] += many
    print("all", dict(whole))


if __name__ == "__main__":
    sys.exit(main())
