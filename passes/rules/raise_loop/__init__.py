"""A Loop becomes a Scan."""

from __future__ import annotations
