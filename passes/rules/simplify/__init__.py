"""Fewer nodes that do the same: pruned, folded, inlined, shared."""

from __future__ import annotations
