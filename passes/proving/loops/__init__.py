"""Branches and loops as terms: their states before an iteration, and loops of another step."""

from __future__ import annotations
