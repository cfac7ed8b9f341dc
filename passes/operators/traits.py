"""What a row of the table of operators holds, and how its text is read."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Self


class Word(StrEnum):
    """A word of a column, and its meaning; empty if it tells nothing."""

    meaning: str

    def __new__(cls, word: str, meaning: str = "") -> Self:
        """Make a word."""
        made = str.__new__(cls, word)
        made._value_, made.meaning = word, meaning
        return made


class Shape(Word):
    """The shape of the output."""

    ELEMENTWISE = "elementwise", "that of the first input; each element is computed from its own"
    BROADCAST = "broadcast", "what all inputs broadcast to; elementwise, too"
    KEPT = "kept", "that of the first input"
    REDUCED = "reduced", "that of the first input without some axes, or with 1 in their place"
    OTHER = "."


class Work(Word):
    """The cost of a node, per element of its output."""

    FREE = "free", "next to nothing"
    VIEW = "view", "nothing but other axes: the memory may be that of the input"
    FILL = "fill", "it writes much from little"
    MOVE = "move", "it copies, perhaps to another type"
    LIGHT = "light", "a few instructions, with the same bits however many elements there are"
    PRODUCT = "product", "sums of products, of which the second operand is shared by all rows"
    OTHER = "."


class Fails(Word):
    """The values of the right type and shape on which it may fail, or have an output of another
    size.

    `Traits.fixed` must be known in any case.
    """

    NEVER = "never", "on no values"
    STRINGS = "strings", "on those that are not numbers"
    INTEGERS = "integers", "on 0, and on negative exponents"
    INDICES = "indices", "on those that are out of bounds"
    EMPTY = "empty", "where a row has no element"
    NO_ROWS = "no-rows", "onnxruntime's process ends where the first input has no element"
    OPEN = ".", "on unknown values"


class Folds(Word):
    """The inputs for which all executors agree to the bit, so that it may be folded."""

    ANY = "any", "constants of any type"
    INTEGERS = "integers", "constants that are integers"
    FLOATS = "floats", "integers and floats: IEEE 754 defines the result, but for the bits of NaN"
    NEVER = ".", "none: executors may differ"


class Values(Word):
    """The relation of the output's elements to those of the inputs."""

    SIZES = "sizes", "they depend on sizes only: no element is read"
    EXACT = "exact", "moved, compared, summed or multiplied: small dyadic numbers are not rounded"
    ROUNDS = ".", "they may be rounded"


class Rounds(Word):
    """Where it rounds floats."""

    NEVER = "never", "it gives its operands, or a choice of them, to the last bit"
    ONCE = "once", "its result alone: no sum in it can cancel"
    INSIDE = ".", "it may add up, or round on the way"


#: All operands, however many there are.
EVERY = range(sys.maxsize)


