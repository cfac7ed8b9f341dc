"""Importing this module registers the rules of this package."""

from __future__ import annotations

from converters import opset, scan_8_9

__all__ = ["opset", "scan_8_9"]
