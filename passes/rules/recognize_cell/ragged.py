"""Reads bodies that keep the states of a row that has ended: by its length, or by a mask."""

from __future__ import annotations

from dataclasses import dataclass, replace

from onnx import TensorProto

from passes.bodies.time_body import TimeBody
from passes.ir.operators import op_of
from passes.loops.form import Carried, Scanned
from passes.operators.comparisons import COMPARISONS, ORDERINGS
from passes.rules.recognize_cell.columns import Reader
from passes.types.value_types import elem_type_of


@dataclass(frozen=True)
class Choice:
    """A value of the body that is `yes` in the rows where the bool `flag` holds, else `no`.

    Where it is `summed`, `flag * yes + (1 - flag) * no`, both must be finite.
    """

    flag: str
    yes: str
    no: str
    summed: bool

    def sides(self, below: bool) -> tuple[str, str]:
        """The value in a row that goes on, and in one that has ended; `below`: the flag holds where
        a row goes on."""
        return (self.yes, self.no) if below else (self.no, self.yes)


@dataclass(frozen=True)
class Ends:
    """The ends of rows: after `lengths` elements, int [batch], or when the scanned bool [batch, 1]
    `mask` becomes false, or true if `inverse`.

    `counter` is the carried iteration number, `repeated` the carried last output. Beyond the end,
    `filling` is collected, or the last output where it is empty, which is
    `initial` in an empty row. `finite` are tensors in which an infinity or NaN makes a difference.
    """

    lengths: str
    mask: Scanned | None
    inverse: bool
    counter: Carried | None
    repeated: Carried | None
    filling: str
    initial: str
    finite: tuple[str, ...]


@dataclass(frozen=True)
class _Choices:
    """Reads choices in one body."""

    read: Reader

    def of(self, name: str) -> Choice | None:
        """The choice that a value is: a Where, or `flag * new + (1 - flag) * old`."""
        where = self.read.made_by(name, "Where")
        if where is not None:
            known, (first, second) = self._flag(where[0]), where[1:]
        else:
            pairs = list(map(self._scaled, self.read.made_by(name, "Add") or ()))
            if len(pairs) != 2:
                return None
            (known, first), (other, second) = pairs
            known = known if other and known == (other[0], not other[1]) else None
        if known is None:
            return None
        flag, inverse = known
        yes, no = (second, first) if inverse else (first, second)
        return Choice(flag, self.read.origin(yes), self.read.origin(no), summed=where is None)

    def _scaled(self, name: str) -> tuple[tuple[str, bool] | None, str]:
        """The flag of a product of a flag and a value, None where it is none, and the value."""
        factors = self.read.made_by(name, "Mul") or ()
        for factor, value in zip(factors, reversed(factors), strict=True):
            cast = self.read.made_by(factor, "Cast")
            if cast and elem_type_of(self.read.body.rows.types.get(cast[0])) == TensorProto.BOOL:
                return self._flag(cast[0]), value
        return None, ""

    def _flag(self, name: str) -> tuple[str, bool] | None:
        """The bool that a flag [batch, 1] is, perhaps as [batch], and whether it is negated."""
        inverse, name = False, self.read.origin(name)
        if (self.read.dims(name) or ())[1:] != (1,):
            return None
        while True:
            name = self.read.origin(name)
            node = self.read.node(name)
            if node is None or op_of(node) not in ("Not", "Reshape", "Unsqueeze"):
                return name, inverse
            if op_of(node) != "Not" and not self._only_adds_axis(node.input[0], name):
                return name, inverse
            inverse ^= op_of(node) == "Not"
            name = node.input[0]

    def _only_adds_axis(self, before: str, after: str) -> bool:
        """Return whether a [batch] becomes [batch, 1]."""
        first, second = self.read.dims(before), self.read.dims(after)
        return first is not None and second is not None and (len(first), second[1:]) == (1, (1,))


