"""What users know of the inputs of a model: sizes, shapes and values, which bind it first."""

from __future__ import annotations
