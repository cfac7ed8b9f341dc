"""Terms: what a value is, as an expression, made once each, so that equal terms are one object.

An int64 number is a polynomial (`poly`) over atoms, a bool is a formula, any other element an
opaque term. What a term binds stands in a `lam`, whose variables are numbered by its height, so
that two terms which differ in the names of bound variables only are one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from time import monotonic
from typing import Any
from zlib import crc32

from passes.operators.comparisons import COMPARISONS
from passes.verify.executor import Ended


@dataclass(eq=False, slots=True)
class Term:
    """An operator applied to terms. It never changes; what is frozen takes twice as long to make.

    `data` is hashable, `free` numbers the variables and placeholders in it that nothing binds,
    `height` is how deep what it binds is nested, `order` sorts terms the same in every process,
    whatever the variables are called.
    """

    op: str
    data: Any
    args: tuple[Term, ...]
    uid: int
    free: frozenset[int] = field(repr=False)
    height: int = field(repr=False)
    order: int = field(repr=False)
    shown: tuple[str, ...] = field(default=(), repr=False)

    @property
    def parts(self) -> tuple[Any, ...]:
        """The data of a term that has several."""
        parts: tuple[Any, ...] = self.data
        return parts

    def __str__(self) -> str:
        return formula(self)


#: Leaves that stand for a value, and for a function of indices; `b` where a `lam` binds them.
LEAVES = {"var", "bv", "ph", "bp"}


class OutOfTime(Ended):
    """The proof takes longer than it may, for the reason given if it would."""


class Interned:
    """Every term of a proof, by what it is made of."""

    def __init__(self) -> None:
        self.all: list[Term] = []  # by uid
        self._terms: dict[tuple[str, Hashable, tuple[Term, ...]], Term] = {}
        self._kinds: dict[tuple[str, Hashable], int] = {}
        self._serial = 0
        self._made = 0  # also terms that there were, of which a proof may make very many
        self.end = self.most = float("inf")

    def make(
        self,
        op: str,
        data: Hashable = None,
        args: Iterable[Term] = (),
        shown: tuple[str, ...] = (),
    ) -> Term:
        """The term of these parts, which is `shown` by the names that it got first.

        Raises:
            OutOfTime: the proof takes too long, or too many terms.
        """
        self._made += 1
        if not self._made % 256 and monotonic() > self.end:
            raise OutOfTime
        args = tuple(args)
        key = op, data, args
        found = self._terms.get(key)
        if found is not None:
            return found
        is_leaf = op in LEAVES
        free = frozenset((len(self.all),)) if is_leaf else _together([a.free for a in args])
        kind = (op, None if is_leaf else data)
        if kind not in self._kinds:
            self._kinds[kind] = crc32((op if is_leaf else f"{op}{data}").encode())
        order = crc32("".join([f" {arg.order}" for arg in args]).encode(), self._kinds[kind])
        height = max([a.height for a in args], default=0)
        return self._add(key, Term(op, data, args, len(self.all), free, height, order, shown))

    def lam(self, height: int, binds: Iterable[Term], body: Term) -> Term:
        """A function of the variables and placeholders `binds`, all of this height."""
        binds = tuple(binds)
        key = "lam", (height, binds), (body,)
        if key in self._terms:
            return self._terms[key]
        free = body.free - {one.uid for one in binds}
        kinds = ",".join(f"{one.op}{one.data}" for one in binds)
        order = crc32(f"lam {kinds} {body.order}".encode())
        return self._add(key, Term("lam", binds, (body,), len(self.all), free, height, order))

    def _add(self, key: tuple[str, Hashable, tuple[Term, ...]], term: Term) -> Term:
        if term.uid > self.most:
            raise OutOfTime(f"more than {self.most} terms")
        self._terms[key] = term
        self.all.append(term)
        return term

    def serial(self) -> int:
        """A number that names one thing."""
        self._serial += 1
        return self._serial


def _together(some: Sequence[frozenset[int]]) -> frozenset[int]:
    """All of some sets, few of which have members."""
    found = [one for one in some if one]
    return found[0].union(*found[1:]) if found else frozenset()


def subterms(*terms: Term) -> Iterator[Term]:
    """Every term in terms once, from the left to the right."""
    seen: set[int] = set()
    pending = [*reversed(terms)]
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


#: A polynomial: the factor of each product of atoms, the empty product for the constant.
Sum = Mapping[tuple[Term, ...], int]


def polynomial(term: Term) -> dict[tuple[Term, ...], int]:
    """The parts of a `poly`."""
    return {mono.args: factor for factor, mono in zip(term.data, term.args, strict=True)}


# -- terms as formulas

#: How deep a formula is written, and how long it gets.
_DEEPEST, _LONGEST = 9, 240
_LETTERS = "ijkpqrstuvw"
#: How operators are written, and how tightly they bind.
_INFIX = {
    "Add": ("+", 2),
    "Sub": ("-", 2),
    "Mul": ("*", 1),
    "Div": ("/", 1),
    **{op: (signs, 3) for op, signs in COMPARISONS.items()},
    "Equal": ("==", 3),
}
#: How tightly a formula binds: an atom, a product, a sum, a comparison, anything else.
_ATOM, _PRODUCT, _SUM, _COMPARISON, _LOOSE = range(5)


def formula(term: Term, variables: Sequence[Term] = ()) -> str:
    """A term as a formula; `variables` get the first letters."""
    return Writer(variables).text(term)


def difference(left: Term, right: Term, variables: Sequence[Term] = ()) -> tuple[str, str, str]:
    """The smallest parts in which two terms differ, as formulas, and the place in which they are,
    empty where that is the term itself."""
    writer, places = Writer(variables), []
    while (number := _unlike(left, right)) is not None:
        inner = [atom_of(side.args[number]) for side in (left, right)]
        if left.op in ("ge0", "eq0", "poly") or (inner[0].op == "rec" and _unlike(*inner) is None):
            break
        if left.op == "rec":
            places.append(writer.enter(left, number))
        left, right = inner
    full = writer.spelled_out()
    texts = [writer.text(one) for one in (left, right)]
    if texts[0] == texts[1]:
        texts = [full.text(one) for one in (left, right)]
    return texts[0], texts[1], " of ".join(reversed(places))


def _unlike(left: Term, right: Term) -> int | None:
    """The only argument in which two terms of one operator differ; None where there is none."""
    if left.op != right.op or left.data != right.data or len(left.args) != len(right.args):
        return None
    pairs = enumerate(zip(left.args, right.args, strict=True))
    unlike = [number for number, (one, other) in pairs if one is not other]
    return unlike[0] if len(unlike) == 1 else None


class Writer:
    """Writes terms; remembers what bound variables are called."""

    def __init__(self, variables: Sequence[Term] = ()) -> None:
        self._names: dict[Term, str] = {}
        self._now: set[Term] = set()  # numbers of the iteration that is described
        self.is_full = False  # recurrences are spelled out
        for variable in variables:
            self._named(variable)

    def text(self, term: Term) -> str:
        """The formula of a term; a long one is cut off."""
        text, _ = self._write(term, _DEEPEST)
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."

    def spelled_out(self) -> Writer:
        """A writer that spells out recurrences, and calls everything the same."""
        made = Writer()
        made._names, made._now, made.is_full = dict(self._names), set(self._now), True
        return made

    def enter(self, recurrence: Term, number: int) -> str:
        """The name of a part of a recurrence, whose bound values are named from here on."""
        name = recurrence.shown[number % len(recurrence.shown)]
        if number < len(recurrence.shown):
            return f"the initial value of {name!r}"
        self._bind(recurrence, recurrence.args[number])
        return f"the step of {name!r}"

    def _bind(self, recurrence: Term, step: Term) -> None:
        """Name what a step binds: the number of the iteration, indices and states."""
        states = step.data[-len(recurrence.shown) :]
        self._names.update(zip(states, recurrence.shown, strict=True))
        self._now.add(step.data[0])

    def _named(self, variable: Term) -> str:
        if variable not in self._names:
            used = set(self._names.values())
            turns = (letter * turn for turn in count(1) for letter in _LETTERS)
            self._names[variable] = next(one for one in turns if one not in used)
        return self._names[variable]

    def _write(self, term: Term, depth: int) -> tuple[str, int]:
        """The formula of a term, and how tightly it binds."""
        if not depth:
            return "...", _ATOM
        if term.op in LEAVES:
            return term.shown[0] if term.shown else self._named(term), _ATOM
        if term.op == "lam":
            return self._write(term.args[0], depth)
        depth -= 1
        if term.op in _SPELLED:
            pattern, inner, level = _SPELLED[term.op]
            parts = [self._part(one, depth, inner) for one in term.args]
            return pattern.format(*parts), level
        match term.op:
            case "dim" if isinstance(term.data, tuple):
                return "size of axis {1} of {0!r}".format(*term.data), _SUM
            case "dim":
                return str(term.data), _ATOM
            case "elem":
                kind, name, _ = term.data
                return self._read(name if kind == "input" else "constant", term.args, depth)
            case "const":
                return _literal(*term.data), _ATOM
            case "app":
                return self._read(self._part(term.args[0], depth, _ATOM), term.args[1:], depth)
            case "st":
                return self._state(term, depth)
            case "ew":
                return self._operator(term, depth)
            case "output" | "answers" | "size":
                return self._opaque(term, depth)
            case "red":
                *sizes, function = term.args
                return f"{term.data[0]}({self._over(sizes, function, 'for', depth)})", _ATOM
            case "forall":
                size, function = term.args
                return self._over([size], function, "for every", depth), _LOOSE
            case "trips":
                return self._trips(term, depth)
            case "poly":
                return self._sum(polynomial(term), depth)
            case "and" | "or":
                parts = [self._part(one, depth, _COMPARISON) for one in term.args]
                return f" {term.op} ".join(parts), _LOOSE
            case "ge0":
                return self._compared(term.args[0], ("<=", ">="), depth)
            case "eq0":
                return self._compared(term.args[0], ("==", "=="), depth)
            case "not" if term.args[0].op == "eq0":
                return self._compared(term.args[0].args[0], ("!=", "!="), depth)
            case "not":
                return f"not {self._part(term.args[0], depth, _ATOM)}", _LOOSE
        return self._call(term.op, term.args, depth)

    def _part(self, term: Term, depth: int, level: int) -> str:
        """A part of a formula, in parentheses where it binds less tightly than `level`."""
        text, own = self._write(term, depth)
        return text if own <= level else f"({text})"

    def _list(self, terms: Sequence[Term], depth: int) -> str:
        return ", ".join(self._part(one, depth, _LOOSE) for one in terms)

    def _call(self, name: str, args: Sequence[Term], depth: int) -> tuple[str, int]:
        return f"{name}({self._list(args, depth)})" if args else name, _ATOM

    def _read(self, name: str, indices: Sequence[Term], depth: int) -> tuple[str, int]:
        return f"{name}[{self._list(indices, depth)}]" if indices else name, _ATOM

    def _state(self, term: Term, depth: int) -> tuple[str, int]:
        recurrence, iteration, *indices = term.args
        name = recurrence.shown[0]
        text, _ = self._read(name, indices, depth)
        if iteration.data == (1,) and self._now.intersection(iteration.args[0].args):
            return text, _ATOM
        after = f"{text} after {self._part(iteration, depth, _SUM)} iterations"
        if not self.is_full or depth < 3:
            return after, _COMPARISON
        parts = recurrence.args[0], recurrence.args[len(recurrence.shown)]
        self._bind(recurrence, parts[1])
        initial, step = (self._part(one, depth, _LOOSE) for one in parts)
        return f"{after}, {name} = {initial}, then {step}", _LOOSE

    def _operator(self, term: Term, depth: int) -> tuple[str, int]:
        op, attributes, dtype, *_ = term.data
        if op in _INFIX and len(term.args) == 2:
            sign, level = _INFIX[op]
            left = self._part(term.args[0], depth, level)
            return f"{left} {sign} {self._part(term.args[1], depth, level - 1)}", level
        if op == "Cast":
            return self._call(dtype, term.args, depth)
        written = "" if not attributes else f"<{_written(attributes)}>"
        return self._call(f"{op}{written}", term.args, depth)

    def _opaque(self, term: Term, depth: int) -> tuple[str, int]:
        """An output of an operator as a whole, one of its sizes, or that it answers."""
        read = [n for n, one in enumerate(term.args) if one.op == "lam"]
        inputs = [term.args[n].args[0] for n in read]
        inner = self._call(str(term.data[1]), inputs, depth)[0]
        if term.op != "output":
            return f"{inner} {'answers' if term.op == 'answers' else 'has a size'}", _LOOSE
        return self._read(inner, term.args[max(read, default=-1) + 1 :], depth)

    def _over(self, sizes: Sequence[Term], function: Term, word: str, depth: int) -> str:
        """A function of indices below these sizes."""
        bounds = [
            f"{self._named(one)} < {self._part(size, depth, _SUM)}"
            for one, size in zip(function.data, sizes, strict=False)
        ]
        written = f" {word} {', '.join(bounds)}" if bounds else ""
        return f"{self._part(function, depth, _LOOSE)}{written}"

    def _trips(self, term: Term, depth: int) -> tuple[str, int]:
        limit, function = term.args
        self._now.add(function.data[0])
        most = "" if limit.op == "without" else f", at most {self._part(limit, depth, _SUM)}"
        return f"iterations while {self._part(function, depth, _COMPARISON)}{most}", _LOOSE

    def _sum(self, parts: Sum, depth: int) -> tuple[str, int]:
        """The sum of products, what is added first."""
        written: list[tuple[int, str, int]] = []
        left = dict(parts)
        for mono in parts:
            rest = _rest(mono, left)
            if rest:
                value, by = (self._part(one, depth, _PRODUCT) for one in mono[0].args)
                written.append((rest, f"{value} mod {by}", _PRODUCT))
                for one in (mono, *polynomial(mono[0].args[0])):
                    del left[one]
        for mono, factor in left.items():
            if len(mono) == 1 and factor == 1:
                written.append((1, *self._write(mono[0], depth)))
                continue
            names = [self._part(atom, depth, _ATOM) for atom in mono]
            shown = names if abs(factor) == 1 and names else [str(abs(factor)), *names]
            written.append((1 if factor > 0 else -1, "*".join(shown), min(len(shown) - 1, 1)))
        written.sort(key=lambda one: -one[0])
        if not written:
            return "0", _ATOM
        (sign, text, level), *others = written
        if not others and sign > 0:
            return text, level
        shown_parts = [(turn, one if own <= _PRODUCT else f"({one})") for turn, one, own in written]
        joined = "".join(f" {'+' if turn > 0 else '-'} {one}" for turn, one in shown_parts)
        return joined[3:] if sign > 0 else f"-{joined[3:]}", _SUM

    def _compared(self, value: Term, signs: tuple[str, str], depth: int) -> tuple[str, int]:
        """A sum compared with 0, as two sums of what is added and what is subtracted."""
        parts = polynomial(value)
        rests = {mono: rest for mono in parts if (rest := _rest(mono, parts))}
        turn = next(iter(rests.values()), 1 if next(iter(parts.values())) > 0 else -1)
        own = {
            mono: factor * turn
            for mono, factor in parts.items()
            if mono and (factor * turn > 0 or mono in rests)
        }
        other = {mono: -factor * turn for mono, factor in parts.items() if mono not in own}
        left, right = (self._sum(side, depth)[0] for side in (own, other))
        return f"{left} {signs[turn > 0]} {right}", _COMPARISON


#: Terms that are spelled with their parts, how tightly these have to bind, and how they do.
_SPELLED = {
    "row": ("{0}[{1}]", _LOOSE, _ATOM),
    "pair": ("{0} * {1}", _ATOM, _PRODUCT),
    "idiv": ("{0} div {1}", _ATOM, _PRODUCT),
    "ite": ("{1} if {0} else {2}", _COMPARISON, _LOOSE),
}


def _literal(dtype: str, _: str, text: str) -> str:
    """A constant; floats that are whole numbers with all of their digits."""
    value = float(text) if "float" in dtype else 0.5
    return f"{value:.1f}" if value.is_integer() and abs(value) < 1e15 else text


def _rest(mono: tuple[Term, ...], parts: Sum) -> int:
    """1 where a sum has a number less the multiple of its quotient `mono`, which is the rest of
    its division, -1 where it has the opposite, else 0."""
    if mono not in parts or len(mono) != 1 or mono[0].op != "idiv":
        return 0
    value, by = mono[0].args
    if not _number(by) or abs(parts[mono]) != _number(by):
        return 0
    sign = 1 if parts[mono] < 0 else -1
    whole = polynomial(value)
    return sign if all(parts.get(one) == sign * many for one, many in whole.items()) else 0


def _number(value: Term) -> int:
    """A constant of at least 1; else 0."""
    alone = len(value.args) == 1 and not value.args[0].args
    return max(0, value.data[0]) if alone else 0


def _written(attributes: object) -> str:
    """Attributes, in short."""
    if isinstance(attributes, tuple):
        pair = (
            len(attributes) == 2 and isinstance(name := attributes[0], str) and name.isidentifier()
        )
        return ("=" if pair else ", ").join(map(_written, attributes))
    text = str(attributes)
    return str(float.fromhex(text)) if text.lstrip("-").startswith("0x") else text
