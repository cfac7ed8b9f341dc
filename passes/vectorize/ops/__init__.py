"""Vectorisation rules, a file per family of operators; found by walking this folder."""

from __future__ import annotations
