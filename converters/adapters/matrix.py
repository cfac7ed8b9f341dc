"""Steps of matrix products."""

from __future__ import annotations

from converters.steps import identical

identical("Gemm", 9, 13)
identical("Gemm", 11, because="C may now be missing")
identical("MatMul", 9, 13)
identical("Einsum", 28)
identical("Det", 22)
