"""What rules found out in one round over a model, for the sites to come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_T = TypeVar("_T")


class Memory:
    """Values by what they are called; a new one for each round."""

    def __init__(self) -> None:
        self._held: dict[str, Any] = {}

    def once(self, name: str, make: Callable[[], _T]) -> _T:
        """The value of this name, made where it is asked for first."""
        if name not in self._held:
            self._held[name] = make()
        held: _T = self._held[name]
        return held
