"""What a cast did to the precision of a model, and how far its outputs are off, as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from passes.errors import count
from passes.loops.alike import pattern_of
from passes.reports.measured import megabytes
from passes.reports.words import grouped, places_of, scientific, without_names

#: Lines of a short report for outputs, and for values.
_FEW = 4
#: Why nodes or weights keep their type, by code.
CODES = {
    "accumulator": (
        "it is part of a state that sums or factors change: errors would grow with the length"
    ),
    "factor": (
        "it computes a factor of a state in each iteration: its errors would grow with the length"
    ),
    "decides": "it decides on a branch, an integer or a position: rounded operands might change it",
    "from-integers": (
        "it makes floats of integers, which half precision does not hold exactly: float16 from "
        "2,049 on, bfloat16 from 257 on"
    ),
    "range": "a constant or a weight is too large for the type, or so small that it becomes 0",
    "block-list": "it loses too many digits in half precision",
    "type": "the opset does not support the type here, or onnxruntime has no kernel for it",
    "kept": "--keep matches it",
    "surrounded": "all that it reads, or all that reads it, keeps the type",
    "signature": "it is an input of the model, which keeps its type (`--io cast` gives another)",
    "max-error": "in the other type the error would exceed --max-error",
    "may-not-fit": "not all of its numbers are proven to fit int32",
    "small": "it is too small for its type to matter",
    "few-elements": "the scales would take more than half of what is saved",
    "whole-numbers": "it holds whole numbers that float16 rounds",
    "no-product": "it is also read by a node that is neither a product nor a look-up",
    "overridable": "a caller may feed another value",
    "trained": "training changes it",
    "file-limit": "a model without external data takes less than 2 GiB",
}


@dataclass(frozen=True)
class Kept:
    """Nodes that keep their type, all for one reason: its `code`, a `sentence`, the paths of the
    nodes, and how many there are of each operator. Or weights that do, the paths of these, and how
    many nodes of each operator read them."""

    code: str
    sentence: str
    paths: Sequence[str]
    operators: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "operators", dict(self.operators))  # `asdict` copies no Counter

    @property
    def places(self) -> str:
        """The nodes by a pattern of their paths."""
        return places_of(self.paths)

    @property
    def listed(self) -> str:
        """The operators, with the number of each, the most frequent first."""
        counted = Counter(self.operators).most_common()
        return ", ".join(f"{number} {op}" if number > 1 else op for op, number in counted)


@dataclass(frozen=True)
class Casting:
    """What a cast changed: the element types, as `float32` and `float16`; how many values of the
    first type have the second one now, and how many there were; the bytes of the weights of the
    first type, before and after; how many Casts were written, or nodes DequantizeLinear for int8;
    what keeps its type, and why."""

    before: str
    after: str
    values: tuple[int, int] = (0, 0)
    weights: tuple[int, int] = (0, 0)
    casts: int = 0
    kept: Sequence[Kept] = ()

    @property
    def changes(self) -> bool:
        """True if a value or a weight has another type."""
        return self.values[0] > 0 or self.weights[0] != self.weights[1]

    @property
    def is_exact(self) -> bool:
        """True if whole numbers have another type, so that the outcome answers as the model."""
        return self.before == "int64"

    @property
    def folded(self) -> list[Kept]:
        """What keeps its type, reasons of one code that differ in names alone together, the most
        nodes first."""
        groups = grouped(self.kept, lambda one: (one.code, without_names(one.sentence)))
        folded = [
            Kept(
                group[0].code,
                pattern_of([one.sentence for one in group]),
                [path for one in group for path in one.paths],
                sum((Counter(one.operators) for one in group), Counter[str]()),
            )
            for group in groups
        ]
        return sorted(folded, key=lambda one: -len(one.paths))

    @property
    def summary(self) -> str:
        """What changed, in short."""
        parts = [f"{self.values[0]} of {self.values[1]} values in {self.after}"]
        stored = "" if any(self.values) else f" in {self.after}"
        before, after = map(megabytes, self.weights)
        parts = parts if any(self.values) else []
        parts += [f"weights {before} -> {after}{stored}"] if before != after else []
        node = "DequantizeLinear" if self.after == "int8" else "Cast"
        parts += [count(self.casts, node)] if self.casts else []
        return ", ".join(parts) or f"nothing in {self.after}"


@dataclass(frozen=True)
class OutputError:
    """How far an output is off at one length: `error` is its largest difference over its largest
    element before, or the difference itself if all of these are 0; the `worst` element, its value
    before (`was`) and after (`now`, None if it is not finite).

    `overflows` are elements that are finite before, and not after: `error` leaves them out.
    Elements that are not finite before have no error. `unsure` is the error of the original itself
    under other roundings: what is not above is none. `length` is None if none is free.
    """

    output: str
    length: int | None
    error: float
    worst: tuple[int, ...] = ()
    was: float = 0.0
    now: float | None = 0.0
    unsure: float = 0.0
    overflows: int = 0

    @property
    def counted(self) -> float:
        """The error, infinite if elements overflow, 0 if the original is as unsure."""
        if self.overflows:
            return inf
        return self.error if self.error > self.unsure else 0.0

    @property
    def element(self) -> str:
        """The worst element, with both values."""
        now = "not finite" if self.now is None else f"{self.now:.6g}"
        return f"{list(self.worst) if self.worst else 'the element'}: {now}, was {self.was:.6g}"

    def __str__(self) -> str:
        if self.overflows:
            return f"infinite{at(self.length)} (overflow in {count(self.overflows, 'element')})"
        return f"{scientific(self.error)}{at(self.length)}"


@dataclass(frozen=True)
class Differing:
    """Discrete results that differ: of an output of integers or bools, of the trip count of a loop
    or of the branch of an If; how many of how many, and how many under other roundings of the
    original (`unsure`)."""

    what: str
    length: int | None
    different: int
    total: int
    unsure: int = 0

    def __str__(self) -> str:
        unsure = f" ({self.unsure} under other roundings of the original)" if self.unsure else ""
        return f"{self.what}: {self.different} of {self.total} differ{at(self.length)}{unsure}"


@dataclass(frozen=True)
class ValueRange:
    """The largest and the smallest nonzero magnitude that a value of the new type took before it
    was rounded, at the path of its node; `overflows` and `underflows` count the elements that the
    type made infinite and zero."""

    path: str
    largest: float
    smallest: float
    overflows: int = 0
    underflows: int = 0

    def __str__(self) -> str:
        parts = [f"{scientific(self.smallest)} to {scientific(self.largest)}"]
        for what, number in (("overflow", self.overflows), ("underflow to 0", self.underflows)):
            parts += [f"{what} in {count(number, 'element')}"] if number else []
        return f"{self.path}: {', '.join(parts)}"


@dataclass(frozen=True)
class Within:
    """The verdict on a model whose floats may differ: `bound` is the error that was allowed, None
    if any is reported. `failure`: why there are no errors, empty if there are; `ran`: a case did.

    `inputs` describes what was fed, `executor` how it was executed; `loads` is empty if onnxruntime
    runs the outcome, else the reason. `ranges` are the values that overflow or become 0, the worst
    first, and the largest one. `grows` are outputs of which the error grows by more than twice for
    each eight times the length. `not_run` are lengths, with the reason; `raised` the nodes that are
    in float32 for the sake of the bound.
    """

    bound: float | None
    errors: Sequence[OutputError] = ()
    differing: Sequence[Differing] = ()
    ranges: Sequence[ValueRange] = ()
    grows: Sequence[str] = ()
    inputs: str = ""
    executor: str = ""
    loads: str = ""
    not_run: Sequence[str] = ()
    raised: Sequence[str] = ()
    failure: str = ""
    ran: bool = True

    @property
    def verdict(self) -> str:
        """`within`, `mismatch`, or `not-compared` if no case ran."""
        return "within" if self.holds else "mismatch" if self.ran else "not-compared"

    @property
    def error(self) -> float:
        """The largest error of all outputs and lengths; infinite if an element overflows, or there
        are no errors for a reason."""
        return inf if self.failure else max((one.counted for one in self.errors), default=0.0)

    @property
    def worst(self) -> OutputError | None:
        """The output and length of the largest error."""
        return max(self.errors, key=lambda one: (one.counted, one.error), default=None)

    @property
    def holds(self) -> bool:
        """True if the error is allowed."""
        return not self.failure and (self.bound is None or self.error <= self.bound)

    @property
    def sentence(self) -> str:
        """The verdict, with the worst element."""
        if self.failure:
            return self.failure
        allowed = "" if self.bound is None else f"within {self.bound:g}: "
        allowed = allowed if self.holds else f"not {allowed}"
        differ = count(len(self.differing), "discrete result")
        others = f"; {differ} not equal" if self.differing else ""
        worst = self.worst
        if worst is None:
            return f"{allowed}no output is of floats{others}"
        size = f"{scientific(worst.error)} of the largest element"
        size = "infinite" if worst.overflows else size
        where = f"{at(worst.length)} ({worst.element})"
        if 0 < worst.error <= worst.unsure and not worst.overflows:
            where += ", and other roundings of the original change as much"
        return f"{allowed}the error of {worst.output!r} is {size}{where}{others}"

    def lines(self, verbose: bool = False) -> Iterator[str]:
        """The verdict for people: a line for each output, with the error at each length."""
        yield self.sentence
        outputs = dict.fromkeys(one.output for one in self.errors)
        for name in outputs if verbose or len(outputs) <= _FEW else ():
            errors = [one for one in self.errors if one.output == name]
            grows = "; grows with the length" if name in self.grows else ""
            yield f"        {name}: {', '.join(map(str, errors))}{grows}"
        if len(outputs) > _FEW and not verbose and self.grows:
            yield f"        grows with the length: {', '.join(self.grows)}"
        yield from (f"        {one}" for one in self.details(verbose))

    def details(self, verbose: bool = False) -> Iterator[str]:
        """A sentence on each thing that differs, on values that the type does not hold, and on how
        it was executed."""
        yield from map(str, [*self.differing, *(self.ranges if verbose else self.ranges[:_FEW])])
        if self.inputs:
            yield f"{self.executor}; {self.inputs}"
        yield from (f"not run: {one}" for one in self.not_run)
        if self.loads:
            yield f"onnxruntime: {self.loads}"
        if self.raised:
            yield f"in float32 for the error: {', '.join(self.raised)}"


def at(length: int | None) -> str:
    """Where a length is."""
    return "" if length is None else f" at {length}"
