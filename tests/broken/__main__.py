"""`python -m tests.broken [--count N] [--seed S] [--seconds T] [--out FOLDER]`."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.broken.trial import outcome, trial


def main() -> int:
    """Try mutants; exit code 1 where one is not refused as it should be."""
    parser = argparse.ArgumentParser(prog="python -m tests.broken", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="the first seed")
    parser.add_argument("--seconds", type=float, default=600.0, metavar="T")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where mutants are kept")
    options = parser.parse_args()
    tally, faults = run(options.seed, options.count, options.seconds, options.out)
    print("\n".join(f"{count:7} {what}" for what, count in sorted(tally.items())))
    for what, seeds in faults.items():
        print(f"fault, {len(seeds)} times, seeds {seeds[:5]}: {what}")
    return 1 if faults else 0


def run(
    first: int, count: int, seconds: float, kept: Path | None = None
) -> tuple[Counter[str], dict[str, list[int]]]:
    """Exit codes by kind of damage, and the seeds of each kind of fault."""
    import onnx_graphsurgeon  # noqa: F401  (children are forked: what they need is loaded once)

    import passes.api
    import passes.plugins

    passes.plugins.load_rules()
    tally: Counter[str] = Counter()
    faults: dict[str, list[int]] = {}
    deadline = time.monotonic() + seconds
    for seed in range(first, first + count):
        if time.monotonic() > deadline:
            break
        folder = Path(tempfile.mkdtemp(prefix="broken"))
        tried = trial(seed, folder)
        answer = outcome(tried, folder)
        kind = tried.label.partition(" ")[0]
        tally[f"{kind}: exit code {answer.get('code')}"] += 1
        if "fault" in answer:
            key = (
                f"{tried.label.rpartition(': ')[2]}: {re.sub(r'[0-9]+', '', str(answer['fault']))}"
            )
            faults.setdefault(key[:300], []).append(seed)
            if kept is not None and tried.path.is_file():
                kept.mkdir(parents=True, exist_ok=True)
                shutil.copy(tried.path, kept / f"{seed}{tried.path.suffix}")
        shutil.rmtree(folder, ignore_errors=True)
    return tally, faults


if __name__ == "__main__":
    sys.exit(main())
