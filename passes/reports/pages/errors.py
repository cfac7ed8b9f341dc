"""The errors of a cast as a table: a row for each output, a column for each length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from passes.reports.precision import OutputError, Within
from passes.reports.words import grouped, scientific


@dataclass(frozen=True)
class ErrorsOf:
    """The errors of an output: `cells` has a text for each length, `worst` is its worst element."""

    output: str
    cells: Sequence[str]
    worst: str
    grows: bool


@dataclass(frozen=True)
class Errors:
    """The errors of all outputs, and the lengths."""

    lengths: Sequence[str]
    rows: Sequence[ErrorsOf]


def errors_of(within: Within) -> Errors:
    """The table of a verdict."""
    lengths = list(dict.fromkeys(one.length for one in within.errors))
    rows = []
    for errors in grouped(within.errors, lambda one: one.output):
        worst = max(errors, key=lambda one: (one.counted, one.error))
        known = {one.length: _cell(one) for one in errors}
        cells = [known.get(length, "") for length in lengths]
        name = worst.output
        rows.append(ErrorsOf(name, cells, worst.element, name in within.grows))
    return Errors(["error" if one is None else f"at {one}" for one in lengths], rows)


def _cell(error: OutputError) -> str:
    return f"{error.overflows} overflow" if error.overflows else f"{scientific(error.error)}"
