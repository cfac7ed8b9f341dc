"""How often a loop runs, and what it counts with."""

from __future__ import annotations
