"""Digests of terms that are the same in every process, however the terms were made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256

from passes.proving.families import COMMUTE
from passes.proving.terms.term import LEAVES, Term

#: Terms whose arguments are in no order.
_UNORDERED = {"poly", "mono", "and", "or", "min", "max"}


class Digests:
    """The SHA-256 of what terms are made of.

    What a term binds has canonical names; free variables are numbered in the order in which the
    terms read them.
    """

    def __init__(self) -> None:
        self._shapes: dict[int, bytes] = {}  # where free variables have no number

    def of(self, *terms: Term) -> str:
        """The digest of terms that share their free variables, as hexadecimal digits."""
        for term in terms:
            self._add(term, self._shapes, {})
        numbers: dict[int, int] = {}
        seen: set[int] = set()
        pending = [*reversed(terms)]
        while pending:
            one = pending.pop()
            if one.free and one.uid not in seen:
                seen.add(one.uid)
                if one.op in ("var", "ph"):
                    numbers[one.uid] = len(numbers)
                pending += reversed(self._sorted(one))
        found: dict[int, bytes] = {}
        for term in terms:
            self._add(term, found, numbers)
        return sha256(b"".join(found[one.uid] for one in terms)).hexdigest()

    def _add(self, term: Term, found: dict[int, bytes], numbers: Mapping[int, int]) -> None:
        """Find the digests of a term and of its parts."""
        pending = [term]
        while pending:
            one = pending[-1]
            if one.uid not in found and not one.free and numbers:
                found[one.uid] = self._shapes[one.uid]
            missing = [] if one.uid in found else [a for a in one.args if a.uid not in found]
            pending += missing
            if not missing:
                pending.pop()
                if one.uid not in found:
                    parts = [found[arg.uid] for arg in one.args]
                    found[one.uid] = sha256(_written(one, parts, numbers)).digest()

    def _sorted(self, term: Term) -> Sequence[Term]:
        if not _is_unordered(term):
            return term.args
        return sorted(term.args, key=lambda one: self._shapes[one.uid])


def _is_unordered(term: Term) -> bool:
    operator = term.data[0] if term.op == "ew" and isinstance(term.data, tuple) else None
    return term.op in _UNORDERED or operator in COMMUTE


def _written(term: Term, parts: list[bytes], numbers: Mapping[int, int]) -> bytes:
    """What a term is made of, as bytes."""
    data: object = term.data
    if term.op == "lam" or (term.op in LEAVES and term.op[0] != "b"):
        binds = term.data if term.op == "lam" else ()
        assert isinstance(binds, tuple)
        kinds = term.data[1:] if isinstance(term.data, tuple) and term.op == "ph" else ()
        data = [(one.op, one.data) for one in binds], kinds, numbers.get(term.uid)
    if term.op == "poly":
        assert isinstance(term.data, tuple)
        parts = [b"%d %b" % pair for pair in zip(term.data, parts, strict=True)]
        data = None
    if _is_unordered(term):
        parts.sort()
    return b"\0".join([f"{term.op} {data!r} {len(parts)}".encode(), *parts])
