"""Terms: what a value is, as an expression, made once each, so that equal terms are one object.

An int64 number is a polynomial (`poly`) over atoms, a bool is a formula, any other element an
opaque term. What a term binds stands in a `lam`, whose variables are numbered by its height, so
that two terms which differ in the names of bound variables only are one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from time import monotonic
from typing import Any
from zlib import crc32


@dataclass(frozen=True, eq=False, slots=True)
class Term:
    """An operator applied to terms.

    `free` numbers the variables and placeholders in it that nothing binds, `height` is how deep
    what it binds is nested, `order` sorts terms the same in every process, whatever the variables
    are called.
    """

    op: str
    data: Hashable
    args: tuple[Term, ...]
    uid: int
    free: frozenset[int] = field(repr=False)
    height: int = field(repr=False)
    order: int = field(repr=False)
    shown: tuple[str, ...] = field(default=(), repr=False)

    @property
    def parts(self) -> tuple[Any, ...]:
        """The data of a term that has several."""
        assert isinstance(self.data, tuple)
        return self.data

    def __str__(self) -> str:
        from passes.proving.terms.formula import formula

        return formula(self)


#: Leaves that stand for a value, and for a function of indices; `b` where a `lam` binds them.
LEAVES = {"var", "bv", "ph", "bp"}


class OutOfTime(Exception):
    """The proof takes longer than it may, for the reason given if it would."""


class Interned:
    """Every term of a proof, by what it is made of."""

    def __init__(self) -> None:
        self._terms: dict[tuple[str, Hashable, tuple[int, ...]], Term] = {}
        self._serial = 0
        self._made = 0  # also terms that there were, of which a proof may make very many
        self.end = float("inf")

    def make(
        self,
        op: str,
        data: Hashable = None,
        args: Iterable[Term] = (),
        shown: tuple[str, ...] = (),
    ) -> Term:
        """The term of these parts, which is `shown` by the names that it got first.

        Raises:
            OutOfTime: the proof takes too long.
        """
        self._made += 1
        if not self._made % 256 and monotonic() > self.end:
            raise OutOfTime
        args = tuple(args)
        key = (op, data, tuple(arg.uid for arg in args))
        found = self._terms.get(key)
        if found is not None:
            return found
        uid = len(self._terms)
        free = (
            frozenset((uid,)) if op in LEAVES else frozenset[int]().union(*(a.free for a in args))
        )
        known = op if op in LEAVES else f"{op}{data}"
        order = crc32(" ".join([known, *(str(arg.order) for arg in args)]).encode())
        height = max((a.height for a in args), default=0)
        term = Term(op, data, args, uid, free, height, order, shown)
        self._terms[key] = term
        return term

    def lam(self, height: int, binds: Iterable[Term], body: Term) -> Term:
        """A function of the variables and placeholders `binds`, all of this height."""
        binds = tuple(binds)
        key = ("lam", (height, tuple(one.uid for one in binds)), (body.uid,))
        if key not in self._terms:
            free = body.free - {one.uid for one in binds}
            kinds = ",".join(f"{one.op}{one.data}" for one in binds)
            order = crc32(f"lam {kinds} {body.order}".encode())
            self._terms[key] = Term("lam", binds, (body,), len(self._terms), free, height, order)
        return self._terms[key]

    def serial(self) -> int:
        """A number that names one thing."""
        self._serial += 1
        return self._serial


def subterms(term: Term) -> Iterator[Term]:
    """Every term in a term once, from the left to the right."""
    seen: set[int] = set()
    pending = [term]
    while pending:
        one = pending.pop()
        if one.uid not in seen:
            seen.add(one.uid)
            yield one
            pending += reversed(one.args)


def atom_of(term: Term) -> Term:
    """The only atom that a whole number is, else the term."""
    alone = term.op == "poly" and term.data == (1,) and len(term.args[0].args) == 1
    return term.args[0].args[0] if alone else term
