"""The findings of `inspect` as data: the JSON file holds just this."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from passes.reports.json_values import document
from passes.reports.report import Advice

#: The version of the JSON file: a field may be added within it, none is removed or renamed.
VERSION = 1
Outcome = Literal["rewrites", "refuses"]


@dataclass(frozen=True)
class Value:
    """A value of a body, or an outer one that it reads, and its type as in ONNX text: `?` for a
    dim, and for a type, that is unknown."""

    name: str
    type: str

    @property
    def described(self) -> str:
        """The type, of a slice with its axis and direction."""
        return self.type


@dataclass(frozen=True)
class Slice(Value):
    """A slice that an iteration reads or returns of a tensor, along `axis`; `reversed`: the last
    iteration has the first."""

    axis: int
    reversed: bool

    @property
    def described(self) -> str:
        """The type, with the axis and the direction."""
        return f"{self.type} (axis {self.axis}{', reversed' * self.reversed})"


@dataclass(frozen=True)
class Answer:
    """The answer of a rule about a loop or If: `note` describes the rewrite, `code` and
    `sentence` the refusal. A rule that has nothing to do gives none."""

    rule: str
    outcome: Outcome
    note: str = ""
    code: str = ""
    sentence: str = ""


@dataclass(frozen=True)
class Group:
    """Loops, or Ifs, that differ in names and weights at most.

    `pattern` matches all of `paths`; the names of values are those of the first, which is the one
    that the rules were asked about. `above` is the position of the group in whose bodies all of
    these are, -1 where there is none. `version` is that of the operator, `opset` that of the
    model or function. `trip_counts` are the different ones: a number, a symbolic dim, `dynamic`;
    `<= N` where a loop may end earlier; none of an If. `lengths`: a Scan-8 has sequence_lens.
    `nodes` are those in the bodies, at every depth; `invariant_nodes` compute the same in each
    iteration; `recurrences` are the carried values that depend on each other.
    `unreadable`: why the form of a loop is unknown, which callers of the function choose.
    """

    pattern: str
    paths: Sequence[str]
    above: int
    op: str
    version: int
    opset: int
    nodes: int
    captured: Sequence[Value]
    answers: Sequence[Answer]
    trip_counts: Sequence[str] = ()
    lengths: bool = False
    carried: Sequence[Value] = ()
    scanned: Sequence[Slice] = ()
    collected: Sequence[Slice] = ()
    recurrences: Sequence[Sequence[str]] = ()
    invariant_nodes: int = 0
    unreadable: str = ""

    @property
    def values(self) -> list[tuple[str, Sequence[Value]]]:
        """What its loops carry, scan and collect, each after its verb."""
        return [
            ("carries", self.carried),
            ("scans", self.scanned),
            ("collects", self.collected),
        ]


@dataclass(frozen=True)
class Inspection:
    """A model in numbers, and its loops and Ifs in groups.

    `nodes`, `loops`, `ifs` and `sequences`, the nodes that make one, are counted in bodies and
    functions, too; `loop_kinds` are the groups of loops. `external_bytes` are those of weights
    in other files. `notes` tell which parts were read as they are meant, not as they are written.
    `groups` are in the order of the model, each after the one above it; `left_out` are those that
    were not looked into. `advice` is what to do next, the most valuable first, and `next` its first
    command; empty where the model has no file.
    """

    schema_version: int
    file: str
    opset: int
    ir_version: int
    nodes: int
    loops: int
    loop_kinds: int
    ifs: int
    sequences: int
    functions: int
    external_bytes: int
    notes: Sequence[str] = ()
    groups: Sequence[Group] = ()
    left_out: int = 0
    next: str = ""
    advice: Sequence[Advice] = ()

    def to_json(self) -> str:
        """Return the inspection as JSON, of the schema `passes/builds/inspect-1.schema.json`."""
        return document(self)

    def to_text(self, *, verbose: bool = False, width: int = 100) -> str:
        """Return the inspection for people; `verbose` leaves nothing out."""
        from passes.inspection.text import text_of

        return text_of(self, verbose, width)
