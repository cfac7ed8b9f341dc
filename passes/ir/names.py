"""A supply of value names that clash with nothing."""

from __future__ import annotations

from collections.abc import Iterable


class Names:
    """Gives names that occur nowhere in the model yet; linear in the names asked for."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._next: dict[str, int] = {}

    def fresh(self, hint: str) -> str:
        """`hint` itself where it is free, else `hint_1`, `hint_2`, ..."""
        name = hint
        while not name or name in self._taken:
            number = self._next.get(hint, 0) + 1
            self._next[hint] = number
            name = f"{hint}_{number}"
        self._taken.add(name)
        return name
