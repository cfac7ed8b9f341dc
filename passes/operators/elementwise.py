"""Operators that compute each element of their output from the elements at its place."""

from __future__ import annotations

from passes.operators.traits import rows

ROWS = rows("""
# operator       shape       work  fails    folds    values rounds besides
Abs              elementwise light never    floats   exact  never
Acos             elementwise .     never    .        .      once
Acosh            elementwise .     never    .        .      once
Add              broadcast   light never    floats   exact  .      commutes
Asin             elementwise .     never    .        .      once
Asinh            elementwise .     never    .        .      once
Atan             elementwise .     never    .        .      once
Atanh            elementwise .     never    .        .      once
BitShift         broadcast   light never    integers exact  never
BitwiseAnd       broadcast   light never    integers exact  never
BitwiseNot       elementwise light never    integers exact  never
BitwiseOr        broadcast   light never    integers exact  never
BitwiseXor       broadcast   light never    integers exact  never
Cast             elementwise move  strings  integers exact  once
CastLike         elementwise move  strings  integers exact  once
Ceil             elementwise light never    floats   exact  never
Celu             elementwise .     never    .        .      .
Clip             elementwise light never    integers exact  never
Cos              elementwise .     never    .        .      once
Cosh             elementwise .     never    .        .      once
DequantizeLinear kept        .     .        .        .      once
Div              broadcast   light integers floats   .      once
Elu              elementwise .     never    .        .      once
Erf              elementwise .     never    .        .      once
Exp              elementwise .     never    .        .      once
Floor            elementwise light never    floats   exact  never
Gelu             elementwise .     never    .        .      once
HardSigmoid      elementwise .     never    .        .      once
HardSwish        elementwise .     never    .        .      once
Identity         elementwise free  never    any      exact  never
LeakyRelu        elementwise light never    .        .      once
Log              elementwise .     never    .        .      once
Max              broadcast   light never    integers exact  never  since=8
Mean             broadcast   light never    .        .      .      since=8
Min              broadcast   light never    integers exact  never  since=8
Mish             elementwise .     never    .        .      once
Mod              broadcast   light integers integers .      never
Mul              broadcast   light never    floats   exact  once   commutes
Neg              elementwise light never    floats   exact  never
PRelu            kept        light never    .        exact  once
Pow              broadcast   .     integers .        .      once
QuantizeLinear   kept        .     .        .        .      .
Reciprocal       elementwise light never    floats   .      once
Relu             elementwise light never    .        exact  never
Round            elementwise light never    floats   exact  never
Selu             elementwise .     never    .        .      once
Shrink           elementwise light never    .        .      .
Sigmoid          elementwise .     never    .        .      once
Sign             elementwise light never    integers exact  never
Sin              elementwise .     never    .        .      once
Sinh             elementwise .     never    .        .      once
Softplus         elementwise .     never    .        .      once
Softsign         elementwise .     never    .        .      once
Sqrt             elementwise .     never    floats   .      once
Sub              broadcast   light never    floats   exact  .
Sum              broadcast   light never    integers exact  .      since=8
Swish            elementwise .     never    .        .      once
Tan              elementwise .     never    .        .      once
Tanh             elementwise .     never    .        .      once
ThresholdedRelu  elementwise light never    .        .      once
Where            broadcast   light never    any      exact  never
""")
