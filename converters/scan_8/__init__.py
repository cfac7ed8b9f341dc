"""The rule about Scan-8: a batch, sequence_lens and what becomes of them."""

from __future__ import annotations
