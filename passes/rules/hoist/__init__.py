"""Constants and loop-invariant work leave the loop, the invariant terms of a sum among it."""

from __future__ import annotations
