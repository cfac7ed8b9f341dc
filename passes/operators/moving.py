"""Operators that move elements, or tell where they are: shapes, indices, parts."""

from __future__ import annotations

from passes.operators.traits import rows

ROWS = rows("""
# operator      shape work fails   folds values rounds besides
CenterCropPad   .     .    .       .     .      never  moves=0
Compress        .     move .       any   exact  never  moves=0
Concat          .     move never   any   exact  never  moves=all
DepthToSpace    .     move .       any   exact  never  moves=0
Expand          .     fill never   any   exact  never  moves=0 fixed=1 vectors=1
Flatten         .     view never   any   exact  never  moves=0
Gather          .     move indices any   exact  never  moves=0 indices=1
GatherElements  .     move indices any   exact  never  moves=0 indices=1
GatherND        .     move indices any   exact  never  moves=0 indices=1
NonZero         .     .    .       any   exact  never  deciding=0 counting=0
OneHot          .     move .       .     exact  never  moves=2 indices=0
Pad             .     move never   any   exact  never  moves=0,2 fixed=1,3 vectors=1,3
Reshape         .     view never   any   exact  never  moves=0 fixed=1 vectors=1
ReverseSequence kept  move .       any   exact  never  moves=0
Scatter         .     .    .       .     exact  never  moves=0,2
ScatterElements kept  move indices .     exact  never  moves=0,2 indices=1
ScatterND       kept  move indices .     exact  never  moves=0,2 indices=1
Shape           .     free never   any   sizes  never  counting=0
Size            .     free never   any   sizes  never  counting=0
Slice           .     move never   any   exact  never  moves=0 fixed=1-4 vectors=1-4 axes
SpaceToDepth    .     move .       any   exact  never  moves=0
Split           .     move never   any   exact  never  moves=0 fixed=1 vectors=1
Squeeze         .     view never   any   exact  never  moves=0 fixed=1 axes
StringSplit     .     .    .       .     .      .      deciding=0
TensorScatter   .     .    .       .     .      never
Tile            .     fill never   any   exact  never  moves=0 fixed=1 vectors=1
Transpose       .     move never   any   exact  never  moves=0
Trilu           kept  move .       any   exact  never  moves=0
Unique          .     .    .       .     exact  never  deciding=0
Unsqueeze       .     view never   any   exact  never  moves=0 fixed=1 axes
""")
