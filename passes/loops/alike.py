"""Groups of loops and Ifs that are alike, in a tree, each with a pattern of their paths."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from passes.ir.model import Model
from passes.ir.operators import CONTROL_FLOW, op_of
from passes.ir.places import Place, Scope, holds_graphs, scopes
from passes.loops.structure import Structures

_WORD = re.compile(r"[A-Za-z]+|[0-9]+|.", re.DOTALL)


@dataclass(frozen=True, eq=False)
class AlikeGroup:
    """Loops, or Ifs, that differ in names and weights at most, in the order of the model.

    `inner` are the groups that have all their members in the bodies of these.
    """

    places: tuple[Place, ...]
    inner: tuple[AlikeGroup, ...] = ()

    @property
    def first(self) -> Place:
        """The first of them."""
        return self.places[0]

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """The paths of all of them."""
        return tuple(place.path for place in self.places)

    @cached_property
    def pattern(self) -> str:
        """A pattern that matches their paths, as `main/layers.*/rnn`; of one, its path."""
        return pattern_of(self.paths)

    def walk(self, depth: int = 0) -> Iterator[tuple[int, AlikeGroup]]:
        """Yield this group and those below it, each with its depth."""
        yield depth, self
        for group in self.inner:
            yield from group.walk(depth + 1)


def alike(model: Model) -> tuple[AlikeGroup, ...]:
    """Return the loops and Ifs of a model, functions included, in groups: each belongs to one.

    A group is below another if all its members are in bodies of members of that one; the groups
    that are below none are returned, in the order of their first members. The types of the model
    are inferred.
    """
    structures = Structures(model)
    places: dict[int, list[Place]] = {}
    above: dict[int, tuple[int, ...]] = {}

    def enter(scope: Scope, chain: tuple[int, ...]) -> None:
        for index, node in enumerate(scope.owner.node[:]):
            if not holds_graphs(node):
                continue
            here = chain
            if op_of(node) in CONTROL_FLOW:
                place = Place(node, index, scope)
                number = structures.of(place)
                places.setdefault(number, []).append(place)
                above[number] = _common(above.get(number, chain), chain)
                here = (*chain, number)
            for inner in scope.inner(index):
                enter(inner, here)

    for scope in scopes(model.proto):
        enter(scope, ())
    below: dict[int | None, list[int]] = {}
    for number, chain in above.items():
        below.setdefault(chain[-1] if chain else None, []).append(number)

    def grow(number: int | None) -> tuple[AlikeGroup, ...]:
        return tuple(AlikeGroup(tuple(places[one]), grow(one)) for one in below.get(number, ()))

    return grow(None)


def _common(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    """Return the elements with which both begin."""
    if one == other:
        return one
    pairs = enumerate(zip(one, other, strict=False))
    shared = next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))
    return one[:shared]


def pattern_of(texts: Sequence[str]) -> str:
    """Return a pattern, as of `fnmatch`, that all texts match: `*` for the words that differ.

    Words and numbers differ as a whole. One text, or several equal ones, stay as they are.
    """
    distinct = list(dict.fromkeys(texts))
    if len(distinct) == 1:
        return distinct[0]
    words = [_WORD.findall(text) for text in distinct]
    shortest = min(map(len, words))
    if shortest == max(map(len, words)):
        parts = [column[0] if len(set(column)) == 1 else "*" for column in zip(*words, strict=True)]
    else:
        head = _agreeing(words, shortest)
        tail = _agreeing([list(reversed(one)) for one in words], shortest - len(head))
        parts = [*head, "*", *reversed(tail)]
    # a bracket would begin a set of characters
    return re.sub(r"\*+", "*", "".join("?" if part == "[" else part for part in parts))


def _agreeing(lists: Sequence[Sequence[str]], most: int) -> list[str]:
    """Return the words with which all lists begin, `most` at most."""
    found = []
    for column in list(zip(*lists, strict=False))[:most]:
        if len(set(column)) > 1:
            break
        found.append(column[0])
    return found
