"""Operators on images: pools, sizes, statistics of channels."""

from __future__ import annotations

from passes.operators.traits import rows

ROWS = rows("""
# operator            shape work fails folds values rounds besides
AveragePool           .     .    never .     .      .  pools by_image
BatchNormalization    .     .    never .     .      .
GlobalAveragePool     .     .    never .     .      .  by_image
GlobalLpPool          .     .    never .     .      .  by_image
GlobalMaxPool         .     .    never .     .      .  by_image
InstanceNormalization kept  .    never .     .      .  by_image
LRN                   .     .    never .     .      .  by_image
LpPool                .     .    never .     .      .  pools by_image
MaxPool               .     .    never .     exact  never  pools
MaxUnpool             .     .    .     .     .      never
NonMaxSuppression     .     .    .     .     .      .      deciding=0,1
Resize                .     .    .     .     .      .      deciding=1-3
Upsample              .     .    .     .     .      .      deciding=1
""")
