"""Symbols for the sizes in the body of a Loop, which only the inference of that body knows."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import TypeProto

from passes.analysis.integers.affine import Affine
from passes.types.value_types import INFERRED, Dim, Dims, dims_of

_OWN, _CHANGED, _SIZE = "own size of ", "changed size of ", "size "


def own_size(name: str, axis: int) -> str:
    """The symbol of a size that is not known, but the same in every iteration."""
    return f"{_OWN}{name}.{axis}"


def changed_size(name: str, axis: int) -> str:
    """The symbol of a size that iterations change."""
    return f"{_CHANGED}{name}.{axis}"


def size_symbol(size: Affine | None) -> Dim:
    """The symbol, or the number, that a size is."""
    if size is None:
        return None
    if size.number is not None:
        return size.number
    terms = sorted((repr(atom.key), count) for atom, count in size.terms)
    return f"{_SIZE}{terms} + {size.constant}"


def is_told(dim: Dim) -> bool:
    """Whether a dim is a number, or the size of an axis that is known to be another one."""
    return isinstance(dim, int) or (dim is not None and not dim.startswith((_CHANGED, INFERRED)))


def symbol_of_rows(dim: Dim, types: Mapping[str, TypeProto]) -> str | None:
    """What the number of rows is called where it is `dim`, None where nothing declares it.

    Nor where a value of one row, of these types, has a size by that name: who knows if they are
    one.
    """
    if not isinstance(dim, str) or dim.startswith(INFERRED):
        return None
    return None if any(dim in (dims_of(one) or ()) for one in types.values()) else dim


def without_made_up(dims: Dims) -> Dims:
    """A shape without the symbols that only the inference of a body knows."""
    made = (_OWN, _CHANGED, INFERRED, _SIZE)
    return tuple(None if isinstance(dim, str) and dim.startswith(made) else dim for dim in dims)
