"""Repeated fields of protobuf messages, replaced in place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

Item = TypeVar("Item", contravariant=True)


class Repeated(Protocol[Item]):
    """What all repeated fields can do, of scalars and of messages."""

    def __delitem__(self, key: slice, /) -> None: ...

    def extend(self, values: Iterable[Item], /) -> None: ...


def replace_all(repeated: Repeated[Item], values: Iterable[Item]) -> None:
    """Replace what it holds by `values`, which may come from the field itself."""
    kept = list(values)
    del repeated[:]
    repeated.extend(kept)
