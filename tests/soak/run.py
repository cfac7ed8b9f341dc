"""The loop of the soak: seed after seed, until the models or the time are used up."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import onnx

from tests.generate.choices import Choices
from tests.generate.model import Generated, generate
from tests.generate.reduce import reduce
from tests.soak.examine import Examiner, Finding

_CHUNK = 20


@dataclass
class Soak:
    """What was found so far."""

    models: int = 0
    tally: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    faults: dict[str, list[int]] = field(default_factory=dict)
    written: list[Path] = field(default_factory=list)

    def add(self, other: Soak) -> None:
        """Take in what another process found."""
        self.models += other.models
        self.tally += other.tally
        self.refusals += other.refusals
        for key, seeds in other.faults.items():
            self.faults.setdefault(key, []).extend(seeds)
        self.written += other.written

    def lines(self) -> Iterator[str]:
        """The report."""
        yield f"{self.models} models, {len(self.faults)} kinds of faults"
        for title, counts in (("cases and verdicts", self.tally), ("refusals", self.refusals)):
            yield f"{title}:"
            yield from (f"  {count:7} {what}" for what, count in sorted(counts.items()))
        for key, seeds in self.faults.items():
            yield f"fault, {len(seeds)} times, seeds {seeds[:5]}: {key}"
        yield from (f"  {path}" for path in self.written)


def soak(
    seeds: Iterable[int],
    seconds: float,
    folder: Path | None,
    *,
    only: Sequence[str] = (),
    reducing: float = 20.0,
) -> Soak:
    """Examine the models of some seeds, for at most so many seconds.

    `only` are the pipelines to run, all by default. The first of each kind of fault is written
    into `folder`, made small for at most `reducing` seconds.
    """
    found = Soak()
    examiner = Examiner(only=only)
    deadline = time.monotonic() + seconds
    try:
        for seed in seeds:
            if time.monotonic() > deadline:
                break
            _one(seed, examiner, found, folder, reducing)
    finally:
        examiner.close()
    return found


def soak_in_parallel(
    first: int,
    models: int,
    seconds: float,
    folder: Path | None,
    jobs: int,
    only: Sequence[str] = (),
) -> Soak:
    """The same in several processes, a few seeds at a time."""
    if jobs == 1:
        return soak(range(first, first + models), seconds, folder, only=only)
    found = Soak()
    deadline = time.monotonic() + seconds
    end = first + models
    chunks = [range(at, min(at + _CHUNK, end)) for at in range(first, end, _CHUNK)]
    with ProcessPoolExecutor(jobs) as pool:
        futures = [pool.submit(_until, chunk, deadline, folder, only) for chunk in chunks]
        for future in futures:
            found.add(future.result())
    return found


def _until(seeds: range, deadline: float, folder: Path | None, only: Sequence[str]) -> Soak:
    return soak(seeds, deadline - time.monotonic(), folder, only=only)


def _one(seed: int, examiner: Examiner, found: Soak, folder: Path | None, reducing: float) -> None:
    generated = generate(Choices.of_seed(seed))
    outcome = examiner.examine(generated)
    found.models += 1
    found.tally += outcome.tally
    found.refusals += outcome.refusals
    for finding in {one.key: one for one in outcome.findings}.values():
        new = finding.key not in found.faults
        found.faults.setdefault(finding.key, []).append(seed)
        if new and folder is not None:
            found.written.append(_write(folder, seed, finding, generated, examiner, reducing))


def _write(
    folder: Path,
    seed: int,
    finding: Finding,
    generated: Generated,
    examiner: Examiner,
    reducing: float,
) -> Path:
    """The fault, with the smallest model that shows it."""
    # Written before it is made small, which may take long.
    name = f"{finding.command.pipeline}-{finding.kind}-{seed}.txt".replace(" ", "-")
    path = folder / name
    folder.mkdir(parents=True, exist_ok=True)

    def shows(candidate: Generated) -> bool:
        return _again(candidate, finding, examiner) is not None

    small = reduce(generated, shows, reducing) if shows(generated) else generated
    shown = _again(small, finding, examiner) or finding
    said = [f"seed: {seed}", f"command: {finding.command.label}", f"kind: {shown.kind}"]
    text = onnx.printer.to_text(small.model)
    roles = {name: role for name, role in small.roles.items() if role}
    said += [f"sentence: {shown.sentence}", f"roles: {roles}", f"decisions: {small.drawn}"]
    path.write_text("\n".join([*said, text, ""]), encoding="utf-8")
    onnx.save(small.model, path.with_suffix(".onnx"))
    return path


def _again(candidate: Generated, finding: Finding, examiner: Examiner) -> Finding | None:
    """The same finding on another model, if it is there."""
    verify = finding.kind in ("mismatch", "traceback")
    outcome = examiner.examine(candidate, [finding.command], verify=verify)
    for one in outcome.findings:
        if one.key == finding.key:
            return one
    return None
