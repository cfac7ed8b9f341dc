"""Scan, Loop and If: first their form, then their types."""

from __future__ import annotations
