"""Operators on images: pools, sizes, statistics of channels."""

from __future__ import annotations

from passes.operators.traits import rows

ROWS = rows("""
# operator            shape work fails folds values rounds besides
AveragePool           .     .    never .     .      .
BatchNormalization    .     .    never .     .      .
GlobalAveragePool     .     .    never .     .      .
GlobalLpPool          .     .    never .     .      .
GlobalMaxPool         .     .    never .     .      .
InstanceNormalization kept  .    never .     .      .
LRN                   .     .    never .     .      .
LpPool                .     .    never .     .      .
MaxPool               .     .    never .     exact  never
MaxUnpool             .     .    .     .     .      never
NonMaxSuppression     .     .    .     .     .      .      deciding=0,1
Resize                .     .    .     .     .      .      deciding=1-3
Upsample              .     .    .     .     .      .      deciding=1
""")
