"""Who makes the choices of a proof: a search, which notes them, or a certificate, which states
them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import ClassVar, Literal

from passes.errors import NOT_PRODUCED, PassesError
from passes.proving.families import commutes
from passes.proving.terms.algebra import Algebra, Manner
from passes.proving.terms.term import LEAVES, Term, formula

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
    return term.op in _UNORDERED or (term.op == "ew" and commutes(term.parts[0], term.parts[2]))


def _written(term: Term, parts: list[bytes], numbers: Mapping[int, int]) -> bytes:
    """What a term is made of, as bytes."""
    data: object = term.data
    if term.op == "lam" or (term.op in LEAVES and term.op[0] != "b"):
        binds = term.data if term.op == "lam" else ()
        assert isinstance(binds, tuple)
        kinds = term.data[1:] if isinstance(term.data, tuple) and term.op == "ph" else ()
        data = [(one.op, one.data) for one in binds], kinds, numbers.get(term.uid)
    if term.op == "poly":
        parts = [b"%d %b" % pair for pair in zip(term.data, parts, strict=True)]
        data = None
    if _is_unordered(term):
        parts.sort()
    return b"\0".join([f"{term.op} {data!r} {len(parts)}".encode(), *parts])


#: How a case ends: the models are equal, nothing is like what it assumes, the original fails, or it
#: is divided by another condition.
End = Literal["equal", "impossible", "original-fails", "divided"]
#: How many characters of a certificate a sentence has at most.
_LONG = 120


class DoesNotHold(PassesError):
    """A certificate does not show what it states; the sentence names what differs."""

    exit_code = NOT_PRODUCED


def printable(text: object) -> str:
    """The begin of what a certificate states, without characters that cannot be printed."""
    return "".join(one if one.isprintable() else "?" for one in f"{text}"[:_LONG])


@dataclass(frozen=True)
class Decision:
    """A condition, and whether it holds; `digest` is that of its term."""

    condition: str
    digest: str
    holds: bool = True


@dataclass(frozen=True)
class Relation:
    """A state of a loop that before its iteration i is a state of another loop before
    `stride*i + begin`.

    `of` is the digest of the recurrence, of the iteration of which it is read, and of what is
    assumed; `other` that of the other recurrence. A `begin` or `stride` that is no number is None:
    it is read in the initial value, or in the first iteration. `states` are the numbers of the
    states of the other loop that the states are, in order.
    """

    text: str
    of: str
    other: str
    begin: int | None
    stride: int | None
    states: Sequence[int]


@dataclass(frozen=True)
class Case:
    """A case of a proof: what it assumes, and how it ends.

    If it is `divided`, it is `by` a condition that holds in another case, and does not in a third
    one; if that is `certain` the original fails where the condition does not hold, and there is no
    third. `splits` are what the indices of outputs are divided by within the case.
    """

    decisions: Sequence[Decision]
    relations: list[Relation] = field(default_factory=list)
    splits: list[Decision] = field(default_factory=list)
    ends: End = "equal"
    by: Decision | None = None
    certain: bool = False


@dataclass(frozen=True)
class Choices:
    """What a proof for all sizes chose: its manner, and its cases in the order of the proof."""

    manner: Manner
    cases: Sequence[Case]


@dataclass
class Guide:
    """Leaves every choice to the search, and notes it."""

    algebra: Algebra
    cases: list[Case] = field(default_factory=list)
    digests: Digests = field(default_factory=Digests)
    case: Case = Case(())

    #: Whether relations between recurrences are sought.
    searches: ClassVar[bool] = True

    def enter(self, decisions: Sequence[tuple[Term, bool]]) -> None:
        """Begin with a case."""
        self.case = Case([self._decision(*one) for one in decisions])

    def end(self, ends: End, by: Term | None = None, *, certain: bool = False) -> None:
        """The case ends, divided by a condition where there is one."""
        condition = None if by is None else self._decision(by, True)
        self.cases.append(replace(self.case, ends=ends, by=condition, certain=certain))

    def split(self, output: str, by: Sequence[Term], variables: Sequence[Term]) -> Decision:
        """The element of an output at these variables is studied by the values of a term."""
        text = " mod ".join(formula(one, variables) for one in by)
        made = Decision(f"{output!r} by {text}", self.digests.of(*variables, *by))
        if made not in self.case.splits:
            self.case.splits.append(made)
        return made

    def relation(self, asked: Sequence[Term]) -> Relation | None:
        """What is stated of a recurrence, of its iteration and what is assumed, if it is."""
        return None

    def relates(
        self, asked: Sequence[Term], other: Term, begin: Term, stride: Term, states: Sequence[int]
    ) -> None:
        """A recurrence before its iteration i is another one before `stride*i + begin`, each of its
        states the state of this number."""
        at = self.algebra.add(self.algebra.mul(stride, asked[1]), begin)
        sides = (asked[0].shown[0], asked[1]), (other.shown[0], at)
        made = Relation(
            " is ".join(f"{name!r} before iteration {formula(when)}" for name, when in sides),
            self.digests.of(*asked),
            self.digests.of(other),
            self.algebra.number(begin),
            self.algebra.number(stride),
            [*states],
        )
        if made not in self.case.relations:
            self.case.relations.append(made)

    def _decision(self, condition: Term, holds: bool) -> Decision:
        return Decision(formula(condition), self.digests.of(condition), holds)


@dataclass
class Following(Guide):
    """Takes every choice from the cases of a certificate; what it does not state ends the proof."""

    stated: Sequence[Case] = ()
    own: Case = Case(())

    searches: ClassVar[bool] = False

    def enter(self, decisions: Sequence[tuple[Term, bool]]) -> None:
        """Begin with a case. Raises DoesNotHold if there is no such case."""
        super().enter(decisions)
        own = [one for one in self.stated if one.decisions == self.case.decisions]
        if not own:
            raise DoesNotHold(f"it has nothing on {self._where}")
        self.own = own[0]

    def split(self, output: str, by: Sequence[Term], variables: Sequence[Term]) -> Decision:
        """Raises DoesNotHold if it is not stated that an output is studied by a term."""
        made = super().split(output, by, variables)
        if made not in self.own.splits:
            raise DoesNotHold(f"{self._where} does not divide the output {made.condition}")
        return made

    def relation(self, asked: Sequence[Term]) -> Relation | None:
        """What is stated of a recurrence, of its iteration and what is assumed, if it is."""
        digest = self.digests.of(*asked) if self.own.relations else ""
        return next((one for one in self.own.relations if one.of == digest), None)

    @property
    def _where(self) -> str:
        decisions = self.case.decisions
        conditions = [one.condition if one.holds else f"not ({one.condition})" for one in decisions]
        return (
            f"the case `{' and '.join(conditions)}`"
            if conditions
            else "the case without conditions"
        )
