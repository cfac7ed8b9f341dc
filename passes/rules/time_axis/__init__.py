"""Work that can run over all iterations at once leaves the loop."""

from __future__ import annotations
