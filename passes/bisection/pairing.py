"""Pairs the values of two models: those of their signatures, and those of their runs, of which the
pairs that differ are yielded, the first ones first.

A value agrees with one of the other model that holds the same. It is held against the value that
the other model computes by the same operator of equal operands; failing that, against the one of
its name, or against what the other model computes of the same operands and nothing agrees with.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from onnx import ModelProto, TypeProto, ValueInfoProto

from passes.bisection.trace import Instance, Run, Trace
from passes.bisection.values import Sieve, Values
from passes.ir import scope as scoping
from passes.ir.attributes import attribute
from passes.ir.names import Names
from passes.ir.operators import op_of
from passes.ir.protos import copied, replace_all
from passes.types import signature
from passes.types.value_types import dims_of, elem_type_of, may_be_equal

#: How sure it is that two values belong together.
How = Literal["operator", "name", "operands", "output"]
#: Nodes of one operator and operand that are looked at, at most.
_MOST_ALIKE = 64
Operands = tuple[bytes, ...]


@dataclass(frozen=True)
class Pair:
    """Two values that belong together and differ; `last` is what ended before without a difference.
    `fed`: their nodes are already given what differs. `weak`: the value agrees with another one,
    perhaps by chance."""

    before: Instance
    after: Instance
    how: How
    last: Run | None
    fed: bool = False
    weak: bool = False


class Pairing:
    """The pairs of two runs. The caller calls `accept` for a pair that turns out to agree, before
    it asks for the next one."""

    def __init__(self, before: Trace, after: Trace, sieve: Sieve) -> None:
        self.before, self.after, self._near_enough = before, after, sieve.passes
        self._old, new = Values(before, sieve), Values(after, sieve)
        self._new = set(new.by_digest)
        self._near: set[bytes] = set()  # what only nearly agrees with a value after
        self._sliced = {
            part.digest
            for stack, parts in new.stacks
            if stack.digest in self._old.by_digest
            for part in parts
        }
        self.agreed_before = {
            part.digest
            for stack, parts in self._old.stacks
            if stack.digest in self._new
            for part in parts
        }
        self._by_structure: dict[tuple[str, Operands], list[Run]] = defaultdict(list)
        self._by_operands: dict[Operands, list[Run]] = defaultdict(list)
        self._by_operand: dict[tuple[str, bytes], list[Run]] = defaultdict(list)
        self._by_name: dict[tuple[str, tuple[int, ...]], list[Instance]] = defaultdict(list)
        for run in before.runs:
            operands = _operands(run)
            self._by_structure[_op(run), operands].append(run)
            self._by_operands[operands].append(run)
            for key in set(operands):
                self._by_operand[_op(run), key].append(run)
            for made in run.makes:
                if made is not None:
                    self._by_name[made.name, run.at.iterations].append(made)

    def value_before(self, key: bytes) -> Instance:
        """The value of the original that has this digest."""
        found = self._old.by_digest.get(key)
        if found is None:  # a slice
            found = next(one for one in self.after.instances if one.digest == key)
        return found

    def agrees_before(self, one: Instance) -> bool:
        """Return whether a value of the original agrees with one after."""
        found = one.digest in self._new or one.digest in self._near
        return found or one.digest in self.agreed_before

    def key(self, one: Instance) -> bytes | None:
        """The digest of what a value agrees with."""
        if one.agreed is None and one.run is None:
            if one.digest in self._old.by_digest or one.digest in self._sliced:
                one.agreed = one.digest
            elif one.entry and (other := self._old.nearly(one)) is not None:
                one.agreed = other.digest
        return one.agreed

    def accept(self, pair: Pair) -> None:
        """Take two values for the same."""
        self._agree(pair.after, pair.before.digest)

    def pairs(self) -> Iterator[Pair]:
        """Yield the pairs that differ, in the order of the run after."""
        last: Run | None = None
        for moment in self.after.moments:
            run = moment.run
            if not moment.ended:
                yield from self._on_entry(run, last)
                continue
            agreed = True
            for place, made in enumerate(run.makes):
                if made is None:
                    continue
                pair = self._judge(run, place, made, last)
                if pair is not None:
                    yield pair
                agreed &= made.agreed is not None
            if agreed and not all(made is None or made.constant for made in run.makes):
                last = run
        for old, new in zip(self.before.outputs, self.after.outputs, strict=False):  # it failed
            if not self._near_enough(old.value, new.value):
                yield Pair(old, new, "output", last)

    def _agree(self, one: Instance, key: bytes) -> None:
        one.agreed = key
        if key != one.digest:
            self._near.add(key)

    def _judge(self, run: Run, place: int, made: Instance, last: Run | None) -> Pair | None:
        """Find what a value agrees with, or the pair that it makes with what it should be."""
        keys = [self.key(one) for one in run.reads.values()]
        exact = all(one.agreed == one.digest for one in run.reads.values())
        operands = self._keys(run)
        same = self._by_structure.get((_op(run), operands), []) if None not in keys else []
        others = [found for other in same if (found := _made(other, place)) is not None]

        def fits(other: Instance, drift: bool) -> bool:
            equal = other.digest == made.digest
            return equal or self._near_enough(other.value, made.value, drift=drift)

        match = next((other for other in others if fits(other, not exact)), None)
        if match is None and others and not made.constant:
            meant = [
                other
                for other in others
                if not self.agrees_before(other) or _written_alike(other.run, run)
            ]
            if meant:
                return Pair(self._fitting(meant, made), made, "operator", last)
        named = self._named(run, made)
        if match is None and (made.digest in self._old.by_digest or made.digest in self._sliced):
            match = made
        if match is None and named is not None and fits(named, True):
            match = named
        match = match or self._old.nearly(made)
        if match is not None:
            self._agree(made, match.digest)
        chance = made.is_trivial or made.digest in operands
        if made.constant or (match is not None and not chance):
            return None
        same_op = named is not None and named.run is not None and _op(named.run) == _op(run)
        like = None if same_op else self._like(run, place, made, operands)
        other = like or named
        if other is None:
            return None
        if fits(other, True):
            self._agree(made, other.digest)
            return None
        how: How = "name" if other is named else "operands"
        return Pair(other, made, how, last, weak=match is not None)

    def _keys(self, run: Run) -> Operands:
        return tuple(
            b"" if one is None else self.key(one) or b"?" + one.digest for one in run.operands
        )

    def _fitting(self, others: Sequence[Instance], made: Instance) -> Instance:
        """Return one of the values that one operator computes from the same operands: one that
        agrees with none, of the same name, in the same iteration."""

        def fit(other: Instance) -> tuple[bool, bool, bool]:
            same = _iterations(other) == _iterations(made)
            return not self.agrees_before(other), other.name == made.name, same

        return max(others, key=fit)

    def _named(self, run: Run, made: Instance) -> Instance | None:
        """Return the original's value of the same name, in the same iterations, if it may be the
        same."""
        for other in self._by_name.get((made.name, run.at.iterations), []):
            same = other.run is not None and _op(other.run) == _op(run)
            if same or other.kind == made.kind:
                return other
        return None

    def _like(self, run: Run, place: int, made: Instance, operands: Operands) -> Instance | None:
        """Return a value that the original computes from the same operands by another operator, or
        by the same one from most of them, and with which nothing agrees."""
        known = [self._by_operands.get(operands, [])]
        known += [self._by_operand.get((_op(run), key), []) for key in set(operands)]
        runs = [other for runs in known for other in runs[:_MOST_ALIKE]]
        best: tuple[tuple[int, bool], Instance] | None = None
        for other in runs:
            value = _made(other, place)
            if value is None or value.kind != made.kind:
                continue
            if run.bodies and len(run.operands) != len(other.operands):
                continue
            if self.agrees_before(value) and not run.bodies:  # a loop passes by what another gives
                continue
            same = other.at.iterations == run.at.iterations
            if not same and len(other.at.iterations) == len(run.at.iterations):
                continue
            count = _alike(operands, _operands(other))
            rank = count, same
            if count and (best is None or rank > best[0]):
                best = rank, value
        return best and best[1]

    def _same_elements(self, old: Instance, new: Instance) -> bool:
        """Return whether two values are the same but for their shape and roundings."""
        sides = [
            one.value.reshape(-1) if isinstance(one.value, np.ndarray) else one.value
            for one in (old, new)
        ]
        return self._near_enough(*sides, drift=True)

    def _on_entry(self, run: Run, last: Run | None) -> Iterator[Pair]:
        """Yield the inputs of a node with bodies that differ from those of its partner."""
        made = next((one for one in run.makes if one is not None), None)
        if made is None:
            return
        partner = self._named(run, made)
        if partner is None or partner.run is None:
            like = self._like(run, run.makes.index(made), made, self._keys(run))
            partner = like if like is not None and like.run is not None else None
        if partner is None or partner.run is None:
            return
        other = partner.run
        sides = initial_states(other), initial_states(run)
        if _op(other) == _op(run) != "Scan":
            sides = other.operands, run.operands
        if len(sides[0]) != len(sides[1]):
            return
        for old, new in zip(*sides, strict=True):
            if old is None or new is None or self._same_elements(old, new):
                continue
            if self.key(new) == old.digest:
                continue
            for place, value in enumerate(run.makes):
                against = _made(other, place)
                if value is None or against is None:
                    continue
                if not self._near_enough(against.value, value.value):
                    yield Pair(against, value, "name", last, fed=True)
                    return


def _written_alike(run: Run | None, other: Run) -> bool:
    """Return whether two nodes of one operator have the same attributes."""
    if run is None:
        return False
    sides = (
        {one.name: one.SerializeToString(deterministic=True) for one in side.node.attribute}
        for side in (run, other)
    )
    return next(sides) == next(sides)


def initial_states(run: Run) -> list[Instance | None]:
    """Return the values that a loop carries into its first iteration; none for other nodes."""
    operands = run.operands
    match _op(run):
        case "Loop":
            return operands[2:]
        case "Scan":
            leading = 1 if run.at.evaluator.versions.get("", 9) < 9 else 0
            return operands[leading : len(operands) - attribute(run.node, "num_scan_inputs", 1)]
    return []


def _operands(run: Run) -> Operands:
    return tuple(b"" if one is None else one.digest for one in run.operands)


def _op(run: Run) -> str:
    return op_of(run.node)


def _made(run: Run, place: int) -> Instance | None:
    return run.makes[place] if place < len(run.makes) else None


def _iterations(one: Instance) -> tuple[int, ...]:
    return () if one.run is None else one.run.at.iterations


def _alike(one: Operands, other: Operands) -> int:
    return len(set(one) & set(other)) + sum(
        left == right for left, right in zip(one, other, strict=False)
    )


class NoCommonSignature(Exception):
    """The models take or give other values; one sentence with both sides."""


def aligned(before: ModelProto, after: ModelProto) -> ModelProto:
    """`after` with the inputs and outputs of `before`: those of one name are the same, or else
    those in one place.

    Raises:
        NoCommonSignature: there are more of them in one model, or their dtypes or sizes differ.
    """
    if signature.difference(before, after) is None:
        return after
    made = copied(after)
    pairs = [
        *_pairs("input", signature.feedable(before), signature.feedable(made)),
        *_pairs("output", list(before.graph.output), list(made.graph.output)),
    ]
    _rename(made, {new.name: old.name for old, new in pairs})
    types = {old.name: old for old, _ in pairs}
    fed = [value.name for value in signature.feedable(before)]
    rest = [value for value in made.graph.input if value.name not in fed]
    replace_all(made.graph.input, [*(types[name] for name in fed), *rest])
    replace_all(made.graph.output, list(before.graph.output))
    if sentence := signature.difference(before, made):
        raise NoCommonSignature(sentence)
    return made


def _pairs(
    what: str, old: Sequence[ValueInfoProto], new: Sequence[ValueInfoProto]
) -> list[tuple[ValueInfoProto, ValueInfoProto]]:
    if len(old) != len(new):
        sides = [", ".join(map(signature.describe, side)) for side in (old, new)]
        raise NoCommonSignature(f"the {what}s are ({sides[0]}) and ({sides[1]})")
    by_name = {value.name: value for value in new}
    same = all(value.name in by_name for value in old)
    others = [by_name[value.name] for value in old] if same else new
    for left, right in zip(old, others, strict=True):
        if not _fit(left.type, right.type):
            sides = [signature.describe(left), signature.describe(right)]
            raise NoCommonSignature(f"the {what} {sides[0]} is {sides[1]} in the other model")
    return list(zip(old, others, strict=True))


def _fit(left: TypeProto, right: TypeProto) -> bool:
    """Return whether a value may be of both types."""
    if left.WhichOneof("value") != "tensor_type":
        return signature.describe_type(left) == signature.describe_type(right)
    if right.WhichOneof("value") != "tensor_type" or elem_type_of(left) != elem_type_of(right):
        return False
    return may_be_equal(dims_of(left), dims_of(right))


def _rename(model: ModelProto, mapping: dict[str, str]) -> None:
    mapping = {old: new for old, new in mapping.items() if old != new}
    names = Names(scoping.all_names([model.graph]))
    taken = {new: names.fresh(new) for new in mapping.values() if new not in mapping}
    both = {**taken, **mapping}
    if both:
        scoping.rename_all(model.graph, lambda name: both.get(name, name))
