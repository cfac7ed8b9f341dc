"""Passes, loaders and data for other programs; a module is imported by who uses that program."""

from __future__ import annotations
