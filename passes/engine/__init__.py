"""Applies rules: matching, rounds, phases, pipelines, what is spliced in."""

from __future__ import annotations
