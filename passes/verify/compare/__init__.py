"""Compares the outcomes of two runs: verdicts, tolerances, excuses, and what cases reached."""

from __future__ import annotations
