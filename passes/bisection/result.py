"""The result of bisecting two models, as data and as text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

from onnx import ModelProto

from passes.verify.compare.verdicts import Failure
from passes.verify.executor import Value

#: Representable numbers beyond which their count tells nothing.
_FAR = 1e6


@dataclass(frozen=True)
class Spot:
    """A value where it is made: the path of its node, the iteration of each loop around it, and its
    name."""

    path: str
    iterations: Sequence[int]
    value: str

    def __str__(self) -> str:
        numbers = ", ".join(map(str, self.iterations))
        return self.path + (f", iteration {numbers}" if numbers else "")


@dataclass(frozen=True)
class Cut:
    """Both sides cut to what makes the values that differ, with the inputs that show it.
    `shown` names the executors in which they differ, `failure` is how."""

    before: ModelProto
    after: ModelProto
    feeds: Mapping[str, Value]
    shown: Sequence[str]
    failure: Failure | None = None

    @property
    def nodes(self) -> tuple[int, int]:
        """The number of nodes of both sides."""
        return len(self.before.graph.node), len(self.after.graph.node)


@dataclass(frozen=True)
class First:
    """The first values that differ: where they are made, and how they differ, in a sentence.

    `units`: by how many representable numbers, where they are finite floats, and how many are
    `allowed`. `because`: what is other in the node or its operands. `alone`: with the original's
    value in its place, the outputs agree. `cut` is None where it cannot be cut out.
    """

    before: Spot
    after: Spot
    sentence: str
    units: float | None
    allowed: float | None
    because: Sequence[str]
    alone: bool
    cut: Cut | None


@dataclass(frozen=True)
class Bisection:
    """The result of bisecting two models.

    `agree`: in all cases that were tried. `differ`: `case` and `executor` tell where, `first` and
    `last`, the last value that agrees, are None if that is unknown. `unknown`: see `reason`.
    """

    verdict: Literal["agree", "differ", "unknown"]
    reason: str
    executor: str = ""
    case: str = ""
    last: Spot | None = None
    first: First | None = None
    notes: Sequence[str] = ()

    def to_text(self) -> str:
        """Return the result as text for people."""
        if self.first is None:
            return "\n".join((self.reason, *(f"note: {note}" for note in self.notes)))
        first = self.first
        rows = [
            ("agree up to", str(self.last) if self.last is not None else "the inputs"),
            ("first to differ", self.text),
        ]
        if first.before.path != first.after.path:
            rows.append(("in the original", str(first.before)))
        rows += [("because", because) for because in first.because]
        if first.alone:
            rows.append(("nothing else", "with the original's value there, the outputs agree"))
        rows += [("note", note) for note in self.notes]
        return "\n".join(f"{name:<15}  {text}" for name, text in rows)

    @property
    def text(self) -> str:
        """The first difference, or why there is none, in a sentence."""
        first = self.first
        if first is None:
            return self.reason
        text = f"{first.after}: {first.sentence}"
        if first.units is None or first.allowed is None or first.units > _FAR:
            return text
        return f"{text}, {first.units:,.0f} ULP; {first.allowed:,.0f} allowed"

    def to_json(self) -> str:
        """All of it but the models and inputs."""
        bare = self.first and replace(self.first, cut=None)
        report = asdict(replace(self, first=bare))
        if self.first is not None and self.first.cut is not None:
            report["first"]["cut"] = {
                "nodes": self.first.cut.nodes,
                "shown": list(self.first.cut.shown),
            }
        return json.dumps(report, indent=2) + "\n"
