"""The sizes that the types of a model determine before it runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from onnx import ModelProto, TypeProto

from passes.ir.scope import Scope
from passes.types.inference import ValueTypes
from passes.types.value_types import INFERRED, Dim, dims_of
from passes.verify.executor import Value

NONE = -1  # the size of what has none

Sizes = list[int | None] | None
Symbols = Mapping[Dim, int | None]


def sizes_of(kind: TypeProto | None, symbols: Symbols) -> Sizes:
    """Return the sizes of a type, given those of symbols; None without a rank."""
    dims = dims_of(kind)
    if dims is None:
        return None
    return [dim if isinstance(dim, int) else symbols.get(dim) for dim in dims]


@dataclass
class StaticSizes:
    """Sizes that the types of a model determine: numbers, and symbols of what a loop reads."""

    model: ModelProto

    def symbols(self, around: Scope, read: Iterable[str], values: Mapping[str, Value]) -> Symbols:
        """Return the sizes of symbols, as seen from a loop: none for a symbol on which values
        disagree.

        `read` are the names of what it reads around it, with their `values`.
        """
        found: dict[Dim, int | None] = {}
        for name in read:
            value, dims = values.get(name), dims_of(self._types.of(around, name))
            if isinstance(value, np.ndarray):
                for dim, size in zip(dims or (), value.shape, strict=False):
                    if isinstance(dim, str) and not dim.startswith(INFERRED):
                        found[dim] = size if found.get(dim, size) == size else NONE
        return found

    def of(self, scope: Scope, name: str, symbols: Symbols) -> Sizes:
        """The sizes of what `name` means in a scope; None without a rank."""
        return sizes_of(self._types.of(scope, name), symbols)

    @cached_property
    def _types(self) -> ValueTypes:
        return ValueTypes(self.model)
