"""The interface of everything that writes nodes: rules, opset adapters and the vectoriser."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from passes.operators.exactness import Array as Array


def content(array: Array) -> Hashable:
    """Equal for arrays of the same dtype, shape and bytes, or strings."""
    elements = tuple(array.ravel()) if array.dtype.kind == "O" else array.tobytes()
    # by name: the small float and int types all have the str '<V1'
    return array.dtype.name, array.shape, elements


class Writer(ABC):
    """Writes nodes of one opset, front to back. Values are known by their names.

    Operators whose spelling changes with the opset are in `spelling.py`.
    """

    @property
    @abstractmethod
    def opset(self) -> int:
        """The opset that the nodes are written in."""

    @abstractmethod
    def fresh(self, hint: str) -> str:
        """A value name that occurs nowhere else."""

    @abstractmethod
    def op(self, op_type: str, *inputs: str, outputs: Sequence[str] = (), **attributes: Any) -> str:
        """Write a node; returns the name of its first output.

        `outputs` are the names of its outputs; one fresh name where none is given. An input of
        "" is omitted.
        """

    @abstractmethod
    def value(self, array: Array, hint: str = "constant") -> str:
        """The name of a fixed value; equal values are shared."""

    @abstractmethod
    def constant(self, name: str) -> Array | None:
        """The value of a name where it is fixed, as far as the writer knows, else None."""

    @abstractmethod
    def once(self, key: Hashable, write: Callable[[], str]) -> str:
        """The result of `write`, which is called for the first one of equal keys.

        For sizes and numbers: a value that a body returns needs a node of its own.
        """

    def ints(self, *values: int) -> str:
        """The name of a fixed int64 vector."""
        return self.value(np.array(values, np.int64), "ints")

    def int(self, value: int) -> str:
        """The name of a fixed int64 scalar."""
        return self.value(np.array(value, np.int64), "int")
