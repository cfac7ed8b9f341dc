"""Constants and loop-invariant work leave the loop."""

from __future__ import annotations
