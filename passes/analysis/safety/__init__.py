"""Whether a node may fail, run early, run twice, or go."""

from __future__ import annotations
