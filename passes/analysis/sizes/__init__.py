"""Follows sizes through operators, and into and out of bodies."""

from __future__ import annotations
