"""Nested Scans become one Scan."""

from __future__ import annotations
