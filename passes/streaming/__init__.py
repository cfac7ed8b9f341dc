"""Models that run a sequence chunk by chunk, and loops made of models of one step."""

from __future__ import annotations
