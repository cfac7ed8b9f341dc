"""Symbols for sizes in the body of a Loop that only the inference of that body uses."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import TypeProto

from passes.analysis.integers.affine import Affine
from passes.types.value_types import INFERRED, Dim, Dims, dims_of

_OWN, _CHANGED, _SIZE = "own size of ", "changed size of ", "size "


def own_size(name: str, axis: int) -> str:
    """The symbol of an unknown size that is the same in every iteration."""
    return f"{_OWN}{name}.{axis}"


def changed_size(name: str, axis: int) -> str:
    """The symbol of a size that iterations change."""
    return f"{_CHANGED}{name}.{axis}"


def size_symbol(size: Affine | None) -> Dim:
    """The symbol or the number for a size."""
    if size is None:
        return None
    if size.number is not None:
        return size.number
    terms = sorted((repr(atom.key), count) for atom, count in size.terms)
    return f"{_SIZE}{terms} + {size.constant}"


def is_definite(dim: Dim) -> bool:
    """Return whether a dim is a number, or a symbol for one particular size."""
    return isinstance(dim, int) or (dim is not None and not dim.startswith((_CHANGED, INFERRED)))


def symbol_of_rows(dim: Dim, types: Mapping[str, TypeProto]) -> str | None:
    """The symbol for the number of rows where it is `dim`; None where nothing declares it.

    None also where one of these types, of values of one row, has a size of that symbol: it is
    unknown whether they are equal.
    """
    if not isinstance(dim, str) or dim.startswith(INFERRED):
        return None
    return None if any(dim in (dims_of(type_) or ()) for type_ in types.values()) else dim


def without_made_up(dims: Dims) -> Dims:
    """A shape without the symbols that inference made up."""
    prefixes = (_OWN, _CHANGED, INFERRED, _SIZE)
    return tuple(None if isinstance(dim, str) and dim.startswith(prefixes) else dim for dim in dims)
