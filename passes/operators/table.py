"""The table of operators, a row for each.

Sets that only one algorithm uses are located beside it, and so are those that were measured for
a release of onnxruntime. The reference executor has kernels of its own, so that it does not share
mistakes made here; of this table it reads only where an operator rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from passes.ir.operators import Operation, op_of
from passes.operators.traits import Traits, rows

#: Comparisons, and operators of truth values.
_COMPARISONS = rows("""
# operator     shape       work  fails folds values rounds besides
And            broadcast   light never any   exact  never  commutes logic
Equal          broadcast   light never any   exact  never  compares== commutes
Greater        broadcast   light never any   exact  never  compares=>
GreaterOrEqual broadcast   light never any   exact  never  compares=>=
IsInf          elementwise light never any   exact  never
IsNaN          elementwise light never any   exact  never
Less           broadcast   light never any   exact  never  compares=<
LessOrEqual    broadcast   light never any   exact  never  compares=<=
Not            elementwise light never any   exact  never  logic
Or             broadcast   light never any   exact  never  commutes logic
Xor            broadcast   light never any   exact  never  commutes logic
""")

#: Operators that compute each element of their output from the elements at its place.
_ELEMENTWISE = rows("""
# operator       shape       work  fails    folds    values rounds besides
Abs              elementwise light never    floats   exact  never
Acos             elementwise .     never    .        .      once
Acosh            elementwise .     never    .        .      once
Add              broadcast   light never    floats   exact  .      commutes accumulates=+
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
Ceil             elementwise light never    floats   exact  never wide
Celu             elementwise .     never    .        .      .
Clip             elementwise light never    integers exact  never
Cos              elementwise .     never    .        .      once
Cosh             elementwise .     never    .        .      once
DequantizeLinear kept        .     .        .        .      once
Div              broadcast   light integers floats   .      once accumulates=*
Elu              elementwise .     never    .        .      once
Erf              elementwise .     never    .        .      once
Exp              elementwise .     never    .        .      once
Floor            elementwise light never    floats   exact  never wide
Gelu             elementwise .     never    .        .      once
HardSigmoid      elementwise .     never    .        .      once
HardSwish        elementwise .     never    .        .      once
Identity         elementwise free  never    any      exact  never
LeakyRelu        elementwise light never    .        .      once accumulates=+
Log              elementwise .     never    .        .      once wide
Max              broadcast   light never    integers exact  never  since=8
Mean             broadcast   light never    .        .      .      since=8 accumulates=+
Min              broadcast   light never    integers exact  never  since=8
Mish             elementwise .     never    .        .      once
Mod              broadcast   light integers integers .      never wide
Mul              broadcast   light never    floats   exact  once   commutes accumulates=*
Neg              elementwise light never    floats   exact  never
PRelu            kept        light never    .        exact  once accumulates=+
Pow              broadcast   .     integers .        .      once wide
QuantizeLinear   kept        .     .        .        .      .
Reciprocal       elementwise light never    floats   .      once wide
Relu             elementwise light never    .        exact  never
Round            elementwise light never    floats   exact  never wide
Selu             elementwise .     never    .        .      once
Shrink           elementwise light never    .        .      .
Sigmoid          elementwise .     never    .        .      once
Sign             elementwise light never    integers exact  never
Sin              elementwise .     never    .        .      once
Sinh             elementwise .     never    .        .      once
Softplus         elementwise .     never    .        .      once
Softsign         elementwise .     never    .        .      once
Sqrt             elementwise .     never    floats   .      once
Sub              broadcast   light never    floats   exact  .  accumulates=+
Sum              broadcast   light never    integers exact  .      since=8 accumulates=+
Swish            elementwise .     never    .        .      once
Tan              elementwise .     never    .        .      once
Tanh             elementwise .     never    .        .      once
ThresholdedRelu  elementwise light never    .        .      once
Where            broadcast   light never    any      exact  never
""")

#: Operators that make their output of sizes, parameters or chance.
_GENERATORS = rows("""
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
Range             .     fill  .     any   exact  never  deciding=0,1,2 wide
""")

#: Operators on images: pools, sizes, statistics of channels.
_IMAGES = rows("""
# operator            shape work fails folds values rounds besides
AveragePool           .     .    never .     .      .  pools by_image
BatchNormalization    .     .    never .     .      .  wide
GlobalAveragePool     .     .    never .     .      .  by_image
GlobalLpPool          .     .    never .     .      .  by_image
GlobalMaxPool         .     .    never .     .      .  by_image
InstanceNormalization kept  .    never .     .      .  by_image
LRN                   .     .    never .     .      .  by_image wide
LpPool                .     .    never .     .      .  pools by_image
MaxPool               .     .    never .     exact  never  pools
MaxUnpool             .     .    .     .     .      never
NonMaxSuppression     .     .    .     .     .      .      deciding=0,1 counting=0
Resize                .     .    .     .     .      .      deciding=1-3 wide
Upsample              .     .    .     .     .      .      deciding=1 wide
""")

#: Operators that move elements, or tell where they are: shapes, indices, parts.
_MOVING = rows("""
# operator      shape work fails   folds values rounds besides
CenterCropPad   .     .    .       .     .      never  moves=0
Compress        .     move .       any   exact  never  moves=0
Concat          .     move never   any   exact  never  moves=all
DepthToSpace    .     move .       any   exact  never  moves=0
Expand          .     fill never   any   exact  never  moves=0 fixed=1 vectors=1
Flatten         .     view never   any   exact  never  moves=0
Gather          .     move indices any   exact  never  moves=0 indices=1 channels=0:0
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
StringNormalizer .    .    .       .     .      .      deciding=0
StringSplit     .     .    .       .     .      .      deciding=0
TensorScatter   .     .    .       .     .      never
Tile            .     fill never   any   exact  never  moves=0 fixed=1 vectors=1
Transpose       .     move never   any   exact  never  moves=0
Trilu           kept  move .       any   exact  never  moves=0
Unique          .     .    .       .     exact  never  deciding=0 counting=1-3
Unsqueeze       .     view never   any   exact  never  moves=0 fixed=1 axes
""")

#: Operators of sums of products, recurrent cells among them.
_PRODUCTS = rows("""
# operator    shape work    fails   folds values rounds besides
Conv          .     product never   .     exact  .      by_image channels=1:0
ConvInteger   .     product .       .     exact  .      by_image
ConvTranspose .     .       .       .     .      .      by_image channels=1:1
Einsum        .     .       .       .     exact  .
GRU           .     .       no-rows .     .      .      fixed=4 channels=1:1,2:1
Gemm          .     product never   .     exact  .      channels=0:0,1:1
LSTM          .     .       no-rows .     .      .      fixed=4 channels=1:1,2:1
MatMul        .     product never   .     exact  .      channels=0:-2,1:-1
MatMulInteger .     product .       .     exact  .
QLinearConv   .     .       .       .     .      .      by_image
RNN           .     .       never   .     .      .      fixed=4 channels=1:1,2:1
""")

#: Operators that compute with all elements along some axes: sums, extremes, normalizations.
_REDUCTIONS = rows("""
# operator                shape   work fails folds    values rounds besides
ArgMax                    .       .    empty integers exact  never  counting=0 apart
ArgMin                    .       .    empty integers exact  never  counting=0 apart
CumProd                   .       .    .     .        .      .      wide
CumSum                    kept    .    never integers exact  .      fixed=1 axes
DFT                       .       .    .     .        .      .      wide
GroupNormalization        .       .    .     .        .      .      wide
Hardmax                   kept    .    never .        exact  never  along_axis=13
LayerNormalization        kept    .    never .        .      .
LogSoftmax                kept    .    never .        .      .      along_axis=13
LpNormalization           kept    .    .     .        .      .      along_axis=1
MeanVarianceNormalization .       .    .     .        .      .      wide
RMSNormalization          .       .    .     .        .      .      wide
ReduceL1                  reduced .    never .        exact  .      fixed=1 vectors=1 axes apart
ReduceL2                  reduced .    never .        .      .      fixed=1 vectors=1 axes apart
ReduceLogSum              reduced .    never .        .      .      fixed=1 vectors=1 axes apart
ReduceLogSumExp           reduced .    never .        .      .      fixed=1 vectors=1 axes apart
ReduceMax                 reduced .    empty integers exact  never  fixed=1 vectors=1 axes apart
ReduceMean                reduced .    never .        .      .      fixed=1 vectors=1 axes apart
ReduceMin                 reduced .    empty integers exact  never  fixed=1 vectors=1 axes apart
ReduceProd                reduced .    never integers exact  .      fixed=1 vectors=1 axes apart
ReduceSum                 reduced .    never integers exact  .      fixed=1 vectors=1 axes apart
ReduceSumSquare           reduced .    never .        exact  .      fixed=1 vectors=1 axes apart
STFT                      .       .    .     .        .      .      wide
Softmax                   kept    .    never .        .      .      along_axis=13
TopK                      .       .    .     .        exact  never  counting=1
""")

#: Control flow, sequences, optionals and maps.
_SEQUENCES = rows("""
# operator         shape work fails folds values rounds besides
ConcatFromSequence .     .    .     .     exact  never  wraps=sequence
If                 .     .    .     .     exact  never
Loop               .     .    .     .     exact  never deciding=0
Optional           .     .    never .     exact  never  no-tensor wraps=optional
OptionalGetElement .     .    .     .     exact  never  no-tensor wraps=optional
OptionalHasElement .     .    never .     exact  never  wraps=optional
Scan               .     .    .     .     exact  never
SequenceAt         .     .    .     .     exact  never  wraps=sequence deciding=1
SequenceConstruct  .     .    never .     exact  never  no-tensor wraps=sequence makes
SequenceEmpty      .     fill never .     exact  never  no-tensor wraps=sequence makes
SequenceErase      .     .    .     .     exact  never  no-tensor wraps=sequence deciding=1
SequenceInsert     .     .    .     .     exact  never  no-tensor wraps=sequence deciding=2
SequenceLength     .     .    never .     exact  never  wraps=sequence
SequenceMap        .     .    .     .     exact  never  no-tensor wraps=sequence
SplitToSequence    .     .    .     .     exact  never  no-tensor wraps=sequence makes deciding=1
ai.onnx.ml::ZipMap .     .    .     .     .      .      no-tensor
""")

#: The rows by operator, as `op_of` names it.
TRAITS: Mapping[str, Traits] = {
    **_COMPARISONS,
    **_ELEMENTWISE,
    **_GENERATORS,
    **_IMAGES,
    **_MOVING,
    **_PRODUCTS,
    **_REDUCTIONS,
    **_SEQUENCES,
}
UNKNOWN = Traits()


def traits_of(node: Operation) -> Traits:
    """The traits of a node's operator, which hold for all its versions."""
    return TRAITS.get(op_of(node), UNKNOWN)


def where(holds: Callable[[Traits], object]) -> frozenset[str]:
    """The operators whose rows fulfil a condition."""
    return frozenset(op for op, row in TRAITS.items() if holds(row))


def positions(column: str) -> Mapping[str, Sequence[int]]:
    """A column of positions, of the operators that have any."""
    found = {op: getattr(row, column) for op, row in TRAITS.items()}
    return {op: places for op, places in found.items() if places}
