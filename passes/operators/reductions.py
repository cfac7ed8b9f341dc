"""Operators that compute with all elements along some axes: sums, extremes, normalizations."""

from __future__ import annotations

from passes.operators.traits import rows

ROWS = rows("""
# operator         shape   work fails folds    values rounds besides
ArgMax             .       .    empty integers exact  never  counting=0 apart
ArgMin             .       .    empty integers exact  never  counting=0 apart
CumSum             kept    .    never integers exact  .      fixed=1 axes
Hardmax            kept    .    never .        exact  never  along_axis=13
LayerNormalization kept    .    never .        .      .
LogSoftmax         kept    .    never .        .      .  along_axis=13
LpNormalization    kept    .    .     .        .      .  along_axis=1
ReduceL1           reduced .    never .        exact  .      fixed=1 vectors=1 axes apart
ReduceL2           reduced .    never .        .      .      fixed=1 vectors=1 axes apart
ReduceLogSum       reduced .    never .        .      .      fixed=1 vectors=1 axes apart
ReduceLogSumExp    reduced .    never .        .      .      fixed=1 vectors=1 axes apart
ReduceMax          reduced .    empty integers exact  never  fixed=1 vectors=1 axes apart
ReduceMean         reduced .    never .        .      .      fixed=1 vectors=1 axes apart
ReduceMin          reduced .    empty integers exact  never  fixed=1 vectors=1 axes apart
ReduceProd         reduced .    never integers exact  .      fixed=1 vectors=1 axes apart
ReduceSum          reduced .    never integers exact  .      fixed=1 vectors=1 axes apart
ReduceSumSquare    reduced .    never .        exact  .      fixed=1 vectors=1 axes apart
Softmax            kept    .    never .        .      .  along_axis=13
TopK               .       .    .     .        exact  never  counting=1
""")
