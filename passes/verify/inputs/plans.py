"""Plans the cases of a model before any number is drawn, the most telling first.

A budget cuts the list at its end, so ordinary cases come before edges, and edges before more
of the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from passes.verify.inputs.arrays import Flags, IntStyle, Style

Kind = Literal["given", "natural", "ordinary", "edge", "special", "override", "invalid"]
Lengths = Literal["ragged", "with empty", "positive", "full", "empty", "too long", "negative"]
#: Sizes of the first, second, ... symbolic dim; distinct, so that swapped axes show.
ORDINARY = (3, 4, 2, 5, 6, 7)
LARGER = (7, 5, 9, 11, 8, 13)
#: Beyond what blocks and unrolling take at once, and no multiples of it.
NEAR_17 = (17, 19, 13, 23, 11, 29)
#: Whole blocks.
BLOCKS = (8, 16, 12, 24, 4, 32)
#: A size that no block holds; and one beyond 128, which with one of `NEAR_17` makes more than 2,000
#: elements: not where floats are carried through a loop, since errors and numbers grow in it.
_LONG, _LONGEST = 67, 131
#: Pairs of symbols that are tried equal, also both 0, and one as twice the other.
_PAIRS = 6
#: Numbers of the model beyond which sizes are tried, and the largest such number.
_THRESHOLDS, _LARGEST_THRESHOLD = 4, 64
#: How many sizes indices that count from the end are drawn for.
_AXES = ("one", "another", "a third")
#: Ranks tried where the rank is unknown.
RANKS = (2, 1, 3, 0)


@dataclass(frozen=True)
class Plan:
    """The plan of one case: sizes of the symbolic dims in order (repeated as needed) and values.

    `fixed` are sizes of single symbols: (place, size). `padding` puts NaN and infinities
    after the lengths. `skew` is a symbol on which one input disagrees, `apart` one that is 1
    although others are found to be equal to it. `items` is the length of sequences, `present`
    whether optionals hold a value. `flags` is how bools and the signs of floats are drawn, and
    whole numbers that may be masks. `from_end`: indices are negative. `turn` is the place of the
    plan among all.
    """

    kind: Kind
    label: str
    sizes: tuple[int, ...] = ORDINARY
    fixed: tuple[tuple[int, int], ...] = ()
    lengths: Lengths = "ragged"
    style: Style = "exact"
    padding: bool = False
    skew: str = ""
    apart: str = ""
    items: int = 2
    present: bool = True
    flags: Flags = "mixed"
    from_end: bool = False
    turn: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether a size is 0: such a plan takes no turn."""
        return 0 in (*self.sizes, *(size for _, size in self.fixed))

    def size(self, place: int) -> int:
        """The size of the symbol at `place` in the order of the signature."""
        return dict(self.fixed).get(place, self.sizes[place % len(self.sizes)])


@dataclass(frozen=True)
class Attempt:
    """A guess at what a declaration leaves open: which dims are equal, and what integers mean.

    `merge` makes dims equal: none, the unnamed ones at the same axis, or all. `ints` is the
    meaning of every int input, or None for a random one each. `rank` shifts the unknown ranks.
    `lengths` replaces ragged lengths, since onnxruntime rejects a length of 0. `whole`: ordinary
    floats are whole numbers, too.
    """

    merge: Literal["none", "axis", "all"] = "none"
    ints: IntStyle | None = "small"
    rank: int = 0
    lengths: Lengths = "ragged"
    whole: bool = False


ATTEMPTS = (
    Attempt(),
    Attempt(ints="below", lengths="positive"),
    Attempt("axis", "below", 1),
    Attempt("all", "below", lengths="positive"),
    Attempt("all", "small", 1),
    Attempt(ints="sizes"),
    Attempt(ints="zeros", rank=2),
    Attempt("all", "permutation"),
    Attempt("all", "sizes", 1),
    Attempt(ints="ones", rank=3),
    Attempt(whole=True),
    *(Attempt("all" if index % 2 else "none", None, index) for index in range(8)),
)


