"""The invariant terms of a sum in a loop are added first."""

from __future__ import annotations
