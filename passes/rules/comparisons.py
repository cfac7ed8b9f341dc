"""Comparisons of a counter with a bound: how often in a row they hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from onnx import NodeProto, TensorProto, TypeProto

from passes.loop_form import LoopForm
from passes.rule import Refused, Site
from passes.rules.affine import ITERATION, Affine, Ints
from passes.rules.induction import integers_of
from passes.rules.integer_ops import attribute
from passes.rules.integers import Integers
from passes.rules.truth import Truth
from passes.value_types import elem_type_of

_FLIPPED = {"Less": "Greater", "Greater": "Less"}
_FLIPPED |= {"LessOrEqual": "GreaterOrEqual", "GreaterOrEqual": "LessOrEqual"}
_NEGATED = {"Less": "GreaterOrEqual", "Greater": "LessOrEqual"}
_NEGATED |= {"LessOrEqual": "Greater", "GreaterOrEqual": "Less"}
_INTEGERS = (TensorProto.INT64, TensorProto.INT32)


@dataclass(frozen=True)
class Comparison:
    """In iteration k: `first` + k * `step` is compared with `bound`.

    `op` is Less, LessOrEqual, Greater or GreaterOrEqual, `elem_type` the type of the numbers.
    """

    op: str
    first: Affine
    step: int
    bound: Affine
    elem_type: int

    @property
    def upwards(self) -> bool:
        """Whether it holds below the bound."""
        return self.op.startswith("Less")

    @property
    def strict(self) -> bool:
        """Whether it does not hold at the bound."""
        return not self.op.endswith("Equal")

    @property
    def before(self) -> Affine:
        """What would be compared one iteration before the first."""
        return self.first - self.step

    def __str__(self) -> str:
        value = self.first + Affine.of(ITERATION).times(self.step)
        sign = ("<" if self.upwards else ">") + ("" if self.strict else "=")
        return f"{value} {sign} {self.bound}"


@dataclass(frozen=True)
class Comparisons:
    """Reads the conditions of one loop."""

    site: Site
    form: LoopForm
    truth: Truth
    integers: Integers

    @classmethod
    def of(cls, site: Site, form: LoopForm) -> Comparisons:
        """The comparisons of a site."""
        return cls(site, form, Truth(site, form), integers_of(site, form))

    def in_body(self, node: NodeProto | None) -> Comparison:
        """What a part of the body's condition compares.

        Raises:
            Refused: `comparison`, `float-counter`, `bound-varies`, `no-counter` or `step`.
        """
        op, left, right = self._operands(node)
        sides = [self.integers.inside(name) for name in (left, right)]
        counts = [_slope(one) != 0 for one in sides]
        if counts == [False, True]:
            return self._comparison(_FLIPPED[op], right, left)
        return self._comparison(op, left, right)

    def outside(self, node: NodeProto | None, like: Comparison) -> bool:
        """Whether an outer condition is what `like` would be one iteration before the first."""
        found = _opened(node, self.integers.producer)
        if found is None or found[0] not in _FLIPPED:
            return False
        op, left, right = found
        sides = [self.integers.outside(name) for name in (left, right)]
        values = [None if one is None else one.single for one in sides]
        wanted = [like.before, like.bound]
        same = op == like.op and values == wanted
        return same or (_FLIPPED[op] == like.op and values == wanted[::-1])

    def _operands(self, node: NodeProto | None) -> tuple[str, str, str]:
        found = _opened(node, self.integers.source)
        if found is None or found[0] not in _FLIPPED:
            what = "comes from outside" if node is None else f"is computed by {node.op_type}"
            raise Refused(
                "comparison",
                f"a part of the condition {what}; only comparisons of a counter with a bound "
                "by Less, LessOrEqual, Greater or GreaterOrEqual tell how often the loop runs",
                [self.site.path, *(node.output if node is not None else ())],
            )
        return found

    def _comparison(self, op: str, counter: str, bound: str) -> Comparison:
        elem_type = self._refuse_floats(counter, bound)
        value, limit = self.integers.inside(counter), self.integers.inside(bound)
        if value is None or value.single is None or self._widened(counter):
            raise Refused(
                "no-counter",
                f"{counter!r} in the condition is no number that grows by a constant step",
                [self.site.path, counter],
            )
        if limit is None or limit.single is None or _slope(limit):
            raise Refused(
                "bound-varies",
                f"{bound!r}, with which the condition compares {counter!r}, is not proven to be "
                "the same in every iteration",
                [self.site.path, bound],
            )
        step = _slope(value)
        if not step or (step > 0) != op.startswith("Less"):
            raise Refused(
                "step",
                f"{counter!r} grows by {step} each time and is compared with {bound!r} by {op}: "
                "it never gets nearer to its bound",
                [self.site.path, counter],
            )
        return Comparison(op, value.single.without(ITERATION), step, limit.single, elem_type)

    def _refuse_floats(self, counter: str, bound: str) -> int:
        """The type of the numbers that are compared."""
        types = [elem_type_of(self._type(name)) for name in (counter, bound)]
        for name, known in zip((counter, bound), types, strict=True):
            if known and known not in _INTEGERS:
                raise Refused(
                    "float-counter",
                    f"{name!r} in the condition is of type {TensorProto.DataType.Name(known)}; "
                    "only int64 and int32 counters neither round nor wrap early",
                    [self.site.path, name],
                )
        if not any(types):
            raise Refused(
                "unknown-type",
                f"the type of {counter!r} in the condition is neither declared nor inferred",
                [self.site.path, counter],
            )
        return max(types)

    def _type(self, name: str) -> TypeProto | None:
        carried = {one.body_input: one.initial for one in self.form.carried}
        if name in carried:
            return self.site.type_of(carried[name])
        return self.site.body_type_of("body", name)

    def _widened(self, name: str) -> bool:
        """Whether a counter of 32 bits, which may wrap, is compared as one of 64 bits."""
        pending, seen = [name], {name}
        while pending:
            node = self.integers.source(pending.pop())
            if node is None or self.integers.is_outer(node.output[0]):
                continue
            if node.op_type == "Cast" and attribute(node, "to") == TensorProto.INT64:
                found = self.integers.inside(node.input[0])
                if _slope(found) and elem_type_of(self._type(node.input[0])) != TensorProto.INT64:
                    return True
            pending += [one for one in node.input if one and one not in seen]
            seen.update(node.input)
        return False


def _slope(ints: Ints | None) -> int:
    return 0 if ints is None or ints.single is None else ints.single.coefficient(ITERATION)


def _opened(
    node: NodeProto | None, source: Callable[[str], NodeProto | None]
) -> tuple[str, str, str] | None:
    """A comparison without the Not in front of it: its op and its operands."""
    negated = False
    while node is not None and node.op_type in ("Not", "Identity"):
        negated ^= node.op_type == "Not"
        node = source(node.input[0])
    if node is None or node.op_type not in _FLIPPED:
        return None
    left, right = node.input
    return (_NEGATED[node.op_type] if negated else node.op_type), left, right


def limits(elem_type: int) -> tuple[int, int]:
    """The least and the largest number of an integer type."""
    info = np.iinfo(np.int32 if elem_type == TensorProto.INT32 else np.int64)
    return int(info.min), int(info.max)
