"""Facts that rules find out in one round over a model, kept for later sites."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")


class Slot(Generic[_T]):
    """A key under which a round remembers values; one module defines and fills it."""


class Memory:
    """The values in slots; a new one for each round."""

    def __init__(self) -> None:
        self._held: dict[tuple[Slot[Any], int], tuple[object, Any]] = {}

    def once(self, slot: Slot[_T], make: Callable[[], _T], of: object = None) -> _T:
        """The value in a slot, made on first use; each object `of` has its own."""
        key = (slot, id(of))
        if key not in self._held:
            self._held[key] = (of, make())  # `of` is kept alive, so its id is its own
        held: _T = self._held[key][1]
        return held
