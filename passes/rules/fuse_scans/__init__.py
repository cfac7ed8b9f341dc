"""Scans beside each other become one Scan."""

from __future__ import annotations
