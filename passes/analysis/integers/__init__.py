"""Whole numbers that a model computes: symbolic sums, bounds, values that are known."""

from __future__ import annotations
