"""Functions by operator, each entered where it is defined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Registry(dict[str, F], Generic[F]):
    """The function of each operator, as `op_of` names it."""

    def enter(self, *ops: str) -> Callable[[F], F]:
        """Enter the decorated function for some operators.

        Raises:
            ValueError: an operator has a function already.
        """

        def add(function: F) -> F:
            if twice := self.keys() & set(ops):
                raise ValueError(f"{', '.join(sorted(twice))}: entered twice")
            self.update(dict.fromkeys(ops, function))
            return function

        return add
