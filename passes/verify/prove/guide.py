"""Who makes the choices of a proof: a search, which notes them, or a certificate, which states
them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from passes.errors import NOT_PRODUCED, PassesError
from passes.verify.prove.algebra import Algebra, Manner
from passes.verify.prove.digests import Digests
from passes.verify.prove.formula import formula
from passes.verify.prove.terms import Term

#: How a case ends: the models are equal, nothing is like what it assumes, the original fails, or it
#: is divided by another condition.
End = Literal["equal", "impossible", "original-fails", "divided"]


class DoesNotHold(PassesError):
    """A certificate does not show what it states; the sentence names what differs."""

    exit_code = NOT_PRODUCED


@dataclass(frozen=True)
class Decision:
    """A condition on inputs and sizes, and whether it holds; `digest` is that of its term."""

    condition: str
    holds: bool
    digest: str


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
class Split:
    """What the indices of an output are divided by; `digest` is that of its terms."""

    output: str
    by: str
    digest: str


@dataclass(frozen=True)
class Case:
    """A case of a proof: what it assumes, and how it ends.

    If it is `divided`, it is `by` a condition that holds in another case, and does not in a third
    one; if that is `certain` the original fails where the condition does not hold, and there is no
    third.
    """

    decisions: Sequence[Decision]
    ends: End
    by: Decision | None = None
    certain: bool = False
    relations: Sequence[Relation] = ()
    splits: Sequence[Split] = ()


@dataclass(frozen=True)
class Choices:
    """What a proof for all sizes chose: its manner, and its cases in the order of the proof."""

    manner: Manner
    cases: Sequence[Case]


@dataclass(frozen=True)
class Way:
    """How a recurrence is read: before its iteration i, each of its states is the state of `other`
    of this number before `stride*i + begin`."""

    other: Term
    begin: Term
    stride: Term
    states: tuple[int, ...]


@dataclass
class Guide:
    """Leaves every choice to the search, and notes it."""

    algebra: Algebra
    cases: list[Case] = field(default_factory=list)
    digests: Digests = field(default_factory=Digests)
    _decisions: list[Decision] = field(default_factory=list)
    _relations: dict[str, Relation] = field(default_factory=dict)
    _splits: dict[tuple[str, str], Split] = field(default_factory=dict)

    #: Whether relations between recurrences are sought.
    searches: ClassVar[bool] = True

    def enter(self, decisions: Sequence[tuple[Term, bool]]) -> None:
        """Begin with a case."""
        self._relations.clear()
        self._splits.clear()
        self._decisions = [self._decision(*one) for one in decisions]

    def end(self, ends: End, by: Term | None = None, *, certain: bool = False) -> None:
        """The case ends, divided by a condition where there is one."""
        condition = None if by is None else self._decision(by, True)
        parts = [*self._relations.values()], [*self._splits.values()]
        self.cases.append(Case([*self._decisions], ends, condition, certain, *parts))

    def split(self, output: str, by: Sequence[Term], variables: Sequence[Term]) -> None:
        """The element of an output at these variables is studied by the values of a term."""
        text = " mod ".join(formula(one, variables) for one in by)
        digest = self.digests.of(*variables, *by)
        self._splits[output, digest] = Split(output, text, digest)

    def relation(self, asked: Sequence[Term]) -> Relation | None:
        """What is stated of a recurrence, of its iteration and what is assumed, if it is."""
        return None

    def relates(self, asked: Sequence[Term], way: Way) -> None:
        """A recurrence is read like this."""
        at = self.algebra.add(self.algebra.mul(way.stride, asked[1]), way.begin)
        digest = self.digests.of(*asked)
        self._relations[digest] = Relation(
            f"{asked[0].shown[0]!r} before iteration {formula(asked[1])} is "
            f"{way.other.shown[0]!r} before iteration {formula(at)}",
            digest,
            self.digests.of(way.other),
            self.algebra.number(way.begin),
            self.algebra.number(way.stride),
            [*way.states],
        )

    def _decision(self, condition: Term, holds: bool) -> Decision:
        return Decision(formula(condition), holds, self.digests.of(condition))


@dataclass
class Following(Guide):
    """Takes every choice from the cases of a certificate; what it does not state ends the proof."""

    stated: Sequence[Case] = ()
    _case: Case | None = None

    searches: ClassVar[bool] = False

    def enter(self, decisions: Sequence[tuple[Term, bool]]) -> None:
        """Begin with a case. Raises DoesNotHold if there is no such case."""
        super().enter(decisions)
        own = self._decisions
        self._case = next((one for one in self.stated if [*one.decisions] == own), None)
        if self._case is None:
            raise DoesNotHold(f"there is no case for {self._where}")

    def end(self, ends: End, by: Term | None = None, *, certain: bool = False) -> None:
        """The case ends. Raises DoesNotHold if it is stated to end in another way."""
        super().end(ends, by, certain=certain)
        case, made = self._case, self.cases[-1]
        assert case is not None
        if case.by != made.by or case.ends != ends:
            ways = [
                f"divided by `{one.by.condition}`" if one.by else one.ends for one in (case, made)
            ]
            raise DoesNotHold(
                f"the case for {self._where} is stated to be {ways[0]}, and is {ways[1]}"
            )

    def split(self, output: str, by: Sequence[Term], variables: Sequence[Term]) -> None:
        """Raises DoesNotHold if it is not stated that an output is studied by a term."""
        super().split(output, by, variables)
        assert self._case is not None
        for made in self._splits.values():
            if made not in self._case.splits:
                raise DoesNotHold(
                    f"{output!r} is to be studied by `{made.by}`, which is not stated"
                )

    def relation(self, asked: Sequence[Term]) -> Relation | None:
        """What is stated of a recurrence, of its iteration and what is assumed, if it is."""
        if self._case is None or not self._case.relations:
            return None
        digest = self.digests.of(*asked)
        return next((one for one in self._case.relations if one.of == digest), None)

    @property
    def _where(self) -> str:
        conditions = [
            one.condition if one.holds else f"not ({one.condition})" for one in self._decisions
        ]
        return f"`{' and '.join(conditions) or 'everything'}`"
