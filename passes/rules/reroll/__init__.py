"""Straight-line code that repeats a subgraph becomes a loop."""

from __future__ import annotations
