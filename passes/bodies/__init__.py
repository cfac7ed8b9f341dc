"""Bodies of loops, as several rules read, copy and write them."""

from __future__ import annotations
