"""Operators of sums of products, recurrent cells among them."""

from __future__ import annotations

from passes.operators.traits import rows

ROWS = rows("""
# operator    shape work    fails   folds values rounds besides
Conv          .     product never   .     exact  .      by_image
ConvInteger   .     product .       .     exact  .      by_image
ConvTranspose .     .       .       .     .      .      by_image
Einsum        .     .       .       .     exact  .
GRU           .     .       no-rows .     .      .      fixed=4
Gemm          .     product never   .     exact  .
LSTM          .     .       no-rows .     .      .      fixed=4
MatMul        .     product never   .     exact  .
MatMulInteger .     product .       .     exact  .
QLinearConv   .     .       .       .     .      .      by_image
RNN           .     .       never   .     .      .      fixed=4
""")
