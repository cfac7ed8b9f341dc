"""Operators by element, in normal form: formulas, results for constants, Casts there and back."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from passes.operators.comparisons import COMPARISONS, SWAPPED
from passes.proving.families import EXACT_OPERATORS, LOSSLESS, commutes
from passes.proving.terms.extremes import EXACT_UP_TO, Extremes
from passes.proving.terms.numbers import BOOL, INT64, SMALL
from passes.proving.terms.term import Term


class ByElement(Extremes):
    """Operators by element, whichever prover makes them."""

    def by_element(
        self, op: str, attributes: Hashable, dtype: str, args: Sequence[Term], source: str
    ) -> Term:
        """Any operator of operands of the type `source`: those of bools are formulas, comparisons
        of whole numbers the sign of a difference. An int64 is the number that a machine holds."""
        if op in _FORMULAS:
            return _FORMULAS[op](self, *args)
        if op in COMPARISONS:
            return self._compared(op, source, args)
        if op == "Cast":
            return self._cast(source, attributes, dtype, args[0])
        if op in _IN_TURN and not (op == "Sum" and len(args) == 1):  # which makes 0 of -0
            return reduce(partial(self._of_two, _IN_TURN[op], attributes, dtype), args)
        if op == "Clip":
            assert isinstance(attributes, tuple)
            steps = [step for step, given in zip(("Max", "Min"), attributes, strict=True) if given]
            return self._clipped(dtype, args[0], dict(zip(steps, args[1:], strict=True)))
        return self.elementwise(op, attributes, dtype, args)

    def _of_two(self, op: str, attributes: Hashable, dtype: str, one: Term, other: Term) -> Term:
        if dtype == INT64 and op in ("Max", "Min"):
            return self.most(one, other) if op == "Max" else self.least(one, other)
        return self.elementwise(op, attributes, dtype, (one, other))

    def _clipped(self, dtype: str, value: Term, bounds: Mapping[str, Term]) -> Term:
        """A number between bounds, of which a float may be a zero of either sign; without a bound,
        onnxruntime makes an infinity the largest number, and onnx does not."""
        if dtype == INT64:
            for step, bound in bounds.items():
                value = self._of_two(step, (), dtype, value, bound)
            return value
        kept = {step: one for step, one in bounds.items() if not self._bounds_nothing(step, one)}
        is_open = "float" in dtype
        which = tuple(
            None if is_open and one not in bounds else one in kept for one in ("Max", "Min")
        )
        if which == (False, False):
            return value
        return self.elementwise("Clip", which, dtype, [value, *kept.values()])

    def _compared(self, op: str, source: str, args: Sequence[Term]) -> Term:
        if ">" in COMPARISONS[op]:
            op, args = SWAPPED[op], args[::-1]
        if source == BOOL:
            return self._alike(*args)
        return self.elementwise(op, source, BOOL, args)

    def _alike(self, *both: Term) -> Term:
        """The condition that bools are equal."""
        return self.any((self.all(both), self.all(map(self.negation, both))))

    def _cast(self, source: str, attributes: Hashable, dtype: str, value: Term) -> Term:
        if dtype == source:
            return value
        if source == BOOL and dtype == INT64:
            return self.ite(value, self.one, self.zero)
        if source == INT64 and dtype == BOOL:
            return self.negation(self.eq0(value))
        return self.elementwise("Cast", (source, attributes), dtype, [value])

    def elementwise(
        self, op: str, attributes: Hashable, dtype: str, args: Iterable[Term], within: str = ""
    ) -> Term:
        """An operator by element, or `within` the kernel of another operator."""
        args = tuple(args)
        folded = self._folded(op, attributes, dtype, args)
        if folded is None and op in ("Less", "LessOrEqual", "Equal"):
            folded = self.compared(op, str(attributes), args)
        if folded is None and op in ("Max", "Min") and dtype in EXACT_UP_TO and len(args) == 2:
            folded = self._extreme_float(op, dtype, args)
        if folded is not None:
            return folded
        if commutes(op, dtype):
            args = tuple(sorted(args, key=lambda one: (one.order, one.uid)))
        data = (op, attributes, dtype, within) if within else (op, attributes, dtype)
        return self.opaque(dtype, "ew", data, args)

    def _folded(
        self, op: str, attributes: Hashable, dtype: str, args: tuple[Term, ...]
    ) -> Term | None:
        """The result by IEEE 754 for constants, for a Cast there and back, and for a bound that
        bounds nothing."""
        (first, *_) = args
        if op == "Cast":
            assert isinstance(attributes, tuple)
            source = attributes[0]
            value, most = self.value(first), 1 << (53 if dtype == INT64 else 24)
            low, high = SMALL.get(dtype, (-most, most))
            is_float = first.op == "const" and source in EXACT_UP_TO and dtype in (INT64, *SMALL)
            from_whole = first.op != "const" and value is not None and dtype in EXACT_UP_TO
            if (is_float or from_whole) and low <= float(value) <= high:
                return self.literal(dtype, np.dtype(dtype).type(value))
            if dtype == INT64 and source in SMALL:
                return self.wide(source, first)
            if source == INT64 and dtype in SMALL:
                return self._narrow(dtype, first)
            inner = first.data
            if first.op == "ew" and isinstance(inner, tuple) and inner[0] == "Cast":
                unsaturated = dtype == "float8_e5m2" and attributes[1] == (("saturate", 0),)
                lossless = dtype in LOSSLESS.get(source, ()) or (
                    unsaturated and source == "float32"
                )
                lossless |= dtype == BOOL and source not in _WITHOUT_FALSE
                if inner[1][0] == dtype and lossless:
                    return first.args[0]
            floats = {dtype, source} <= EXACT_UP_TO.keys()
            exact: Callable[..., Any] | None = partial(np.asarray, dtype=dtype) if floats else None
        else:
            exact = EXACT_OPERATORS.get(op)
        if op in ("Max", "Min") and len(args) == 2:
            for one, other in (args, args[::-1]):
                if self._bounds_nothing(op, one):
                    return other
        if exact is None or len(args) > 2:
            return None
        values, read = list(map(self._known_value, args)), {one.args for one in args} - {()}
        if len(read) > 1 or any(value is None for value in values):
            return None
        with np.errstate(all="ignore"):
            made = np.asarray(exact(*values))
        if made.size > MOST_FOLDED or made.dtype.name != dtype:
            return None
        return self.element(self.constant(made), dtype, next(iter(read), ()))

    def _bounds_nothing(self, op: str, bound: Term) -> bool:
        """Return whether a constant is the least element for Max, or the largest one for Min."""
        value = self.value(bound) if bound.op == "const" else None
        if value is None or value.dtype.kind not in "iu":
            return bool(value == (-np.inf if op == "Max" else np.inf))
        limits = np.iinfo(value.dtype)
        return bool(value == (limits.min if op == "Max" else limits.max))

    def _known_value(self, term: Term) -> Any:
        """The numbers of a constant of floats that every machine computes alike, else None."""
        if term.op == "const" and term.parts[0] in EXACT_UP_TO:
            return self.value(term)
        if term.op == "elem" and term.parts[0] == "constant" and term.parts[-1] in EXACT_UP_TO:
            return self.constants[term.parts[1]]
        return None


#: What is applied to its operands one after the other.
_IN_TURN = {"Max": "Max", "Min": "Min", "Sum": "Add"}
#: Operators of bools, and the choice of an element, as formulas.
_FORMULAS: Mapping[str, Callable[..., Term]] = {
    "Not": ByElement.negation,
    "And": lambda algebra, *both: algebra.all(both),
    "Or": lambda algebra, *both: algebra.any(both),
    "Xor": lambda algebra, *both: algebra.negation(ByElement._alike(algebra, *both)),
    "Where": ByElement.ite,
}
#: Types in which a Cast of a bool and back may give another one.
_WITHOUT_FALSE = {"object", "string", "float8_e8m0fnu"}


#: Of how many elements constants are computed.
MOST_FOLDED = 1 << 14
