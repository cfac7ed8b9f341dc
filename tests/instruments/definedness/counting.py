"""Counts what becomes of mutants, by kind: what each of several processes does."""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from functools import partial
from itertools import islice
from pathlib import Path
from time import monotonic

import onnx

from passes.verify.installed import executors
from tests.instruments.definedness.sources import exported, golden
from tests.instruments.definedness.trial import Tried, mutants, tried
from tests.instruments.definedness.veiled import veiled


def counts_of(asked: argparse.Namespace, job: int) -> Counter[tuple[str, str]]:
    """What becomes of the mutants of a job, by kind; those that are proven are printed."""
    warnings.simplefilter("ignore")
    sources = partial(exported, outcomes=asked.outcomes) if asked.exported else golden
    sources = veiled(sources) if asked.veiled else sources
    counts: Counter[tuple[str, str]] = Counter()
    end = monotonic() + asked.seconds
    with executors("both") as both:
        count = len(range(job, asked.count, asked.jobs))
        for mutant in islice(mutants(asked.seed + job, sources), count):
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
                _save(found, asked.save / f"{asked.seed + job}")
    return counts


def _save(found: Tried, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    number = len([*folder.glob("*.before.onnx")])
    onnx.save(found.mutant.equal, folder / f"{number}.before.onnx")
    onnx.save(found.mutant.model, folder / f"{number}.after.onnx")
