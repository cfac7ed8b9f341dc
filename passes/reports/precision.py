"""What a cast did to the precision of a model, and how far its outputs are off, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Kept:
    """Nodes that keep their type, all for one reason: its `code`, a `sentence`, the paths of the
    nodes, and how many there are of each operator."""

    code: str
    sentence: str
    paths: Sequence[str]
    operators: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Casting:
    """What a cast changed: the element types, as `float` and `float16`; how many values of the
    first type have the second one now, and how many there were; the bytes of the weights of the
    first type, before and after; how many Casts were written; what keeps its type, and why."""

    before: str
    after: str
    values: tuple[int, int] = (0, 0)
    weights: tuple[int, int] = (0, 0)
    casts: int = 0
    kept: Sequence[Kept] = ()

    @property
    def changes(self) -> bool:
        """True if a value or weight has another type."""
        return self.values[0] > 0 or self.weights[0] != self.weights[1]


@dataclass(frozen=True)
class OutputError:
    """How far an output is off at one length: `error` is its largest difference over its largest
    element before; the `worst` element, its value before (`was`) and after (`now`). `unsure` is the
    error of the original itself under other roundings. `length` is None where none is free."""

    output: str
    length: int | None
    error: float
    worst: tuple[int, ...] = ()
    was: float = 0.0
    now: float = 0.0
    unsure: float = 0.0


@dataclass(frozen=True)
class Differing:
    """Discrete results that differ: of an output of integers or bools, of the trip count of a loop
    or of the branch of an If; how many of how many."""

    what: str
    length: int | None
    different: int
    total: int


@dataclass(frozen=True)
class ValueRange:
    """The largest and the smallest nonzero magnitude that a value of the new type took, at the path
    of its node, and what the type holds; `overflows` and `underflows` count elements."""

    path: str
    largest: float
    smallest: float
    overflows: int = 0
    underflows: int = 0


@dataclass(frozen=True)
class Within:
    """The verdict on a model whose floats may differ: `bound` is the error that was allowed, None
    if any is reported. `inputs` describes what was fed, `executor` how it was executed; `loads` is
    empty if onnxruntime runs the outcome, else the reason. `grows` are outputs of which the error
    grows by more than twice for each eight times the length."""

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

    @property
    def error(self) -> float:
        """The largest error of all outputs and lengths."""
        return max((one.error for one in self.errors), default=0.0)
