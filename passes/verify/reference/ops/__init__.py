"""Kernels that replace onnx's where those are wrong or missing; `docs/reference-executor.md`."""

from __future__ import annotations

from passes.verify.reference.ops import (
    arithmetic,
    axes,
    casts,
    convolution,
    flattening,
    guards,
    indexing,
    linear_attention,
    normalization,
    optionals,
    padding,
    pools,
    quantization,
    recurrent,
    reducers,
    regions,
    resizing,
    splitting,
)

__all__ = [
    "arithmetic",
    "axes",
    "casts",
    "convolution",
    "flattening",
    "guards",
    "indexing",
    "linear_attention",
    "normalization",
    "optionals",
    "padding",
    "pools",
    "quantization",
    "recurrent",
    "reducers",
    "regions",
    "resizing",
    "splitting",
]
