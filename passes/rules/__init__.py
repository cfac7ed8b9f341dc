"""The rules about loops, one a file; importing this package registers them."""

from __future__ import annotations

from passes.rules import lower_scan, unroll

__all__ = ["lower_scan", "unroll"]
