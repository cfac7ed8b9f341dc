"""Finds where two models part that ought to do the same, and why."""

from __future__ import annotations
