"""The dims of the inputs to draw: names, and a size for each name."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import TypeProto, ValueInfoProto

from passes.types.value_types import dims_of
from passes.verify.executor import Feeds
from passes.verify.inputs.plans import RANKS, Attempt, Plan

Declared = tuple[str | int | None, ...]


@dataclass(frozen=True)
class Dims:
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
) -> Dims:
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
    return Dims(of, unnamed)


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
    dims: Dims, free: Sequence[str], plan: Plan, attempt: Attempt, fixed: Feeds
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
