"""The rules about loops, one a file; importing this package registers them."""

from __future__ import annotations

from passes.rules import count_loop, lower_scan, raise_loop, unroll, unroll_partial

__all__ = ["count_loop", "lower_scan", "raise_loop", "unroll", "unroll_partial"]
