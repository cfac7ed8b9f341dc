"""Kernels that replace onnx's where those are wrong or missing; `docs/reference-executor.md`."""

from __future__ import annotations

from passes.verify.reference.ops import (
    arithmetic,
    axes,
    batch_normalization,
    casts,
    conv_transpose,
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
    "batch_normalization",
    "casts",
    "conv_transpose",
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
