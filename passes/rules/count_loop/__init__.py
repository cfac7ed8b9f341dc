"""Loops that end by a condition become counted loops."""

from __future__ import annotations
