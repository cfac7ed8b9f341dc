"""The model: its file, weights, scopes, names, operators and constants."""

from __future__ import annotations
