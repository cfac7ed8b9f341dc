"""Benchmarks: everything that is compared runs side by side in one run."""

from __future__ import annotations
