"""Steps of matrix products."""

from __future__ import annotations

from converters.steps import identical

identical("Gemm", 9)
identical("MatMul", 9)
