"""The result of a measurement, as data, text and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import log
from statistics import median, quantiles

from passes.reports.json_values import document
from passes.reports.words import aligned, grouped

#: From this exponent on, time grows faster than the sizes do.
_FASTER = 1.25
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))


@dataclass(frozen=True)
class Timing:
    """The time of a model at one set of sizes in one runtime: `seconds` is the median of `calls`,
    `spread` half the distance between their quartiles, as a share of it. `loading` is in seconds,
    `memory` in bytes, 0 where the system does not report it. `failure`: why there is none."""

    seconds: float = 0.0
    spread: float = 0.0
    calls: int = 0
    loading: float = 0.0
    memory: int = 0
    failure: str = ""

    @classmethod
    def of(cls, calls: Sequence[float], loading: float, memory: int) -> Timing:
        """The summary of calls."""
        middle = median(calls)
        low, _, high = quantiles(calls, n=4) if len(calls) > 1 else (middle,) * 3
        return cls(middle, (high - low) / 2 / middle, len(calls), loading, memory)


@dataclass(frozen=True)
class Row:
    """All models at one set of sizes in one runtime, in the order of the models. `threads` is 0 for
    as many as the runtime likes; `iterations` are those of the loops of the first model's main
    graph, None where they are unknown."""

    runtime: str
    version: str
    threads: int
    sizes: Mapping[str, int]
    iterations: int | None
    timings: Sequence[Timing]

    def gain(self, model: int = -1) -> float | None:
        """The time of the first model over that of another one, None if one of both failed."""
        first, other = self.timings[0], self.timings[model]
        return None if first.failure or other.failure else first.seconds / other.seconds

    @property
    def runs_in(self) -> str:
        """The runtime with its version and threads."""
        threads = "1 thread" if self.threads == 1 else "all threads"
        return f"{self.runtime} {self.version}, {threads}"

    @property
    def where(self) -> str:
        """The runtime and the sizes."""
        sizes = ", ".join(f"{name} {size}" for name, size in self.sizes.items())
        threads = "" if self.threads == 1 else " with all threads"
        return f"{self.runtime}{threads}" + (f" at {sizes}" if sizes else "")


@dataclass(frozen=True)
class Measured:
    """Rows, and the models with their sizes in bytes, weights in other files included. `free` is
    the symbol that the trip count of a loop depends on, if any."""

    files: Sequence[str]
    bytes: Sequence[int]
    rows: Sequence[Row]
    free: str = ""

    @property
    def headline(self) -> Row | None:
        """The row at the largest sizes in the first runtime in which all models ran."""
        ran = [row for row in self.rows if not any(one.failure for one in row.timings)]
        first = [
            row for row in ran if (row.runtime, row.threads) == (ran[0].runtime, ran[0].threads)
        ]
        return max(first, key=lambda row: tuple(row.sizes.values()), default=None)

    @property
    def gain(self) -> float | None:
        """The gain of the headline, None if some model ran nowhere."""
        return self.headline.gain() if self.headline is not None else None

    @property
    def line(self) -> str:
        """One line: the time before and after, where, and the gain."""
        row = self.headline
        if row is None:
            failed = next(
                (one.failure for row in self.rows for one in row.timings if one.failure), ""
            )
            return f"not measured: {failed or 'no runtime is installed'}"
        first, last = row.timings[0], row.timings[-1]
        if len(row.timings) == 1:
            return f"{seconds_text(first.seconds)} in {row.where}"
        unit = _unit(max(first.seconds, last.seconds))
        times = f"{_number(first.seconds, unit)} -> {_number(last.seconds, unit)} {_UNITS[unit][1]}"
        return f"{times} in {row.where} ({_times(row.gain())})"

    @property
    def tables(self) -> list[tuple[str, Sequence[Row]]]:
        """The rows of each runtime with its threads, by a title."""
        return [(rows[0].runs_in, rows) for rows in grouped(self.rows, lambda row: row.runs_in)]

    def growth(self, runtime: str, threads: int, model: int) -> tuple[float, float] | None:
        """The seconds that one more step takes between the two largest lengths, and the exponent of
        the growth there; None if fewer than two lengths were measured."""
        found: dict[int, float] = {}
        for row in self.rows:
            own = (row.runtime, row.threads) == (runtime, threads) and self.free in row.sizes
            if own and not row.timings[model].failure:
                found[row.sizes[self.free]] = row.timings[model].seconds
        if len(found) < 2:
            return None
        (short, before), (long, after) = sorted(found.items())[-2:]
        return (after - before) / (long - short), log(after / before) / log(long / short)

    def to_json(self) -> str:
        """The measurement as JSON."""
        told = {"schema_version": 1, **asdict(self), "line": self.line, "gain": self.gain}
        return document(told)

    def to_text(self) -> str:
        """A table for each runtime, then what is true of all, and the line that sums up."""
        lines = []
        for title, own in self.tables:
            lines.append(title)
            if not all(one.failure for row in own for one in row.timings):
                lines += aligned([[*own[0].sizes, *self.files], *(self._cells(row) for row in own)])
            lines += self._below(own)
        sizes = [megabytes(size) for size in self.bytes]
        lines.append(f"file {' -> '.join(sizes)}")
        return "\n".join([*lines, self.line])

    def _cells(self, row: Row) -> list[str]:
        cells = [f"{size}" for size in row.sizes.values()]
        for number, one in enumerate(row.timings):
            gain = row.gain(number) if number else None
            shown = f"{seconds_text(one.seconds)} +-{one.spread:.0%}"
            shown += "" if gain is None else f" ({_times(gain)})"
            cells.append("failed" if one.failure else shown)
        return cells

    def _below(self, rows: Sequence[Row]) -> Iterator[str]:
        """Lines on failures, growth, loading and memory."""
        last = rows[-1].timings
        names = [f"{name}: " if len(self.files) > 1 else "" for name in self.files]
        for number, name in enumerate(names):
            failures = dict.fromkeys(row.timings[number].failure for row in rows)
            yield from (f"  {name}failed: {why}" for why in failures if why)
            grown = self.growth(rows[0].runtime, rows[0].threads, number)
            if grown is not None:
                step, exponent = grown
                how = f", as {self.free}^{exponent:.1f}" if exponent > _FASTER else ""
                yield f"  {name}{seconds_text(max(0.0, step))} for each step more{how}"
        if all(one.failure for one in last):
            return
        count = rows[-1].iterations
        if count:
            each = (seconds_text(one.seconds / count) if not one.failure else "-" for one in last)
            yield f"  an iteration takes {' -> '.join(each)}"
        loading = (seconds_text(one.loading) if not one.failure else "-" for one in last)
        memory = [megabytes(one.memory) if one.memory else "-" for one in last]
        known = any(one.memory for one in last)
        yield f"  loading {' -> '.join(loading)}" + f", memory {' -> '.join(memory)}" * known


def _unit(seconds: float) -> int:
    return next((place for place, (size, _) in enumerate(_UNITS) if seconds >= size), 2)


def _number(seconds: float, unit: int) -> str:
    """A time in a unit, with three digits."""
    value = seconds / _UNITS[unit][0]
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.3g}"


def seconds_text(seconds: float) -> str:
    """A time with three digits, in the unit that suits it."""
    unit = _unit(seconds)
    return f"{_number(seconds, unit)} {_UNITS[unit][1]}"


def megabytes(size: int) -> str:
    """A number of bytes with one digit after the point."""
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB"


def _times(gain: float | None) -> str:
    """A gain, with as many digits as help."""
    return "" if gain is None else f"{gain:.1f}x" if gain >= 1.95 else f"{gain:.2f}x"
