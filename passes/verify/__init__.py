"""Verification: executors, input drawing, comparison, verdicts."""

from __future__ import annotations
