"""Finds the first value in which two models differ, and why."""

from __future__ import annotations
