"""Reads the body of a loop as a step of a cell: its gates, its weights, its rows."""

from __future__ import annotations
