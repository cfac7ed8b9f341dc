"""Opset conversion: one entry per (op, version step), one file per op family.

Imported as `passes.converters`, and installed there: other distributions may have a package with
the name of this folder.
"""

from __future__ import annotations

if __name__ != "passes.converters":
    raise ImportError("this is the package passes.converters; import it by that name")
