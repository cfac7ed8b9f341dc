"""A Scan in a Scan becomes one."""

from __future__ import annotations
