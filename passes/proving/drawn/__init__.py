"""Two models shown equal at drawn sizes, where the symbolic proof ends."""

from __future__ import annotations
