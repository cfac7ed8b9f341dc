"""The nodes that hold bodies: If, Loop, Scan of every version, SequenceMap."""

from __future__ import annotations
