"""Constants and work that is the same in every iteration leave the loop."""

from __future__ import annotations
