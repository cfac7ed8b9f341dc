"""Who makes the choices of a proof: a search, which notes them, or a certificate, which states
them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from passes.errors import NOT_PRODUCED, PassesError
from passes.proving.terms.algebra import Algebra, Manner
from passes.proving.terms.field import AtAllSizes
from passes.proving.terms.term import Term, formula

#: How many characters of a certificate a sentence has at most.
_LONG = 120


class DoesNotHold(PassesError):
    """A certificate does not show what it states; the sentence names what differs."""

    exit_code = NOT_PRODUCED


def printable(text: object) -> str:
    """The begin of what a certificate states, without characters that cannot be printed."""
    return "".join(one if one.isprintable() else "?" for one in f"{text}"[:_LONG])


@dataclass(frozen=True)
class Relation:
    """A state of a loop that before its iteration i is a state of another loop before
    `stride*i + begin`, as the `text` tells.

    A `begin` or `stride` that is no number is None: it is read in the initial value, or in the
    first iteration. `states` are the numbers of the states of the other loop that the states are,
    in order.
    """

    text: str
    begin: int | None
    stride: int | None
    states: Sequence[int]


@dataclass(frozen=True)
class Choices:
    """What a proof for all sizes chose: its manner, and relations between loops, in the order in
    which it needs them."""

    manner: Manner
    relations: Sequence[Relation]


@dataclass
class Guide:
    """Notes the relations of a proof, which are sought, or those that a certificate has `stated`.

    `field` compares what is no same term, if it is given; `regrouped`: the proof needs that.
    """

    algebra: Algebra
    stated: Sequence[Relation] | None = None
    relations: list[Relation] = field(default_factory=list)
    field: AtAllSizes | None = None
    regrouped: bool = False

    def same(self, left: Term, right: Term) -> bool:
        """Return whether two terms are equal as they are."""
        algebra, both = self.algebra, left.op == right.op == "poly"
        return left is right or (both and algebra.equal(left, right) is algebra.true)

    def of(self, own: Term, iteration: Term) -> Sequence[Relation | None]:
        """What is stated of a recurrence before an iteration; None alone: it is to be sought."""
        if self.stated is None:
            return [None]
        begin = _text(own, iteration, "")
        return [one for one in self.stated if one.text.startswith(begin)]

    def relation(
        self, own: Term, iteration: Term, other: Term, begin: Term, stride: Term
    ) -> Relation:
        """The relation that a recurrence before an iteration is another one before
        `stride*iteration + begin`, without states."""
        algebra = self.algebra
        at = algebra.add(algebra.mul(stride, iteration), begin)
        text = _text(own, iteration, _text(other, at))
        return Relation(text, algebra.number(begin), algebra.number(stride), ())

    def holds(self, relation: Relation) -> None:
        """Note that a relation is shown."""
        if relation not in self.relations:
            self.relations.append(relation)


def _text(recurrence: Term, iteration: Term, *other: str) -> str:
    return " is ".join((f"{recurrence.shown[0]!r} before iteration {formula(iteration)}", *other))
