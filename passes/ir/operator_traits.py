"""The traits of operators: one table, a row for each.

Sets that only one algorithm uses are located beside it, and so are those that were measured for
a release of onnxruntime. The reference executor has tables of its own, so that it does not
share mistakes made here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from passes.ir.operators import Operation, op_of


class Shape(StrEnum):
    """The shape of the output."""

    ELEMENTWISE = "elementwise"  # that of the first input; each element is computed from its own
    BROADCAST = "broadcast"  # what all inputs broadcast to; elementwise, too
    KEPT = "kept"  # that of the first input
    REDUCED = "reduced"  # that of the first input without some axes, or with 1 in their place
    OTHER = "."


class Work(StrEnum):
    """The cost of a node, per element of its output."""

    FREE = "free"  # next to nothing
    VIEW = "view"  # nothing but other axes: the memory may be that of the input
    FILL = "fill"  # it writes much from little
    MOVE = "move"  # it copies, perhaps to another type
    LIGHT = "light"  # a few instructions, with the same bits however many elements there are
    PRODUCT = "product"  # sums of products, of which the second operand is shared by all rows
    OTHER = "."


class Fails(StrEnum):
    """The values of the right type and shape on which it may fail, or have an output of another
    size.

    `Traits.fixed` must be known in any case.
    """

    NEVER = "never"
    STRINGS = "strings"  # on those that are not numbers
    INTEGERS = "integers"  # on 0, and on negative exponents
    INDICES = "indices"  # on those that are out of bounds
    EMPTY = "empty"  # where a row has no element
    NO_ROWS = "no-rows"  # onnxruntime's process ends where the first input has no element
    OPEN = "."


class Folds(StrEnum):
    """The inputs for which all executors agree to the bit, so that it may be folded."""

    ANY = "any"
    INTEGERS = "integers"
    FLOATS = "floats"  # and integers: IEEE 754 defines the result, but for the bits of NaN
    NEVER = "."


class Values(StrEnum):
    """The relation of the output's elements to those of the inputs."""

    SIZES = "sizes"  # they depend on sizes only: no element is read
    EXACT = "exact"  # moved, compared, summed or multiplied: small dyadic numbers are not rounded
    ROUNDS = "."


@dataclass(frozen=True)
class Traits:
    """A row. Where nothing is known, the default, nothing may be relied on.

    `fixed` are the positions of inputs that are axes, sizes or lengths: it may fail unless they
    are omitted or known. `draws`: it draws random numbers; Dropout, in training. `tensors`:
    its outputs are no sequences, optionals or maps.
    """

    shape: Shape = Shape.OTHER
    work: Work = Work.OTHER
    fails: Fails = Fails.OPEN
    folds: Folds = Folds.NEVER
    values: Values = Values.ROUNDS
    fixed: tuple[int, ...] = ()
    draws: bool = False
    tensors: bool = True

    @property
    def by_element(self) -> bool:
        """True if each element of the output is computed from those at its place."""
        return self.shape in (Shape.ELEMENTWISE, Shape.BROADCAST)

    @property
    def only_moves(self) -> bool:
        """True if it only moves data, and computes nothing."""
        return self.work in (Work.FREE, Work.VIEW, Work.FILL, Work.MOVE)

    @property
    def hands_on(self) -> bool:
        """True if its output has the elements of its first input in order; the memory may be the
        same."""
        named = self.work is Work.FREE and self.shape is Shape.ELEMENTWISE
        return named or self.work is Work.VIEW


def traits_of(node: Operation) -> Traits:
    """The traits of a node's operator, which hold for all its versions."""
    return TRAITS.get(op_of(node), UNKNOWN)


UNKNOWN = Traits()

