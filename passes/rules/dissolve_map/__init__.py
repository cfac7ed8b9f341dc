"""A loop that carries nothing it needs is replaced by operators."""

from __future__ import annotations
