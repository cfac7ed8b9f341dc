"""Types and shapes of values, read, written and inferred."""

from __future__ import annotations
