"""Variants of written models."""

from __future__ import annotations

import pytest

from tests.written import changed

SUM = "s_out = Add (s_in, x_t)"


def test_each_change_is_made_wherever_its_text_occurs() -> None:
    assert changed(SUM, {"Add": "Sub", "s_": "h_"}) == "h_out = Sub (h_in, x_t)"
    assert changed(SUM, {}) == SUM


def test_texts_may_be_exchanged() -> None:
    assert changed(SUM, {"s_in": "x_t", "x_t": "s_in"}) == "s_out = Add (x_t, s_in)"


def test_a_text_that_does_not_occur_fails() -> None:
    with pytest.raises(AssertionError, match="Mul"):
        changed(SUM, {"Add": "Sub", "Mul": "Div"})
