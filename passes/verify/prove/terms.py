"""Terms: what a value is, as an expression, made once each, so that equal terms are one object.

An int64 number is a polynomial (`poly`) over atoms, a bool is a formula, any other element an
opaque term. What a term binds stands in a `lam`, whose variables are numbered by its height, so
that two terms which differ in the names of bound variables only are one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from time import monotonic
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

    def __str__(self) -> str:
        text = "".join(_pieces(self, 7))
        return text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "..."


#: Leaves that stand for a value, and for a function of indices; `b` where a `lam` binds them.
LEAVES = {"var", "bv", "ph", "bp"}

_MOST_SHOWN = 300


class OutOfTime(Exception):
    """The proof takes longer than it may."""


class Interned:
    """Every term of a proof, by what it is made of."""

    def __init__(self) -> None:
        self._terms: dict[tuple[str, Hashable, tuple[int, ...]], Term] = {}
        self._serial = 0
        self._made = 0  # also terms that there were, of which a proof may make very many
        self.end = float("inf")

    def make(self, op: str, data: Hashable = None, args: Iterable[Term] = ()) -> Term:
        """The term of these parts. Raises OutOfTime."""
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
        term = Term(op, data, args, uid, free, max((a.height for a in args), default=0), order)
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


def _pieces(term: Term, depth: int) -> Iterator[str]:
    if term.op == "poly":
        yield _polynomial(term, depth)
        return
    data = term.data if isinstance(term.data, tuple) else (term.data,)
    name = ":".join(str(one) for one in data if not isinstance(one, Term) and one is not None)
    yield f"{term.op}{':' if name else ''}{name}" if term.op not in ("elem", "ew") else name
    if term.args:
        yield "("
        for number, arg in enumerate(term.args):
            yield ", " if number else ""
            yield from _pieces(arg, depth - 1) if depth else "..."
        yield ")"


def _polynomial(term: Term, depth: int) -> str:
    assert isinstance(term.data, tuple)
    parts = []
    for factor, mono in zip(term.data, term.args, strict=True):
        atoms = ["".join(_pieces(atom, depth - 1)) for atom in mono.args] if depth else ["..."]
        parts.append("*".join(atoms if atoms and factor == 1 else [str(factor), *atoms]))
    return " + ".join(parts) or "0"
