"""What a proof chose: found by a search, or read from a certificate that is checked without one."""

from __future__ import annotations
