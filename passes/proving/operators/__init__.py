"""The results of each operator as terms: one table, a file per family; loops are in their room."""

from __future__ import annotations

from passes.proving.loops import recurrences
from passes.proving.operators import (
    cells,
    elements,
    elementwise,
    indexing,
    layout,
    opaque,
    reductions,
    sequences,
)

__all__ = [
    "cells",
    "elements",
    "elementwise",
    "indexing",
    "layout",
    "opaque",
    "recurrences",
    "reductions",
    "sequences",
]
