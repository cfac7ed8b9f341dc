"""Learns from a model's failures what inputs it takes.

The model runs on drawn inputs. The node at which it fails shows what it wants of the sizes of
its operands; how these depend on the sizes of the inputs shows when one of them changes. So the
sizes that the node wants are solved for, one node after the other, until the model runs.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from onnx import ModelProto, NodeProto

from passes.operators.contract import Need, Operands, Size, computed
from passes.operators.needs import needs_of
from passes.types.dtypes import numpy_dtype
from passes.verify.executor import Ended, Executor, Trouble, Value
from passes.verify.inputs.arrays import IntStyle
from passes.verify.inputs.dims import Needs, Tie, element_type
from passes.verify.inputs.drawer import CannotDraw, Drawer
from passes.verify.inputs.plans import Plan
from passes.verify.run_cost import RunCost

#: Runs after which nothing more is learned, and sizes that are solved for in one go.
_MOST_RUNS, _MOST_LESSONS = 240, 24
#: Ranks that are tried where none is declared, and inputs whose ranks are tried together.
_RANKS, _TOGETHER, _MOST_RANKS = (2, 1, 3, 4, 0, 5), 2, 8
_INTS: tuple[IntStyle, ...] = ("small", "below", "sizes", "zeros", "ones", "permutation")
#: Sizes that are tried where it is unknown what a node wants.
_LARGER = (16, 64, 256, 512, 1)
#: Steps in which a size is solved for.
_STEPS = 24
_LARGEST = 1 << 16
#: A position after every node: the model ran.
_END = (math.inf,)
_PLAN = Plan("ordinary", "exact values")


@dataclass
class Lessons:
    """The facts that the runs of a model teach; computed once, on first use."""

    model: ModelProto
    drawer: Drawer
    executor: Executor
    base_dir: Path | None
    timeout: float
    _runs: int = 0
    _deadline: float = math.inf

    def learn(self, deadline: float) -> Needs | None:
        """Return what inputs need to be accepted by the model, or None if that was not found out.

        Raises TimeoutError where the deadline (of `time.monotonic`) comes first: what is learned
        depends on the model alone.
        """
        self._deadline = deadline
        return None if self._cost.hopeless else self._needs

    @cached_property
    def _cost(self) -> RunCost:
        return RunCost.of(self.model)

    @cached_property
    def _needs(self) -> Needs | None:
        for ints in _INTS if self._has_ints() else _INTS[:1]:
            for ranks in self._ranks(ints):
                needs = self._solved(Needs(ranks, ints=ints))
                if needs is not None:
                    return needs
        return None

    def _has_ints(self) -> bool:
        types = [element_type(value.type).tensor_type.elem_type for value in self.drawer.inputs]
        return any(kind and numpy_dtype(kind).kind in "iu" for kind in types)

    def _ranks(self, ints: IntStyle) -> list[dict[str, int]]:
        """Ranks for the inputs that declare none; the model gets furthest with the first."""
        names = self.drawer.unranked()
        if not names:
            return [{}]
        groups = [names] if len(names) > _TOGETHER else [[name] for name in names]
        found = []
        for choice in itertools.product(_RANKS, repeat=len(groups)):
            ranks = {
                name: rank for group, rank in zip(groups, choice, strict=True) for name in group
            }
            found.append((self.run(Needs(ranks, ints=ints)).position, ranks))
        found.sort(key=lambda pair: pair[0], reverse=True)
        return [ranks for _, ranks in found[:_MOST_RANKS]]

    def _solved(self, needs: Needs) -> Needs | None:
        for _ in range(_MOST_LESSONS):
            ran = self.run(needs)
            if ran.position == _END:
                return needs
            better = next(self._better(needs, ran), None)
            if better is None:
                return None
            needs = better
        return None

    def _better(self, needs: Needs, ran: _Ran) -> Iterator[Needs]:
        """Needs with which the model gets further."""
        sizes, symbols = self._sizes(needs)
        node = ran.trouble
        if node is not None:
            for want in wants_of(node.node, node.operands):
                yield from _Solving(self, needs, ran, want, sizes, symbols).solved()
        for size in _LARGER:
            for group in (symbols, *([symbol] for symbol in symbols)):
                grown = needs
                for symbol in group:
                    grown = grown.at_least(symbol, size) if size > 1 else grown.tied(symbol, Tie(1))
                if self.run(grown).position > ran.position:
                    yield grown

    def _sizes(self, needs: Needs) -> tuple[dict[str, int], list[str]]:
        """The sizes of the plan, and the symbols that are free."""
        drawer = replace(self.drawer, needs=needs)
        symbols = drawer.symbols()
        planned = {symbol: _PLAN.size(place) for place, symbol in enumerate(symbols)}
        return replace(needs, ties={}).fit(planned), symbols

    def run(self, needs: Needs) -> _Ran:
        """Run the model on the ordinary inputs that have these needs."""
        self._runs += 1
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        try:
            feeds = replace(self.drawer, needs=needs).case(_PLAN).feeds
            if self._runs > _MOST_RUNS or not self._cost.is_affordable(feeds):
                return _Ran(())
            self.executor.run(
                self.model, feeds, base_dir=self.base_dir, timeout=min(self.timeout, left)
            )
        except Ended as ended:
            trouble = ended.trouble
            return _Ran(() if trouble is None else trouble.position, trouble)
        except CannotDraw:
            return _Ran(())
        return _Ran(_END)


@dataclass(frozen=True)
class _Ran:
    """The progress of a run, and its end."""

    position: tuple[float, ...]
    trouble: Trouble | None = None


@dataclass(frozen=True)
class _Solving:
    """Solves for one want: how its gap depends on the free sizes, and where it closes."""

    lessons: Lessons
    needs: Needs
    ran: _Ran
    want: Need
    sizes: Mapping[str, int]
    symbols: Sequence[str]
    _known: dict[tuple[tuple[str, int], ...], float | None] = field(default_factory=dict)

    def solved(self) -> Iterator[Needs]:
        """Yield needs that close the gap, the weakest first."""
        slopes = {symbol: self._slope(symbol) for symbol in self.symbols}
        moving = [symbol for symbol in self.symbols if slopes[symbol]]
        if not moving:  # or no runs are left to find out
            return
        if self.want.what == "equal":
            yield from self._tied({symbol: slopes[symbol] for symbol in moving})
        for symbol in reversed(moving):
            size = self._search([symbol])
            if size is not None:
                yield self._needs_of({symbol: size})
        if len(moving) > 1:
            size = self._search(moving)
            if size is not None:
                yield self._needs_of(dict.fromkeys(moving, size))

    def _needs_of(self, sizes: Mapping[str, int]) -> Needs:
        needs = self.needs
        for symbol, size in sizes.items():
            if self.want.what == "least":
                needs = needs.at_least(symbol, size)
            elif self.want.what == "multiple" and isinstance(self.want.target, int):
                needs = needs.in_steps(symbol, self.want.target, size % self.want.target)
            else:
                needs = needs.tied(symbol, Tie(size))
        return needs

    def _gap(self, sizes: Mapping[str, int]) -> float | None:
        """The gap at some sizes: 0 where the model gets past the node, None where it does not
        come so far."""
        key = tuple(sizes.items())
        if key not in self._known:
            self._known[key] = self._gap_with(self.needs, sizes)
        return self._known[key]

    def _gap_with(self, needs: Needs, sizes: Mapping[str, int]) -> float | None:
        """The gap with some needs, where every free size is as planned, or as given."""
        for symbol, size in {**self.sizes, **sizes}.items():
            if symbol not in needs.ties:
                needs = needs.tied(symbol, Tie(size))
        ran = self.lessons.run(needs)
        if ran.position != self.ran.position or ran.trouble is None:
            return 0 if ran.position > self.ran.position else None
        return gap_of(self.want, ran.trouble.operands)

    def _slope(self, symbol: str) -> float:
        """By how much the gap changes with a size."""
        here = self._gap({})
        for step in (1, 61):
            there = self._gap({symbol: self.sizes[symbol] + step})
            if here is not None and there is not None and there != here:
                return (there - here) / step
        return 0

    def _tied(self, slopes: Mapping[str, float]) -> Iterator[Needs]:
        """One size that follows from the others, where all depend on it in a straight line."""
        here = self._gap({})
        assert here is not None
        unit = [symbol for symbol, slope in slopes.items() if abs(slope) == 1]
        ties = []
        for symbol in reversed(unit):
            rest = {
                other: -slope * slopes[symbol] for other, slope in slopes.items() if other != symbol
            }
            if any(times != int(times) for times in rest.values()):
                continue
            number = self.sizes[symbol] - here * slopes[symbol]
            number -= sum(times * self.sizes[other] for other, times in rest.items())
            ties.append(
                (symbol, Tie(int(number), {symbol_: int(n) for symbol_, n in rest.items()}))
            )
        ties.sort(key=lambda tie: sum(times < 0 for times in tie[1].times.values()))
        for symbol, tie in ties:
            needs = self.needs.tied(symbol, tie)
            tries = [{}, *({other: self.sizes[other] + 1} for other in tie.times)]
            if all(self._gap_with(needs, sizes) == 0 for sizes in tries):
                yield needs

    def _search(self, symbols: Sequence[str]) -> int | None:
        """One size for all the symbols at which the gap is closed."""
        seen: dict[int, float] = {}
        size, steps, target = self.sizes[symbols[0]], _STEPS, self.want.target
        in_turn = self.want.what == "multiple"
        if in_turn and isinstance(target, int):
            steps = min(target, 4 * _STEPS) + 1
        for _ in range(steps):
            gap = self._gap(dict.fromkeys(symbols, size))
            if gap == 0:
                return size
            if not in_turn and (gap is None or size in seen):
                return None
            seen[size] = gap or 0
            size = size + 1 if in_turn else _guess(seen)
            if not 0 <= size <= _LARGEST:
                return None
        return None


def _guess(seen: Mapping[int, float]) -> int:
    """Return the size at which a gap may close, extrapolated from the gaps at other sizes."""
    below = max((value for value in seen if seen[value] < 0), default=None)
    above = min((value for value in seen if seen[value] > 0), default=None)
    if below is not None and above is not None:
        part = seen[below] / (seen[below] - seen[above])
        inside = round(below + part * (above - below))
        if len(seen) % 2 or not min(below, above) < inside < max(below, above):
            inside = (below + above) // 2
        return inside
    ends = sorted(seen)
    if len(ends) > 1 and seen[ends[0]] != seen[ends[-1]]:
        slope = (seen[ends[-1]] - seen[ends[0]]) / (ends[-1] - ends[0])
        return math.ceil(ends[-1] - seen[ends[-1]] / slope)
    size = ends[-1]
    return size + 1 if len(ends) == 1 else 2 * size + 1


def wants_of(node: NodeProto, operands: Sequence[Value]) -> list[Need]:
    """Return the requirements of a failed node that its operands do not meet."""
    pairs = zip(node.input, operands, strict=False)
    arrays = {name: value for name, value in pairs if isinstance(value, np.ndarray)}
    shapes = {name: array.shape for name, array in arrays.items()}
    needs = needs_of(Operands(node, shapes.get, arrays.get))
    return [need for need in needs if gap_of(need, operands)]


def gap_of(need: Need, operands: Sequence[Value]) -> int | None:
    """By how much a size differs from what it must be; 0 where it is right."""
    size, target, *others = (
        computed(one, lambda size: _size(size, operands))
        for one in (need.size, need.target, *need.unless_one)
    )
    if size is None or target is None:
        return None
    if need.what == "multiple":
        return size % target if target > 0 else None
    gap = 0 if 1 in others else size - target
    return min(0, gap) if need.what == "least" else gap


def _size(size: Size, operands: Sequence[Value]) -> int | None:
    """A size; None where there is no such axis."""
    value = operands[size.operand] if size.operand < len(operands) else None
    if not isinstance(value, np.ndarray) or not -value.ndim <= size.axis < value.ndim:
        return None
    return int(value.shape[size.axis])
