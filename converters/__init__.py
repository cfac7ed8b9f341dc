"""Opset conversion: one entry per (op, version step), one file per op family."""

from __future__ import annotations
