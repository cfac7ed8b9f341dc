"""vmap for ONNX: a body in which chosen inputs carry a new leading axis.

One table of rules (in `vectorizer.py`), one file per family of ops. Used over the batch axis to
upgrade Scan-8, and over the time axis to move work out of loops.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from passes.vectorize import ops
from passes.vectorize.rows import Rows, prepare
from passes.vectorize.rows_writer import Axis, NeedsRows
from passes.vectorize.vectorizer import TABLE, Body, Vectorizer

#: The files that enter rules into the table.
FAMILIES = tuple(
    import_module(f"{ops.__name__}.{found.name}") for found in iter_modules(ops.__path__)
)

__all__ = [
    "FAMILIES",
    "TABLE",
    "Axis",
    "Body",
    "NeedsRows",
    "Rows",
    "Vectorizer",
    "prepare",
]
