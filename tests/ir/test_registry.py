"""Functions by operator."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from passes.ir.registry import Registry


def test_an_operator_has_one_function() -> None:
    functions: Registry[Callable[[int], int]] = Registry()

    @functions.enter("Neg")
    def negative(number: int) -> int:
        return -number

    assert functions["Neg"](2) == negative(2) == -2
    with pytest.raises(ValueError, match="Neg: entered twice"):
        functions.enter("Abs", "Neg")(abs)
    assert functions.keys() == {"Neg"}
