"""The sizes at which a case of a proof is not entered: it proves the models equal at all others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from passes.proving.clues import Unknown, written
from passes.proving.terms.algebra import Algebra
from passes.proving.terms.term import Sum, Term, polynomial
from passes.reports.proof import Stated

#: The largest size below which, and the least above which, a proof is worth stating.
_SMALL, _LARGE = 4, 64


@dataclass
class Excluded:
    """The least and the largest size that is left of each that is bounded."""

    least: dict[Unknown, int] = field(default_factory=dict)
    most: dict[Unknown, int] = field(default_factory=dict)

    def add(self, algebra: Algebra, decisions: Iterable[tuple[Term, bool]]) -> bool:
        """Exclude sizes without which no input decides so; return whether there are such ones, of
        which little is lost."""
        algebra.forget()  # else what is known is not written
        found = [one if holds else algebra.negation(one) for one, holds in decisions]
        for bounds, values, tighter in ((self.most, _above, min), (self.least, _below, max)):
            known = next(filter(None, map(values, found)), {})
            for one, bound in known.items():
                bounds[one] = tighter(bound, bounds.get(one, bound))
            if known:
                return True
        return False

    def conditions(self, algebra: Algebra) -> Iterator[tuple[Term, bool]]:
        """What holds of the sizes that are left."""
        algebra.forget()
        for unknown, least in self.least.items():
            yield algebra.ge0(algebra.sub(_size(algebra, unknown), algebra.whole(least))), True
        for unknown, most in self.most.items():
            yield algebra.ge0(algebra.sub(algebra.whole(most), _size(algebra, unknown))), True

    def stated(self) -> tuple[Stated, ...]:
        """The sizes that are left, in words."""
        names = dict.fromkeys([*self.least, *self.most])
        return tuple(
            Stated(written(one), self.least.get(one, 0), self.most.get(one)) for one in names
        )


def _size(algebra: Algebra, unknown: Unknown) -> Term:
    return algebra.lift(algebra.terms.make(*unknown))


def _above(condition: Term) -> Mapping[Unknown, int]:
    """The largest size at which a condition does not hold, if it holds from a large one on, or a
    quotient of the size does."""
    parts = polynomial(condition.args[0]) if condition.op == "ge0" else {}
    sizes = [mono for mono in parts if mono]
    if len(sizes) == 1 and [one.op for one in sizes[0]] == ["idiv"] and parts[sizes[0]] == 1:
        value, by = map(polynomial, sizes[0][0].args)
        if [*by] == [()]:  # a quotient is that large from a multiple of the divisor on
            parts = {**value, (): value.get((), 0) + parts.get((), 0) * by[()]}
    names, factor, number = _compared(parts)
    is_large = len(names) == factor == 1 and -number > _LARGE
    return {names[0]: -number - 1} if is_large else {}


def _below(condition: Term) -> Mapping[Unknown, int]:
    """The least sizes at which a condition does not hold, if it holds up to small ones."""
    parts = polynomial(condition.args[0]) if condition.op in ("ge0", "eq0") else {}
    sizes, factor, number = _compared(parts)
    last = -number * factor
    # a product is 0 where one of its factors is
    small = 0 <= last <= (_SMALL if len(sizes) == 1 else 0)
    return dict.fromkeys(sizes, last + 1) if small and (factor, condition.op) != (1, "ge0") else {}


def _compared(parts: Sum) -> tuple[list[Unknown], int, int]:
    """The sizes whose product, times 1 or -1, is compared with 0, this factor, and the number that
    is added; no sizes where something else is."""
    products = [mono for mono in parts if mono]
    if len(products) != 1 or any(one.op != "dim" for one in products[0]):
        return [], 0, 0
    factor = parts[products[0]]
    sizes: list[Unknown] = [("dim", one.data) for one in products[0]]
    return (sizes, factor, parts.get((), 0)) if abs(factor) == 1 else ([], 0, 0)