def without_ends(body: TimeBody) -> tuple[TimeBody, Ends | None]:
    """The loop as if no row ended, and where rows end; as it is, and None, where they do not.

    Raises:
        Refused: `not-a-cell` where it cannot be told what happens at the end of a row.
    """
    read, form = Reader(body), body.form
    choices = _Choices(read)
    found = {carried: choices.of(carried.body_output) for carried in form.carried}
    chosen = {carried: choice for carried, choice in found.items() if choice is not None}
    if not chosen:
        return body, None
    flag = next(iter(chosen.values())).flag
    mask = next((one for one in form.scanned if one.body_input == flag), None)
    lengths, counter, below = ("", None, None) if mask else _compared(read, flag)
    elements = tuple(one for one in form.scanned if one != mask)
    others = [one for one in form.carried if one not in chosen and one != counter]
    shaped = not mask or (read.dims(flag) or ())[1:] == (1,)
    if others or not (mask or lengths) or len(elements) != 1 or not shaped:
        raise read.refusal(f"{flag!r} chooses between states, but is no mask or length", flag)
    if elements[0].reversed != (mask.reversed if mask else False):
        raise read.refusal(f"{flag!r} and the elements are in opposite order", flag)
    holds = {choice.no == one.body_input for one, choice in chosen.items()}
    (goes_on, *_) = holds
    kept = [choice.sides(goes_on)[1] == one.body_input for one, choice in chosen.items()]
    same = len({choice.flag for choice in chosen.values()}) == len(holds) == 1
    if not (same and all(kept)) or below not in (None, goes_on):
        raise read.refusal(f"{flag!r} does not keep each state where a row ends", flag)
    new = {one: choice.sides(goes_on)[0] for one, choice in chosen.items()}
    copies = [one for one in chosen if _is_copy(body, one, new)]
    taken = [(one, choices.of(one.body_output)) for one in form.collected if one.tensor]
    if any(choice is None or choice.flag != flag for _, choice in taken):
        raise read.refusal("it collects a value of rows that have ended", flag)
    initials = {choice: one.initial for one, choice in chosen.items()}
    values = {(*choice.sides(goes_on), initials.get(choice, "")) for _, choice in taken if choice}
    if len(copies) > 1 or len(values) > 1:
        raise read.refusal("it returns several values of rows that end", flag)
    output, filling, initial = next(iter(values), ("", "", ""))
    if filling and not initial and not read.is_leaf(filling):
        raise read.refusal(f"{filling!r} is collected of rows that have ended", filling)
    states = tuple(replace(one, body_output=new[one]) for one in chosen if one not in copies)
    collected = tuple(replace(one, body_output=output) for one, _ in taken)
    plain = replace(form, carried=states, scanned=elements, collected=collected)
    summed = any(choice.summed for choice in chosen.values())
    read_outside = (elements[0].tensor, *(one.initial for one in chosen)) if summed else ()
    copy = replace(copies[0], body_output=new[copies[0]]) if copies else None
    ends = Ends(
        lengths, mask, not goes_on, counter, copy, "" if initial else filling, initial, read_outside
    )
    return replace(body, form=plain), ends


def _is_copy(body: TimeBody, carried: Carried, new: dict[Carried, str]) -> bool:
    """Return whether a carried value is read only to be kept, beside a state with the same next
    value."""
    same = [one for one, value in new.items() if value == new[carried] and one != carried]
    return bool(same) and len(body.index.readers.get(carried.body_input, ())) == 1


def _compared(read: Reader, flag: str) -> tuple[str, Carried | None, bool | None]:
    """The lengths that a flag compares with the iteration number, the carried value that counts,
    and whether the flag holds before the end; "" where it is another comparison."""
    node = read.node(flag)
    if node is None or op_of(node) not in ORDERINGS:
        return "", None, None
    signs = COMPARISONS[op_of(node)]  # the number is below the length, or that is negated
    below = "=" not in signs
    first = below == ("<" in signs)
    number, lengths = map(read.origin, node.input if first else reversed(node.input))
    if read.is_leaf(lengths) and len(read.dims(lengths) or ()) == 1:
        for carried in read.body.form.carried:
            if number == carried.body_input and _counts(read, carried):
                return lengths, carried, below
    return "", None, None


def _counts(read: Reader, carried: Carried) -> bool:
    """Return whether a carried integer counts the iterations from 0."""
    added = map(read.origin, read.made_by(carried.body_output, "Add") or ())
    step = [read.body.rows.constants.get(name) for name in added if name != carried.body_input]
    values = [*step, read.body.site.constant(carried.initial)]
    return [value.tolist() for value in values if value is not None] == [1, 0]
