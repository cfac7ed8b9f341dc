"""Operators that make their output of sizes, parameters or chance."""

from __future__ import annotations

from passes.operators.traits import rows

ROWS = rows("""
# operator        shape work  fails folds values rounds besides
Bernoulli         .     .     .     .     .      .      draws
BlackmanWindow    .     .     .     .     .      .      deciding=0
Constant          .     free  never .     exact  never
ConstantOfShape   .     fill  .     any   exact  never  vectors=0 deciding=0
Dropout           .     light .     .     .      .      draws
EyeLike           .     fill  .     any   sizes  never
HammingWindow     .     .     .     .     .      .      deciding=0
HannWindow        .     .     .     .     .      .      deciding=0
MelWeightMatrix   .     .     .     .     .      .      deciding=0
Multinomial       .     .     .     .     .      .      draws
RandomNormal      .     .     .     .     .      .      draws
RandomNormalLike  .     .     .     .     .      .      draws
RandomUniform     .     .     .     .     .      .      draws
RandomUniformLike .     .     .     .     .      .      draws
Range             .     fill  .     any   exact  never  deciding=0,1,2
""")
