"""`python -m tests.instruments.definedness [--count N] [--seed S]`."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from itertools import islice

from passes.verify.installed import executors
from tests.instruments.definedness.trial import mutants, tried


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what is proven, and a table by kind; 1 where something proven differs."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.instruments.definedness", description=__doc__
    )
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    counts: Counter[tuple[str, str]] = Counter()
    with executors("both") as both:
        for mutant in islice(mutants(asked.seed), asked.count):
            found = tried(mutant, both)
            wrong = "differs" if found.differs else "equal in execution"
            if found.proof.is_proven and found.differs and not found.is_false:
                wrong = "differs as the verdict names"
            counts[mutant.kind, wrong] += 1
            if found.proof.is_proven:
                counts[mutant.kind, f"{wrong}, proven"] += 1
                print(wrong, found, flush=True)
    for kind in sorted({kind for kind, _ in counts}):
        print(f"{kind:<20}", {became: n for (k, became), n in counts.items() if k == kind})
    whole = Counter[str]()
    for (_, became), many in counts.items():
        whole[became] += many
    print("all", dict(whole))
    return int(whole["differs, proven"] > 0)


if __name__ == "__main__":
    sys.exit(main())