@dataclass(frozen=True)
class Traits:
    """A row, which holds for all versions. Where nothing is known, the default, nothing may be
    relied on.

    The meaning of a column is told with its type, that of a word with the word. `fixed`: it may
    fail unless these are omitted or known. `indices` count elements, `axes` axes. `deciding`:
    besides whole numbers after the first input. Columns of positions name inputs, `counting`
    outputs. `channels` are pairs, as `0:-2,1:-1`: an input, and an axis that no sum runs along.
    """

    shape: Shape = Shape.OTHER
    work: Work = Work.OTHER
    fails: Fails = Fails.OPEN
    folds: Folds = Folds.NEVER
    values: Values = Values.ROUNDS
    rounds: Rounds = Rounds.INSIDE
    fixed: Annotated[Sequence[int], "inputs that have to be known: axes, sizes, lengths"] = ()
    moves: Annotated[Sequence[int], "inputs that it moves without computing"] = ()
    indices: Annotated[Sequence[int], "inputs that may count from the end of an axis"] = ()
    vectors: Annotated[Sequence[int], "inputs that are lists: tensors of one axis"] = ()
    deciding: Annotated[Sequence[int], "inputs that decide the size of an output"] = ()
    counting: Annotated[Sequence[int], "outputs that are sizes or positions, from 0 on"] = ()
    compares: Annotated[str, "the signs of the difference, of `<=>`, for which it is true"] = ""
    since: Annotated[int, "the first version that broadcasts"] = 1
    channels: Annotated[
        str, "inputs that may be weights, with the axis of their channels before transposition"
    ] = ""
    axes: Annotated[bool, "its `fixed` inputs may count from the end of the axes or an axis"] = (
        False
    )
    apart: Annotated[bool, "a row is reduced by itself"] = False
    commutes: Annotated[bool, "its two operands may change places: same bits, but of NaN"] = False
    along_axis: Annotated[
        int, "the version from which a row is along `axis`; before, it has all axes from there on"
    ] = 0
    pools: Annotated[bool, "it pools the elements of a window"] = False
    by_image: Annotated[
        bool, "it computes each image of its first input, [N, C, ...], by itself"
    ] = False
    logic: Annotated[bool, "it takes truth values"] = False
    wraps: Annotated[str, "what it takes or gives: `sequence` or `optional`"] = ""
    makes: Annotated[bool, "it makes a sequence of no other one"] = False
    draws: Annotated[bool, "it draws random numbers; Dropout, in training"] = False
    accumulates: Annotated[
        str, "how a state grows through it: by what is added, `+`, or by factors, too, `*`"
    ] = ""
    wide: Annotated[bool, "in half precision its result loses too much"] = False
    tensors: Annotated[bool, "its outputs are no sequences, optionals or maps"] = True

    def channel(self, position: int) -> int | None:
        """The axis of the channels of an input; None where it has none."""
        pairs = (pair.split(":") for pair in self.channels.split(",") if pair)
        return next((int(axis) for at, axis in pairs if int(at) == position), None)

    @property
    def by_element(self) -> bool:
        """True if each element of the output is computed from those at its place."""
        return self.shape in (Shape.ELEMENTWISE, Shape.BROADCAST)

    @property
    def only_moves(self) -> bool:
        """True if it only moves data, and computes nothing."""
        return self.work in (Work.FREE, Work.VIEW, Work.FILL, Work.MOVE)

    @property
    def hands_on(self) -> bool:
        """True if its output has the elements of its first input in order; the memory may be the
        same."""
        named = self.work is Work.FREE and self.shape is Shape.ELEMENTWISE
        return named or self.work is Work.VIEW

    @property
    def chooses(self) -> bool:
        """True if it gives its operands, or a choice of them, perhaps in another type."""
        return self.rounds is Rounds.NEVER or self.only_moves

    @property
    def stays_wide(self) -> bool:
        """True if it stays in float32 by default: it sums up along an axis, compares, or is
        marked."""
        sums = self.shape in (Shape.KEPT, Shape.REDUCED) and self.rounds is Rounds.INSIDE
        return sums or bool(self.compares) or self.wide


def rows(text: str) -> Mapping[str, Traits]:
    """The rows of a family of operators, by operator: six columns, and what else is to be told.

    Raises:
        ValueError: a column has no such word.
        TypeError: there is no such column.
    """
    return {line.split()[0]: _row(*line.split()[1:]) for line in text.strip().splitlines()[1:]}


def _row(
    shape: str, work: str, fails: str, folds: str, values: str, rounds: str, *besides: str
) -> Traits:
    return Traits(
        Shape(shape),
        Work(work),
        Fails(fails),
        Folds(folds),
        Values(values),
        Rounds(rounds),
        **dict(map(_named, besides)),
    )


def _named(word: str) -> tuple[str, Any]:
    """The name and the value of a column, from `moves=0,2`, `fixed=1-4` or `commutes`."""
    name, equals, value = word.partition("=")
    if not equals:
        return ("tensors", False) if word == "no-tensor" else (name, True)
    if name in ("accumulates", "channels", "compares", "wraps"):
        return name, value
    if name in ("since", "along_axis"):
        return name, int(value)
    if value == "all":
        return name, EVERY
    ends = [part.split("-") for part in value.split(",")]
    return name, tuple(n for end in ends for n in range(int(end[0]), int(end[-1]) + 1))
