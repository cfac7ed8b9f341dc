"""Times things side by side: A B A B, medians, and the median of the ratios.

A time alone says as much about the machine as about the code, so every row compares two sides
that ran in turn, in the same run.
"""

from __future__ import annotations

import gc
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

Run = Callable[[], object]
_FEW = 2  # so few are asked for where each takes so long that a first run is as good as any


@dataclass(frozen=True)
class Side:
    """One of two things to time. Its time is divided by `units` (nodes, say) for the ratio."""

    label: str
    run: Run
    units: int = 1


@dataclass(frozen=True)
class Aim:
    """What a row should reach; what is None is not asked for."""

    ratio: float | None = None
    extra: float | None = None
    seconds: float | None = None

    def __str__(self) -> str:
        said = [] if self.ratio is None else [f"<= {self.ratio:g}x"]
        said += [] if self.extra is None else [f"<= {self.extra:g} s more"]
        return ", ".join(said if self.seconds is None else [*said, f"<= {self.seconds:g} s"])

    def met(self, ratio: float, extra: float, seconds: float) -> bool:
        """Whether a ratio, a difference in seconds and what this side takes reach it."""
        return (
            (self.ratio is None or ratio <= self.ratio)
            and (self.extra is None or extra <= self.extra)
            and (self.seconds is None or seconds <= self.seconds)
        )


@dataclass(frozen=True)
class Row:
    """Two sides, timed: medians in seconds, the median ratio and difference, and the aim.

    Where one could not be timed, only `failed` says why.
    """

    case: str
    subject: str
    against: str
    subject_seconds: float | None = None
    against_seconds: float | None = None
    ratio: float | None = None
    extra: float | None = None
    per_unit: float | None = None
    aim: str = ""
    met: bool | None = None
    runs: int = 0
    failed: str = ""


@dataclass
class Bench:
    """The rows of one benchmark. `quick` only shows that it works: one run, small, no aims."""

    name: str
    quick: bool = False
    clock: Callable[[], float] = time.perf_counter
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def compare(
        self, case: str, subject: Side, against: Side, *, aim: Aim | None = None, runs: int = 7
    ) -> Row:
        """Time two sides in turn; a run of each that does not count goes before more than two."""
        count = 1 if self.quick else runs
        aim = None if self.quick else aim
        pairs = self._pairs(subject.run, against.run, count)
        # per unit: two sizes of the same thing are compared by what one node costs
        ratios = [(one / subject.units) / (other / against.units) for one, other in pairs]
        ratio, extra = median(ratios), median(one - other for one, other in pairs)
        seconds = median(one for one, _ in pairs)
        row = Row(
            case=case,
            subject=subject.label,
            against=against.label,
            subject_seconds=seconds,
            against_seconds=median(other for _, other in pairs),
            ratio=ratio,
            extra=extra,
            per_unit=seconds / subject.units if subject.units > 1 else None,
            aim=str(aim or ""),
            met=None if aim is None else aim.met(ratio, extra, seconds),
            runs=count,
        )
        self.rows.append(row)
        print(f"{self.name}: {case}: {ratio:.2f}x", file=sys.stderr, flush=True)  # takes minutes
        return row

    def fail(self, case: str, subject: str, against: str, why: str) -> None:
        """A row that says why there is nothing to compare."""
        self.rows.append(Row(case, subject, against, failed=why))
        print(f"{self.name}: {case}: {against}: {why}", file=sys.stderr, flush=True)

    def note(self, sentence: str) -> None:
        """Say something below the table: what could not be measured, and why."""
        self.notes.append(sentence)

    def _pairs(self, subject: Run, against: Run, count: int) -> list[tuple[float, float]]:
        if count > _FEW:
            subject()
            against()
        return [(self._seconds(subject), self._seconds(against)) for _ in range(count)]

    def _seconds(self, run: Run) -> float:
        gc.collect()
        start = self.clock()
        run()
        return self.clock() - start

    def as_json(self) -> dict[str, Any]:
        """The benchmark as plain data."""
        return {"name": self.name, "rows": [asdict(row) for row in self.rows], "notes": self.notes}


def cpu_seconds() -> float:
    """What this process and those it waited for have computed so far: a clock for busy machines."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


_TITLES = ("case", "this", "that", "ratio", "more", "each", "aim", "")


def table(bench: Bench) -> str:
    """The rows of a benchmark for people."""
    lines = [_TITLES, *map(_cells, bench.rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_TITLES))]
    shown = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    return "\n".join([f"== {bench.name}", *shown, *(f"   {note}" for note in bench.notes)])


def _cells(row: Row) -> tuple[str, ...]:
    if row.ratio is None:
        return (row.case, row.subject, row.against, "", "", "", "", row.failed)
    return (
        row.case,
        f"{row.subject} {_shown(row.subject_seconds)}",
        f"{row.against} {_shown(row.against_seconds)}",
        f"{row.ratio:.2f}x",
        _shown(row.extra),
        "" if row.per_unit is None else _shown(row.per_unit),
        row.aim,
        {None: "", True: "met", False: "MISSED"}[row.met],
    )


def _shown(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if abs(seconds) >= 1:
        return f"{seconds:.2f} s"
    if abs(seconds) >= 1e-3:
        return f"{seconds * 1e3:.1f} ms"
    return f"{seconds * 1e6:.1f} us"
