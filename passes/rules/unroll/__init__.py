"""Iterations are written out: all, some at a time, the first or the last."""

from __future__ import annotations
