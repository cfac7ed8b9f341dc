"""How rewrites write: authors of nodes, idioms, branches, and the cleaning of what was written."""

from __future__ import annotations
