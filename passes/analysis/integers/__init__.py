"""Integers that a model computes: symbolic sums, bounds, constant values."""

from __future__ import annotations
