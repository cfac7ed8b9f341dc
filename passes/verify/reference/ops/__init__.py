"""Kernels that replace onnx's where those are wrong or missing; `docs/reference-executor.md`."""

from __future__ import annotations

from passes.verify.reference.ops import (
    convolution,
    elementwise,
    guards,
    indexing,
    layout,
    linear_attention,
    normalization,
    optionals,
    pools,
    quantization,
    recurrent,
    reducers,
    regions,
    resizing,
)

__all__ = [
    "convolution",
    "elementwise",
    "guards",
    "indexing",
    "layout",
    "linear_attention",
    "normalization",
    "optionals",
    "pools",
    "quantization",
    "recurrent",
    "reducers",
    "regions",
    "resizing",
]
