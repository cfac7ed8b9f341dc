"""A Scan becomes a Loop."""

from __future__ import annotations
