"""The trip count of a loop, and what it counts with."""

from __future__ import annotations
