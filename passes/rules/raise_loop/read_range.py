"""The part of a tensor that all iterations read, and the proof that they stay inside it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from passes.analysis.bodies.iteration_reads import Read
from passes.analysis.integers.affine import ITERATION, Affine
from passes.analysis.integers.integers import Integers
from passes.analysis.trip_count.trip_count import TripCount
from passes.rule import Refused, Site


@dataclass(frozen=True)
class ReadRange:
    """The slices that all iterations read: from `first`, as many as there are iterations.

    `whole`: they are the whole tensor, of size `extent`. `guarded`: whether there are enough is
    checked at run time.
    """

    read: Read
    first: int
    extent: Affine
    whole: bool
    guarded: bool


def window_of(site: Site, integers: Integers, read: Read, trips: TripCount) -> ReadRange | None:
    """Prove that a read stays inside its tensor; None where its start is known only at run time,
    or where it is better left in the body.

    Raises:
        Refused: `negative-read` where an index may count from the end, `out-of-range` where
            the last iteration reads past the end, `may-exceed` where it may and would not fail.
    """
    # what is read behind a first row, as Concat (first, x[:-1]), has as many rows as x has some
    running = replace(integers, positive=trips.size)
    extent = running.size(read.tensor, read.axis)
    assert extent is not None
    first = read.base - (trips.size - 1) if read.backwards else read.base
    sizes = {atom for atom, _ in (extent + trips.size).terms}
    if any(atom.negative and atom not in sizes for atom, _ in read.base.terms):
        return None  # an offset known only at run time
    shown = f"{read.base} - i" if read.backwards else str(read.base + Affine.of(ITERATION))
    what = f"{read.tensor!r} is read at {shown} on axis {read.axis}, of size {extent}"
    left = extent - first - trips.size
    slack = trips.vanishes(left)
    refused: tuple[str, str] | None = None
    if first.least < 0:
        refused = (
            "negative-read",
            f"{what}; it is not proven that this is never negative in {trips.size} iterations, "
            "and a negative index counts from the end",
        )
    elif slack.most < 0 or (extent - first).most < 1:
        refused = (
            "out-of-range",
            f"{what}, in {trips.size} iterations: the last ones read past its end",
        )
    elif read.clamps and slack.least < 0:
        refused = (
            "may-exceed",
            f"{what}; it is not proven that {trips.size} iterations stay inside, and a Slice is "
            "empty outside where a Scan would fail",
        )
    if refused is not None:
        if read.may_stay:
            return None
        raise Refused(*refused, [site.path, read.tensor, *read.results])
    if first.number is None:
        return None
    whole = first.number == 0 and slack.number == 0
    return ReadRange(read, first.number, extent, whole, slack.least < 0)