_TABLE = """
# operator            shape        work     fails     folds     values    besides
Abs                   elementwise  light    never     floats    exact
Acos                  elementwise  .        never     .         .
Acosh                 elementwise  .        never     .         .
Add                   broadcast    light    never     floats    exact
And                   broadcast    light    never     any       exact
ArgMax                .            .        empty     integers  exact
ArgMin                .            .        empty     integers  exact
Asin                  elementwise  .        never     .         .
Asinh                 elementwise  .        never     .         .
Atan                  elementwise  .        never     .         .
Atanh                 elementwise  .        never     .         .
AveragePool           .            .        never     .         .
BatchNormalization    .            .        never     .         .
Bernoulli             .            .        .         .         .         draws
BitShift              broadcast    light    never     integers  exact
BitwiseAnd            broadcast    light    never     integers  exact
BitwiseNot            elementwise  light    never     integers  exact
BitwiseOr             broadcast    light    never     integers  exact
BitwiseXor            broadcast    light    never     integers  exact
Cast                  elementwise  move     strings   integers  exact
CastLike              elementwise  move     strings   integers  exact
Ceil                  elementwise  light    never     floats    exact
Celu                  elementwise  .        never     .         .
Clip                  elementwise  light    never     integers  exact
Compress              .            move     .         any       exact
Concat                .            move     never     any       exact
ConcatFromSequence    .            .        .         .         exact
Constant              .            free     never     .         exact
ConstantOfShape       .            fill     .         any       exact
Conv                  .            product  never     .         exact
ConvInteger           .            product  .         .         exact
Cos                   elementwise  .        never     .         .
Cosh                  elementwise  .        never     .         .
CumSum                kept         .        never     integers  exact     fixed=1
DepthToSpace          .            move     .         any       exact
DequantizeLinear      kept         .        .         .         .
Div                   broadcast    light    integers  floats    .
Dropout               .            light    .         .         .         draws
Einsum                .            .        .         .         exact
Elu                   elementwise  .        never     .         .
Equal                 broadcast    light    never     any       exact
Erf                   elementwise  .        never     .         .
Exp                   elementwise  .        never     .         .
Expand                .            fill     never     any       exact     fixed=1
EyeLike               .            fill     .         any       exact
Flatten               .            view     never     any       exact
Floor                 elementwise  light    never     floats    exact
GRU                   .            .        no-rows   .         .         fixed=4
Gather                .            move     indices   any       exact
GatherElements        .            move     indices   any       exact
GatherND              .            move     indices   any       exact
Gelu                  elementwise  .        never     .         .
Gemm                  .            product  never     .         exact
GlobalAveragePool     .            .        never     .         .
GlobalLpPool          .            .        never     .         .
GlobalMaxPool         .            .        never     .         .
Greater               broadcast    light    never     any       exact
GreaterOrEqual        broadcast    light    never     any       exact
HardSigmoid           elementwise  .        never     .         .
HardSwish             elementwise  .        never     .         .
Hardmax               kept         .        never     .         exact
Identity              elementwise  free     never     any       exact
If                    .            .        .         .         exact
InstanceNormalization kept         .        never     .         .
IsInf                 elementwise  light    never     any       exact
IsNaN                 elementwise  light    never     any       exact
LRN                   .            .        never     .         .
LSTM                  .            .        no-rows   .         .         fixed=4
LayerNormalization    kept         .        never     .         .
LeakyRelu             elementwise  light    never     .         .
Less                  broadcast    light    never     any       exact
LessOrEqual           broadcast    light    never     any       exact
Log                   elementwise  .        never     .         .
LogSoftmax            kept         .        never     .         .
Loop                  .            .        .         .         exact
LpNormalization       kept         .        .         .         .
LpPool                .            .        never     .         .
MatMul                .            product  never     .         exact
MatMulInteger         .            product  .         .         exact
Max                   broadcast    light    never     integers  exact
MaxPool               .            .        never     .         exact
Mean                  broadcast    light    never     .         .
Min                   broadcast    light    never     integers  exact
Mish                  elementwise  .        never     .         .
Mod                   broadcast    light    integers  integers  .
Mul                   broadcast    light    never     floats    exact
Multinomial           .            .        .         .         .         draws
Neg                   elementwise  light    never     floats    exact
NonZero               .            .        .         any       exact
Not                   elementwise  light    never     any       exact
OneHot                .            move     .         .         exact
Optional              .            .        .         .         exact     no-tensor
OptionalGetElement    .            .        .         .         exact     no-tensor
OptionalHasElement    .            .        .         .         exact
Or                    broadcast    light    never     any       exact
PRelu                 kept         light    never     .         exact
Pad                   .            move     never     any       exact     fixed=1,3
Pow                   broadcast    .        integers  .         .
QuantizeLinear        kept         .        .         .         .
RNN                   .            .        never     .         .         fixed=4
RandomNormal          .            .        .         .         .         draws
RandomNormalLike      .            .        .         .         .         draws
RandomUniform         .            .        .         .         .         draws
RandomUniformLike     .            .        .         .         .         draws
Range                 .            fill     .         any       exact
Reciprocal            elementwise  light    never     floats    .
ReduceL1              reduced      .        never     .         exact     fixed=1
ReduceL2              reduced      .        never     .         .         fixed=1
ReduceLogSum          reduced      .        never     .         .         fixed=1
ReduceLogSumExp       reduced      .        never     .         .         fixed=1
ReduceMax             reduced      .        empty     integers  exact     fixed=1
ReduceMean            reduced      .        never     .         .         fixed=1
ReduceMin             reduced      .        empty     integers  exact     fixed=1
ReduceProd            reduced      .        never     integers  exact     fixed=1
ReduceSum             reduced      .        never     integers  exact     fixed=1
ReduceSumSquare       reduced      .        never     .         exact     fixed=1
Relu                  elementwise  light    never     .         exact
Reshape               .            view     never     any       exact     fixed=1
ReverseSequence       kept         move     .         any       exact
Round                 elementwise  light    never     floats    exact
Scan                  .            .        .         .         exact
Scatter               .            .        .         .         exact
ScatterElements       kept         move     indices   .         exact
ScatterND             kept         move     indices   .         exact
Selu                  elementwise  .        never     .         .
SequenceAt            .            .        .         .         exact
SequenceConstruct     .            .        .         .         exact     no-tensor
SequenceEmpty         .            fill     never     .         exact     no-tensor
SequenceErase         .            .        .         .         exact     no-tensor
SequenceInsert        .            .        .         .         exact     no-tensor
SequenceLength        .            .        .         .         exact
SequenceMap           .            .        .         .         exact     no-tensor
Shape                 .            free     never     any       sizes
Shrink                elementwise  light    never     .         .
Sigmoid               elementwise  .        never     .         .
Sign                  elementwise  light    never     integers  exact
Sin                   elementwise  .        never     .         .
Sinh                  elementwise  .        never     .         .
Size                  .            free     never     any       sizes
Slice                 .            move     never     any       exact     fixed=1,2,3,4
Softmax               kept         .        never     .         .
Softplus              elementwise  .        never     .         .
Softsign              elementwise  .        never     .         .
SpaceToDepth          .            move     .         any       exact
Split                 .            move     never     any       exact     fixed=1
SplitToSequence       .            .        .         .         exact     no-tensor
Sqrt                  elementwise  .        never     floats    .
Squeeze               .            view     never     any       exact     fixed=1
Sub                   broadcast    light    never     floats    exact
Sum                   broadcast    light    never     integers  exact
Swish                 elementwise  .        never     .         .
Tan                   elementwise  .        never     .         .
Tanh                  elementwise  .        never     .         .
ThresholdedRelu       elementwise  light    never     .         .
Tile                  .            fill     never     any       exact     fixed=1
TopK                  .            .        .         .         exact
Transpose             .            move     never     any       exact
Trilu                 kept         move     .         any       exact
Unique                .            .        .         .         exact
Unsqueeze             .            view     never     any       exact     fixed=1
Where                 broadcast    light    never     any       exact
Xor                   broadcast    light    never     any       exact
ai.onnx.ml::ZipMap    .            .        .         .         .         no-tensor
"""


def _rows() -> Mapping[str, Traits]:
    found = {}
    for line in _TABLE.strip().splitlines()[1:]:
        name, shape, work, fails, folds, values, *rest = line.split()
        fixed = [word.removeprefix("fixed=") for word in rest if word.startswith("fixed=")]
        found[name] = Traits(
            Shape(shape),
            Work(work),
            Fails(fails),
            Folds(folds),
            Values(values),
            tuple(map(int, ",".join(fixed).split(","))) if fixed else (),
            draws="draws" in rest,
            tensors="no-tensor" not in rest,
        )
    return found


TRAITS = _rows()
