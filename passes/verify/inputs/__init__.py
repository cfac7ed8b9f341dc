"""The inputs of a verification: given, observed, drawn, sought, and learned from failures."""

from __future__ import annotations
