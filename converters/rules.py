"""Importing this module registers the rules of this package."""

from __future__ import annotations

from converters import opset
from converters.scan_8 import rule

__all__ = ["opset", "rule"]
