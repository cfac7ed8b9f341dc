"""Importing this module registers the rules of this package."""

from __future__ import annotations

from passes.converters import older_types, opset
from passes.converters.scan_8 import rule

__all__ = ["older_types", "opset", "rule"]
