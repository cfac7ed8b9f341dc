"""Calls of model-local functions become the bodies of these."""

from __future__ import annotations
