"""Scan-8, Scan and Loop in one form: read, written, their axes."""

from __future__ import annotations
