"""The dims of the inputs to draw: names, a size for each name, and what sizes a model needs."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from onnx import TypeProto, ValueInfoProto

from passes.types.value_types import dims_of
from passes.verify.executor import Feeds
from passes.verify.inputs.arrays import IntStyle
from passes.verify.inputs.plans import RANKS, Attempt, Plan

Declared = tuple[str | int | None, ...]


@dataclass(frozen=True)
class InputDims:
    """A name or size per axis and input; `unnamed` gives the axis of each made-up name."""

    of: Mapping[str, tuple[str | int, ...]]
    unnamed: Mapping[str, int]

    def symbols(self) -> list[str]:
        """Every name, in order of first use."""
        names = (dim for dims in self.of.values() for dim in dims if isinstance(dim, str))
        return list(dict.fromkeys(names))

    def shape(self, name: str, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The shape of an input once the names have sizes."""
        return tuple(sizes[dim] if isinstance(dim, str) else dim for dim in self.of[name])


def element_type(type_: TypeProto) -> TypeProto:
    """The type of the tensors inside sequences and optionals."""
    match type_.WhichOneof("value"):
        case "sequence_type":
            return element_type(type_.sequence_type.elem_type)
        case "optional_type":
            return element_type(type_.optional_type.elem_type)
    return type_


def declared(type_: TypeProto) -> Declared | None:
    """Return the declared dim of each axis; None if even the rank is unknown."""
    return dims_of(element_type(type_))


def resolve(
    inputs: Sequence[ValueInfoProto], hints: Mapping[str, Declared], plan: Plan, attempt: Attempt
) -> InputDims:
    """Names and sizes per axis: declared, completed by the hints, made up where neither knows."""
    of: dict[str, tuple[str | int, ...]] = {}
    unnamed: dict[str, int] = {}
    for value in inputs:
        known = _known(declared(value.type), hints.get(value.name), plan, attempt)
        dims: list[str | int] = []
        for axis, dim in enumerate(known):
            if dim is None:
                dim = f"{value.name}.{axis}"
                unnamed[dim] = axis
            dims.append(dim)
        of[value.name] = tuple(dims)
    return InputDims(of, unnamed)


def _known(
    declared: Declared | None, hint: Declared | None, plan: Plan, attempt: Attempt
) -> Declared:
    if declared is None:
        if hint is not None:
            return hint
        turn = attempt.rank + zlib.crc32(plan.label.encode())
        return (None,) * RANKS[turn % len(RANKS)]
    if hint is None or len(hint) != len(declared):
        return declared
    return tuple(own if given is None else given for own, given in zip(declared, hint, strict=True))


def sizes(
    dims: InputDims, free: Sequence[str], plan: Plan, attempt: Attempt, fixed: Feeds
) -> dict[str, int]:
    """A size for every name, those that are `free` by the plan's order; values that are there
    already decide for the names they bear."""
    result: dict[str, int] = {}
    first_at_axis: dict[int, str] = {}
    for place, symbol in enumerate(dict.fromkeys((*free, *dims.symbols()))):
        result[symbol] = plan.size(place)
        if attempt.merge == "all":
            result[symbol] = plan.fixed[0][1] if plan.fixed else plan.sizes[0]
        elif attempt.merge == "axis" and symbol in dims.unnamed:
            first = first_at_axis.setdefault(dims.unnamed[symbol], symbol)
            result[symbol] = result[first]
    for name, value in fixed.items():
        if isinstance(value, np.ndarray) and value.ndim == len(dims.of[name]):
            pairs = zip(dims.of[name], value.shape, strict=True)
            result.update({dim: size for dim, size in pairs if isinstance(dim, str)})
    return result


@dataclass(frozen=True)
class Tie:
    """A size that follows from others: a number, plus so many times the size of each symbol."""

    number: int
    times: Mapping[str, int] = field(default_factory=dict)

    def size(self, sizes: Mapping[str, int]) -> int:
        """The size, once the others are known."""
        return self.number + sum(count * sizes[symbol] for symbol, count in self.times.items())


@dataclass(frozen=True)
class Needs:
    """The ranks of inputs that declare none; the sizes that follow from others (`ties`), that are
    at least a number, or that leave a rest when they are divided (`steps`: divisor and rest), by
    the symbol; and what whole numbers mean."""

    ranks: Mapping[str, int] = field(default_factory=dict)
    ties: Mapping[str, Tie] = field(default_factory=dict)
    least: Mapping[str, int] = field(default_factory=dict)
    steps: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    ints: IntStyle = "small"

    def tied(self, symbol: str, tie: Tie) -> Needs:
        """These, and one more size that follows from others."""
        return replace(self, ties={**self.ties, symbol: tie})

    def at_least(self, symbol: str, size: int) -> Needs:
        """These, and one more size that is at least a number."""
        return replace(self, least={**self.least, symbol: size})

    def in_steps(self, symbol: str, divisor: int, rest: int) -> Needs:
        """These, and one more size that leaves a rest."""
        return replace(self, steps={**self.steps, symbol: (divisor, rest)})

    def tied_symbols(self) -> list[str]:
        """The symbols whose sizes follow from others, and those that are equal to such a one."""
        ties = {symbol: tie for symbol, tie in self.ties.items() if tie.times}
        equal = [name for tie in ties.values() if len(tie.times) == 1 for name in tie.times]
        return list(dict.fromkeys([*ties, *equal]))

    def apart(self, symbol: str) -> Needs:
        """These, but for one size that is 1 and from which no other follows."""
        ties = {name: tie for name, tie in self.ties.items() if symbol not in (name, *tie.times)}
        return replace(self, ties={**ties, symbol: Tie(1)})

    def fit(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Sizes that were planned, made to fit; those that are too small keep their distances."""
        fitting = dict(sizes)
        for symbol, size in sizes.items():
            least = self.least.get(symbol, 0)
            size = least + size if size < least else size
            divisor, rest = self.steps.get(symbol, (1, 0))
            fitting[symbol] = size + (rest - size) % divisor
        for symbol, tie in reversed(list(self.ties.items())):  # earlier ones may rest on later ones
            if symbol in sizes:
                fitting[symbol] = max(0, tie.size(fitting))
        return fitting
