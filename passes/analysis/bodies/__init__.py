"""Bodies of loops and branches: types, readers, equal values, what is live."""

from __future__ import annotations
