"""A counter that is compared with a bound in every iteration: in how many of them that holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt
from onnx import NodeProto, TensorProto, TypeProto

from passes.analysis.integers.affine import ITERATION, Affine, single_of
from passes.analysis.integers.integer_ops import WHOLE
from passes.analysis.integers.integers import Integers
from passes.analysis.trip_count.induction import inductions, integers_of
from passes.ir.attributes import attribute
from passes.ir.operators import op_of
from passes.loops.form import LoopForm
from passes.operators.comparisons import COMPARISONS, NEGATED, ORDERINGS, SWAPPED
from passes.rule import NothingToDo, Refused, Site
from passes.types.value_types import elem_type_of


@dataclass(frozen=True)
class CounterTest:
    """In iteration k: `first` + k * `step` is compared with `bound`.

    `op` is Less, LessOrEqual, Greater or GreaterOrEqual. `elem_type` is the type of the counter, or
    the narrower of the two types where the bound has another one, `bound_type`. A comparison of
    floats is exact in the first `most` iterations.
    """

    op: str
    first: Affine
    step: int
    bound: Affine
    elem_type: int
    bound_type: int
    most: int | None = None

    @property
    def upwards(self) -> bool:
        """True if it holds below the bound."""
        return "<" in COMPARISONS[self.op]

    @property
    def strict(self) -> bool:
        """True if it does not hold at the bound."""
        return "=" not in COMPARISONS[self.op]

    @property
    def before(self) -> Affine:
        """The value that would be compared one iteration before the first."""
        return self.first - self.step

    @property
    def room(self) -> Affine:
        """The distance from one iteration before the first to the bound."""
        return self.bound - self.before if self.upwards else self.before - self.bound

    @property
    def exact_room(self) -> Affine | None:
        """The room, where it is the number of iterations for which the comparison holds, counting
        the one before the first."""
        plain = self.strict and abs(self.step) == 1 and self.is_exact_from(self.before)
        return self.room if plain else None

    def is_exact_from(self, start: Affine) -> bool:
        """Return whether neither this start nor the bound wraps; then the counter does not while it
        holds."""
        return start.fits(self.elem_type) and self.bound.fits(self.bound_type)

    def holds_through(self, trips: Affine | None) -> bool:
        """Return whether it cannot end a loop with that trip count: it holds in all iterations and
        after."""
        if trips is None or abs(self.step) != 1 or not self.is_exact_from(self.first):
            return False
        return trips.fits() and (self.room + (0 if self.strict else 1) - trips).least >= 0

    def __str__(self) -> str:
        value = self.first + Affine.of(ITERATION).times(self.step)
        return f"{value} {COMPARISONS[self.op]} {self.bound}"


#: Up to where a float distinguishes a whole number from the next one.
_FLOATS = {"float32": 1 << 24, "float64": 1 << 53}
_LIMITS: dict[int, int] = {
    TensorProto.FLOAT: _FLOATS["float32"],
    TensorProto.DOUBLE: _FLOATS["float64"],
}


@dataclass(frozen=True)
class Operand:
    """A side of a comparison.

    `name` is the integer before the cast, `value` what is known about it, `elem_type` its type, 0
    where unknown. Where floats are compared, integers below `limit` are exact; else it is 0.
    """

    name: str
    value: Affine | None
    elem_type: int
    limit: int = 0

    @property
    def exact(self) -> bool:
        """True if no other integer rounds to the same float, so that all comparisons are exact."""
        number = None if self.value is None else self.value.number
        return not self.limit or (number is not None and abs(number) < self.limit)


@dataclass(frozen=True)
class Operands:
    """Reads operands of comparisons, in the body or, if `outside`, before the loop."""

    integers: Integers
    type_of: Callable[[str], TypeProto | None]
    outside: bool = False

    def read(self, name: str) -> Operand:
        """The operand with that name."""
        found = self._cast(name) or self._fixed(name)
        return found or Operand(name, self._value(name), elem_type_of(self.type_of(name)))

    def _cast(self, name: str) -> Operand | None:
        """An integer that is cast to a float."""
        node = self.integers.producer(name) if self.outside else self.integers.source(name)
        if node is None or op_of(node) != "Cast":
            return None
        limit = _LIMITS.get(attribute(node, "to", 0), 0)
        captured = not self.outside and self.integers.is_outer(name)
        if captured and not self.integers.same_meaning(node, name):
            return None
        whole = node.input[0]
        elem_type = elem_type_of(self.type_of(whole))
        if not limit or elem_type not in WHOLE:
            return None
        return Operand(whole, self._value(whole), elem_type, limit)

    def _fixed(self, name: str) -> Operand | None:
        """A constant float whose value is an integer."""
        array = self._constant(name)
        if array is None or array.size != 1 or str(array.dtype) not in _FLOATS:
            return None
        number, limit = float(array.item()), _FLOATS[str(array.dtype)]
        if not abs(number) < limit or number != int(number):
            return None
        return Operand(name, Affine(int(number)), TensorProto.UNDEFINED, limit)

    def _value(self, name: str) -> Affine | None:
        if self.outside:
            found = self.integers.outside(name)
        else:
            found = self.integers.inside(name) or self.integers.wrapping(name)
        return single_of(found)

    def _constant(self, name: str) -> npt.NDArray[Any] | None:
        if self.outside:
            return self.integers.site.constant(name)
        return self.integers.constant_inside(name)


@dataclass(frozen=True)
class CounterTests:
    """Reads the conditions of one loop, in which all counters are `exact` in so many iterations,
    always if None."""

    site: Site
    form: LoopForm
    integers: Integers
    exact: int | None = None

    @classmethod
    def of(cls, site: Site, form: LoopForm) -> CounterTests:
        """The comparisons of a site."""
        counters = inductions(site, form, rounding=True)
        exact = [one.exact for one in counters if one.exact is not None]
        return cls(site, form, integers_of(site, form, counters), min(exact, default=None))

    def in_body(self, node: NodeProto | None) -> CounterTest:
        """Return the comparison that a part of the body's condition makes.

        Raises:
            Refused: `comparison`, `float-counter`, `bound-varies`, `no-counter` or `step`.
        """
        op, *names = self._operands(node)
        left, right = map(Operands(self.integers, self._type).read, names)
        if not _slope(left.value) and _slope(right.value):
            return self._comparison(SWAPPED[op], right, left)
        return self._comparison(op, left, right)

    def among(self, parts: Sequence[NodeProto | None]) -> list[CounterTest | None]:
        """Return the comparison of each part; None for one that stays as a condition on data, if
        another one counts. A part that is exact only for some iterations stays, too, for data may
        end the loop.

        Raises:
            NothingToDo: the loop has a trip count, and all of its condition depends on data.
            Refused: no part counts.
        """
        found: list[CounterTest | None] = []
        refused: list[Refused] = []
        for part in parts:
            try:
                found.append(self.in_body(part))
            except Refused as why:
                refused.append(why)
                found.append(None)
        if refused:
            found = [one if one is not None and one.most is None else None for one in found]
            if not any(found):
                data = all(why.code in ("comparison", "float-counter") for why in refused)
                raise NothingToDo if data and self.form.trip_count else refused[0]
        return found

    def outside(self, node: NodeProto | None, like: CounterTest) -> bool:
        """Return whether an outer condition is the comparison `like`, one iteration before the
        first."""
        found = self._around(node)
        if found is None:
            return False
        op, *values = found
        wanted = [like.before, like.bound]
        narrow = TensorProto.INT32 in (like.elem_type, like.bound_type)
        if narrow and not like.is_exact_from(like.before):
            return False
        same = op == like.op and values == wanted
        return same or (SWAPPED[op] == like.op and values == wanted[::-1])

    def is_redundant_with(self, node: NodeProto | None, trips: Affine | None) -> bool:
        """Return whether a loop of that trip count runs no iteration anyway if an outer condition
        fails."""
        found = self._around(node)
        if found is None or trips is None:
            return False
        op, left, right = found
        room = right - left if "<" in COMPARISONS[op] else left - right
        exact = left.fits() and right.fits() and trips.fits()
        return exact and (room + (1 if "=" in COMPARISONS[op] else 0) - trips).least >= 0

    def _around(self, node: NodeProto | None) -> tuple[str, Affine, Affine] | None:
        """The operator and the operands of an outer condition, where they are known."""
        found = _opened(node, self.integers.producer)
        if found is None:
            return None
        op, *names = found
        left, right = map(Operands(self.integers, self.site.type_of, outside=True).read, names)
        if left.value is None or right.value is None or not (left.exact or right.exact):
            return None
        return op, left.value, right.value

    def _operands(self, node: NodeProto | None) -> tuple[str, str, str]:
        found = _opened(node, self.integers.source)
        if found is None:
            what = "comes from outside" if node is None else f"is computed by {op_of(node)}"
            raise self.site.refused(
                "comparison",
                f"a part of the condition {what}; only comparisons of a counter with a bound "
                "by Less, LessOrEqual, Greater or GreaterOrEqual determine the trip count",
                *(node.output if node is not None else ()),
            )
        return found

    def _comparison(self, op: str, counter: Operand, bound: Operand) -> CounterTest:
        elem_type = self._refuse_floats(counter, bound)
        if counter.value is None:
            what = f"{counter.name!r} in the condition is no number that grows by a constant step"
            raise self.site.refused("no-counter", what, counter.name)
        if bound.value is None or _slope(bound.value):
            raise self.site.refused(
                "bound-varies",
                f"{bound.name!r}, with which the condition compares {counter.name!r}, is not "
                "proven to be the same in every iteration",
                bound.name,
            )
        step = _slope(counter.value)
        if not step or (step > 0) != ("<" in COMPARISONS[op]):
            raise self.site.refused(
                "step",
                f"{counter.name!r} grows by {step} each time and is compared with {bound.name!r} "
                f"by {op}: it never gets nearer to its bound",
                counter.name,
            )
        first = counter.value.without(ITERATION).wrapped(elem_type)
        most = self._most(replace(counter, value=first), abs(step), bound)
        bound_type = bound.elem_type or elem_type
        found = CounterTest(op, first, step, bound.value, elem_type, bound_type, most)
        room = found.room.number
        if self.exact is None or (room is not None and room // abs(step) + 2 <= self.exact):
            return found
        return replace(found, most=min(self.exact, self.exact if most is None else most))

    def _most(self, first: Operand, step: int, bound: Operand) -> int | None:
        """The number of iterations in which the floats are distinct; None where they always are.

        An integer that floats represent compares correctly with every other one. This is the bound,
        or the counter until it leaves the range of exact integers.
        """
        if bound.exact:
            return None
        if not first.exact or first.value is None:
            raise self.site.refused(
                "float-counter",
                f"{first.name!r} is compared as a float, which rounds, and neither its initial "
                "value nor its bound is a constant",
                first.name,
            )
        return (first.limit - 1 - abs(first.value.constant)) // step + 1

    def _refuse_floats(self, *sides: Operand) -> int:
        """The type of the compared integers, the narrower one where they differ."""
        for side in sides:
            if side.elem_type and side.elem_type not in WHOLE:
                raise self.site.refused(
                    "float-counter",
                    f"{side.name!r} in the condition is of type "
                    f"{TensorProto.DataType.Name(side.elem_type)}; "
                    "only int64 and int32 counters neither round nor wrap early",
                    side.name,
                )
        types = [side.elem_type for side in sides if side.elem_type]
        if not types:
            raise self.site.refused(
                "unknown-type",
                f"the type of {sides[0].name!r} in the condition is neither declared nor inferred",
                sides[0].name,
            )
        return TensorProto.INT32 if TensorProto.INT32 in types else TensorProto.INT64

    def _type(self, name: str) -> TypeProto | None:
        initials = {carried.body_input: carried.initial for carried in self.form.carried}
        if name in initials:
            return self.site.type_of(initials[name])
        return self.site.body_type_of("body", name)


def _slope(value: Affine | None) -> int:
    return 0 if value is None else value.coefficient(ITERATION)


def _opened(
    node: NodeProto | None, source: Callable[[str], NodeProto | None]
) -> tuple[str, str, str] | None:
    """Return a comparison without the Not before it: its op and its operands."""
    negated = False
    while node is not None and op_of(node) in ("Not", "Identity"):
        negated ^= op_of(node) == "Not"
        node = source(node.input[0])
    if node is None or op_of(node) not in ORDERINGS:
        return None
    left, right = node.input
    return (NEGATED[op_of(node)] if negated else op_of(node)), left, right
