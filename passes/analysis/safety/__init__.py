"""Decides whether a node may fail, run early, run twice, or be removed."""

from __future__ import annotations
