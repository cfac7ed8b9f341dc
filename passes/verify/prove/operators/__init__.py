"""What each operator computes, as a term: one table, a file per family."""

from __future__ import annotations

from passes.verify.prove.operators import elementwise, layout, opaque, reductions, sizes

__all__ = ["elementwise", "layout", "opaque", "reductions", "sizes"]
