"""Which nodes have to compute in float32 for the outcome of a cast to be within an error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from onnx import ModelProto

from passes.ir.model import Model
from passes.reports.precision import at
from passes.reports.words import scientific
from passes.verify.within.judging import Judged, Judgement

#: Writes the cast anew, with the nodes at some paths, those of the model before it, in float32.
Recast = Callable[[Sequence[str]], ModelProto]
#: How many times as large as its result an operand of a sum is at least, if the sum cancels.
_CANCELS = 4.0
#: What is left of an error at most if it falls.
_LESS = 0.98
#: Nodes that are tried one by one, and the share of the time for that.
_MOST, _SHARE = 48, 0.6


@dataclass(frozen=True)
class Raised:
    """The nodes that are raised to float32, by path, each with the reason and the effect; empty if
    that does not help, and `why` not."""

    nodes: Mapping[str, str]
    why: str = ""


@dataclass
class Search:
    """Finds nodes to raise until no error is above `bound`: those that overflow, then sums that
    cancel, with the nodes that compute their operands, then other sums, then the rest, each kept if
    the error falls. If that is not enough, as many of them as are."""

    judged: Judged
    before: Model
    recast: Recast
    bound: float
    budget: float
    _raised: dict[str, str] = field(default_factory=dict)
    _tried: set[tuple[str, ...]] = field(default_factory=set)
    _least: tuple[int, float] = (sys.maxsize, inf)  # of outcomes that have values of half precision

    def run(self) -> Raised:
        """Find them."""
        started, best = time.monotonic(), self.judged.found
        assert best is not None
        self._end, self._least = started + self.budget, best.error
        order = [path for _, paths in _candidates(best) for path in paths]
        while not self._holds(best):
            late = time.monotonic() > started + _SHARE * self.budget
            step = None if late or len(self._tried) >= _MOST else self._step(best)
            if step is None:
                return self._enough(list(dict.fromkeys([*self._raised, *order])))
            best = step
        return Raised(self._raised) if best.by_path else self._none("all nodes")

    def _step(self, best: Judgement) -> Judgement | None:
        """The outcome with more nodes raised, if the error falls; None if it does not."""
        length = best.worst_length
        for why, paths in _candidates(best):
            more = tuple(path for path in paths if path not in self._raised)
            if not more or more in self._tried or time.monotonic() > self._end:
                continue
            self._tried.add(more)
            old, new = best.error_at(length), self._judged([*self._raised, *more], length).error
            if new[0] < old[0] or (new[0] == old[0] and new[1] < _LESS * old[1]):
                sizes = f"{_size(new)} in float32, {_size(old)} without"
                self._raised |= dict.fromkeys(more, f"{why}: the error{at(length)} is {sizes}")
                return self._judged(list(self._raised))
        return None

    def _enough(self, order: Sequence[str]) -> Raised:
        """As many of the nodes, in their order, as are needed."""
        few, most, error = len(self._raised), len(order), self._least
        while most - few > 1 and time.monotonic() < self._end:
            middle = (few + most) // 2
            found = self._judged(order[:middle])
            if self._holds(found):
                most, error = middle, found.error
            else:
                few = middle
        if most == len(order):
            every = few + 1 >= most
            return self._none("all nodes" if every else f"more than {few} of {most} nodes")
        effect = f"the error is {_size(error)} with {most} nodes in float32"
        return Raised({path: self._raised.get(path, effect) for path in order[:most]})

    def _none(self, what: str) -> Raised:
        """Nothing is raised: so much would have to be."""
        late = ", in the time that there is" if time.monotonic() > self._end else ""
        return Raised({}, f"the error is {_size(self._least)} unless {what} are in float32{late}")

    def _judged(self, paths: Sequence[str], length: int | None = None) -> Judgement:
        """The outcome with some nodes in float32, in the cases of one length, or in all."""
        after = Model(self.recast(paths), self.before.path)
        assert self.judged.found is not None
        cases = self.judged.found.ran
        chosen = [case for case in cases if length is None or case.length == length]
        found = Judgement(self.before, after, self._end).of(chosen)
        found.failure = found.failure or "; ".join(found.not_run)
        if length is None and found.by_path:
            self._least = min(self._least, found.error)
        return found

    def _holds(self, found: Judgement) -> bool:
        return found.error <= (0, self.bound)


def _candidates(found: Judgement) -> Iterator[tuple[str, Sequence[str]]]:
    """Nodes to raise together, the most telling first, each time with the reason."""
    seen = found.by_path
    over = [path for path, one in seen.items() if one.overflows]
    if over:
        yield "it overflows", over
    ratios = {path: one.cancelled for path, one in seen.items() if one.cancelled >= _CANCELS}
    for path in sorted(ratios, key=lambda one: -ratios[one]):
        operands = [one for one in found.operands(path) if one in seen]
        yield f"operands are {ratios[path]:.0f} times as large as a sum of them", [path, *operands]
    under = [path for path, one in seen.items() if one.underflows]
    if under:
        yield "it underflows to 0", under
    for path in sorted(seen, key=lambda one: (not seen[one].sums, -seen[one].largest)):
        yield "it adds up" if seen[path].sums else "it rounds", [path]


def _size(error: tuple[int, float]) -> str:
    overflows, size = error
    return "infinite" if overflows or size == inf else scientific(size)
