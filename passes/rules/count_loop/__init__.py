"""A while becomes a for."""

from __future__ import annotations
