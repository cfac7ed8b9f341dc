"""Applies rules: matching, rounds, stages, pipelines, what is spliced in."""

from __future__ import annotations
