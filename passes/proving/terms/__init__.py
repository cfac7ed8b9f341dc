"""What a value is, as a term: whole numbers, conditions, constants, arrays, formulas."""

from __future__ import annotations
