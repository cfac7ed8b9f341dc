"""What each part of this tool can do with an operator, read from their tables."""

from __future__ import annotations
