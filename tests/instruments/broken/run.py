"""The loop over mutants, and what is counted of each."""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.instruments.broken.trial import LIMITS, Trial, answer, judged, trial, warm
from tests.instruments.forked import forked
from tests.instruments.tally import Tally

_CODE = re.compile(r"\[([a-z0-9-]+)\]")


def run(first: int, count: int, seconds: float, kept: Path | None = None) -> Tally:
    """Try the mutants of `count` seeds, for at most so many seconds, each in a child.

    The mutants that show a fault go into the folder `kept`.
    """
    warm()
    tally = Tally()
    deadline = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="broken") as scratch:

        def trials() -> Iterator[Trial]:
            for seed in range(first, first + count):
                if time.monotonic() < deadline:
                    yield trial(seed, Path(scratch) / str(seed))

        for tried, said in forked(trials(), answer, LIMITS):
            _count(tally, tried, judged(tried, said), kept)
            shutil.rmtree(tried.folder, ignore_errors=True)
    tried_ = tally.number("mutants by exit code")
    tally.runs = [f"broken input: seeds from {first}, {tried_} of them"]
    return tally


def _count(tally: Tally, tried: Trial, said: dict[str, Any], kept: Path | None) -> None:
    tally.count("mutants by exit code", f"{tried.kind}: exit code {said.get('code')}")
    tally.count("mutants by command", tried.command)
    for damage in tried.damage.split("+"):
        tally.count("mutants by damage", f"{tried.kind} {damage}")
    if code := _CODE.search(str(said.get("sentence"))) if said.get("code") == 3 else None:
        tally.count("refusals", code[1])
    if "fault" in said:
        kind = f"{tried.command}: {re.sub(r'[0-9]+', '', str(said['fault']))}"[:300]
        tally.faults.setdefault(kind, []).append(tried.seed)
        if kept is not None and tried.path.is_file():
            kept.mkdir(parents=True, exist_ok=True)
            shutil.copy(tried.path, kept / f"{tried.seed}{tried.path.suffix}")
