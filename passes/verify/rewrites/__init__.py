"""Verifies what a session did: each rewritten region, then the model."""

from __future__ import annotations
