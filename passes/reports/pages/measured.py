"""The page of a measurement: its table, and a plot of the time against the length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log10

from passes.reports.measured import Measured, seconds_text
from passes.reports.pages.writing import filled
from passes.reports.words import grouped

#: The plot in units of its own: its size, and the margins around the axes.
_WIDTH, _HEIGHT = 720, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 16, 16, 40


@dataclass(frozen=True)
class Curve:
    """The times of one model in one runtime: points of the plot, each with a text to show. A color
    is that of a model, a dash that of a runtime."""

    name: str
    color: int
    dash: int
    points: Sequence[tuple[float, float, str]]


@dataclass(frozen=True)
class Plot:
    """Curves over logarithmic axes, and the ticks of these: positions and texts."""

    width: int
    height: int
    curves: Sequence[Curve]
    across: Sequence[tuple[float, str]]
    up: Sequence[tuple[float, str]]
    length: str


def as_html(measured: Measured) -> str:
    """The page."""
    return filled("measured.html", {"page": measured, "plot": _plot(measured)})


def _plot(measured: Measured) -> Plot | None:
    """The plot, None if fewer than two lengths were measured."""
    rows = [row for row in measured.rows if row.sizes.get(measured.free)]
    times = [one.seconds for row in rows for one in row.timings if not one.failure]
    lengths = sorted({row.sizes[measured.free] for row in rows})
    if len(lengths) < 2 or not times:
        return None
    low, high = floor(log10(min(times))), floor(log10(max(times))) + 1

    def across(length: int) -> float:
        share = log10(length / lengths[0]) / log10(lengths[-1] / lengths[0])
        return round(_LEFT + share * (_WIDTH - _LEFT - _RIGHT), 1)

    def up(seconds: float) -> float:
        share = (log10(seconds) - low) / (high - low)
        return round(_HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM), 1)

    free = {measured.free: 0}
    alike = [row for row in rows if {**row.sizes, **free} == {**rows[0].sizes, **free}]
    curves: list[Curve] = []
    for dash, own in enumerate(grouped(alike, lambda row: (row.runtime, row.threads))):
        for number, file in enumerate(measured.files):
            points = [
                (across(row.sizes[measured.free]), up(one.seconds), seconds_text(one.seconds))
                for row in own
                for one in [row.timings[number]]
                if not one.failure
            ]
            where = f"{own[0].runtime}{', all threads' * (own[0].threads != 1)}"
            curves.append(Curve(f"{file}, {where}", number % 5, dash % 4, points))
    return Plot(
        _WIDTH,
        _HEIGHT,
        [curve for curve in curves if curve.points],
        [(across(length), f"{length}") for length in lengths],
        [(up(10.0**power), seconds_text(10.0**power)) for power in range(low, high + 1)],
        measured.free,
    )
