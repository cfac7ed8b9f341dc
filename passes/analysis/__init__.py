"""Facts about a model before it runs; no rewrite is written here."""

from __future__ import annotations