def plans(
    symbols: Sequence[str],
    *,
    lengths: bool,
    containers: bool,
    shared: Sequence[str] = (),
    tied: Sequence[str] = (),
    numbers: Sequence[float] = (),
    strings: bool = False,
    unnamed: Collection[str] = (),
    indices: bool = False,
    steady: bool = False,
) -> list[Plan]:
    """The plans for a model with these symbolic dims.

    `lengths`: an input holds lengths of another's rows; `containers`: one is a sequence or
    an optional; `shared` are symbols that several inputs must agree on, `tied` those whose sizes
    the original was found to need equal, unless they are 1; `numbers` are constants that the models
    mention, and `strings` whether they mention strings that an input may hold; `unnamed` are
    symbols of dims without a name, which may be fixed; `indices`: an input holds indices that may
    count from the end; `steady`: no floats are carried through a loop.
    """
    result = [
        Plan("ordinary", "exact values"),
        Plan("ordinary", "moderate values", style="moderate"),
    ]
    if numbers or strings:
        result.append(Plan("ordinary", "values the model mentions", BLOCKS, style="mentioned"))
    if lengths:
        result.append(Plan("ordinary", "lengths from 1", lengths="positive"))
        result.append(Plan("special", "NaN after the lengths", padding=True))
        result.append(Plan("special", "NaN in an empty row", lengths="with empty", padding=True))
    result += [
        Plan("special", "values of all magnitudes", NEAR_17, style="wide", lengths="positive"),
        Plan("special", "special values", style="special", lengths="positive"),
    ]
    if symbols:
        result += _sizes(symbols, unnamed)
        thresholds = sorted(
            {int(n) for n in numbers if 3 < n <= _LARGEST_THRESHOLD and n == int(n)}
        )
        for number in thresholds[-_THRESHOLDS:]:
            sizes = tuple(number + step for step in (1, 3, 2, 5, 4, 6))
            result.append(Plan("edge", f"sizes beyond {number}", sizes, style="moderate"))
    if lengths:
        result += _lengths()
    result += [Plan("invalid", f"sizes of {symbol} differ", skew=symbol) for symbol in shared]
    if containers:
        result.append(Plan("edge", "empty sequences", items=0))
        result.append(Plan("edge", "optionals without value", present=False, items=1))
    result += [
        Plan("special", "large values alike", style="large", flags="on"),
        Plan("special", "a small spread", LARGER, style="offset"),
        Plan("special", "small values alike", style="small", flags="off"),
        *(
            Plan("edge", label, from_end=True)
            for label in (f"indices from the end of {axis} axis" for axis in _AXES)
            if indices
        ),
        Plan(
            "ordinary",
            "decimals",
            style="decimal",
            lengths="positive",
            items=3,
            flags="on",
        ),
        Plan("special", "special values alone", LARGER, style="alone", flags="off"),
        Plan("ordinary", "exact values 3", lengths="positive", items=3, flags="rows"),
        Plan("special", "denormals", style="denormal"),
    ]
    if lengths:
        result.append(
            Plan("special", "special values, full", LARGER, lengths="full", style="special")
        )
    if containers:
        result.append(Plan("ordinary", "exact values 4", lengths="positive", items=4))
    if symbols:
        result += _long(symbols, steady=steady)
    result += [
        Plan("edge", f"{symbol} alone is 1", apart=symbol, flags="on") for symbol in tied[:_PAIRS]
    ]
    turns = itertools.accumulate(not plan.is_empty for plan in result)
    return [replace(plan, turn=turn - 1) for plan, turn in zip(result, turns, strict=True)]


def _long(symbols: Sequence[str], *, steady: bool) -> list[Plan]:
    """One symbol that is long, the others ordinary or 1."""
    size, others = (_LONGEST, NEAR_17) if steady else (_LONG, ORDINARY)
    alone = "" if len(symbols) == 1 else ", others 1"
    result = [
        Plan("edge", f"{symbol} = {size}{alone}", (1,), ((place, size),))
        for place, symbol in enumerate(symbols[:3])
    ]
    if len(symbols) > 1:
        result.append(Plan("edge", f"{symbols[0]} = {size}", others, ((0, size),)))
    return result


def _sizes(symbols: Sequence[str], unnamed: Collection[str]) -> list[Plan]:
    places = range(len(symbols))
    above_13 = NEAR_17[2:] if len(symbols) > 1 else NEAR_17[-1:]  # enough for every decimal
    return [
        Plan("ordinary", "larger sizes", LARGER, lengths="positive"),
        Plan("ordinary", "sizes above 13", above_13, style="decimal"),
        Plan("special", "values of all magnitudes, ragged", NEAR_17[1:], style="wide"),
        Plan("special", "all sizes 1", (1,), lengths="full", style="special"),
        *(Plan("edge", f"{symbols[position]} = 0", fixed=((position, 0),)) for position in places),
        Plan("ordinary", "larger sizes, decimals", LARGER[1:], style="decimal"),
        *(Plan("edge", f"{symbols[position]} = 1", fixed=((position, 1),)) for position in places),
        *(
            Plan(
                "special",
                f"{symbols[position]} = 0, special",
                (1,),
                fixed=((position, 0),),
                style="special",
            )
            for position in places
        ),
        Plan("edge", "all sizes 2", (2,), style="moderate"),
        *(
            [Plan("edge", "all sizes 0", (0,))]
            if len(symbols) > 1
            else [Plan("special", "all sizes 0, special", (0,), style="special")]
        ),
        *_pairs(symbols, unnamed),
    ]


def _pairs(symbols: Sequence[str], unnamed: Collection[str]) -> list[Plan]:
    """Sizes that are equal, or multiples, where a rewrite may take one for the other."""
    result = []
    for first, second in list(itertools.combinations(range(len(symbols)), 2))[:_PAIRS]:
        a, b = symbols[first], symbols[second]
        equal, half, twice = (
            ((first, 6), (second, 6)),
            ((first, 5), (second, 10)),
            ((first, 10), (second, 5)),
        )
        result += [
            Plan("edge", f"{a} = {b}", fixed=equal, style="moderate"),
            Plan("edge", f"{b} = 2 {a}", fixed=half),
            Plan("edge", f"{a} = 2 {b}", fixed=twice),
        ]
        # of two symbols, both are 0 where all sizes are
        if len(symbols) > 2 and a not in unnamed and b not in unnamed:
            result.append(Plan("edge", f"{a} = {b} = 0", fixed=((first, 0), (second, 0))))
    return result


def _lengths() -> list[Plan]:
    return [
        Plan("edge", "all lengths 0", lengths="empty", style="moderate"),
        Plan("edge", "all lengths full", lengths="full", style="moderate"),
        Plan("invalid", "a length too long", lengths="too long"),
        Plan("invalid", "a negative length", lengths="negative"),
        Plan("invalid", "a negative length, sizes 1", (1,), lengths="negative"),
        Plan("special", "NaN after the lengths, larger", LARGER, padding=True, style="moderate"),
    ]
