"""A loop with linear states runs over blocks of its iterations."""

from __future__ import annotations
