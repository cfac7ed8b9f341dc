"""Sizes of tensors, in terms of those that only the run tells."""

from __future__ import annotations
