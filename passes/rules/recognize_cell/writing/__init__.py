"""Writes the recurrent operator in place of a loop: its weights, its results, the ends of rows."""

from __future__ import annotations
