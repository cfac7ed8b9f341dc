"""Versions: of opsets, and of IR if named so, by what each introduced; of installed tools."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import cache
from importlib import metadata

#: IR version: models import opsets; older ones have none.
OLDEST_IR_VERSION = 3

#: IR version: initializers need not be inputs, and a caller may feed those that are.
FREE_INITIALIZERS = 4

#: IR version: models have functions of their own.
FUNCTIONS = 8

#: IR version: attributes of functions may have defaults.
FUNCTIONS_HAVE_DEFAULTS = 9

#: IR version: functions of one name may differ by their overload.
FUNCTIONS_HAVE_OVERLOADS = 10

#: IR version: functions may state the types of their values.
FUNCTIONS_HAVE_TYPES = 10

#: The oldest opset that is read and written.
OLDEST_OPSET = 7

#: The only version of Scan that has a batch axis and sequence_lens.
SCAN_8 = 8

#: Scan has no batch axis, and its slices may lie on any axis.
SCAN_HAS_AXES = 9

#: Constant holds any element type, not only floats.
CONSTANT_OF_ANY_TYPE = 9

#: Compress and NonZero are new, which choose elements at run time.
HAS_COMPRESS = 9

#: Where is new, which chooses between two values of any type.
HAS_WHERE = 9

#: ConstantOfShape is new, which makes a tensor of sizes known only at run time.
HAS_CONSTANT_OF_SHAPE = 9

#: Less and Greater compare whole numbers.
LESS_TAKES_INTEGERS = 9

#: Slice takes its bounds as inputs, and steps.
SLICE_HAS_INPUTS = 10

#: DequantizeLinear is new, with one scale for all elements.
DEQUANTIZES = 10

#: ThresholdedRelu is an operator of ONNX.
HAS_THRESHOLDED_RELU = 10

#: Most operators count a negative axis or index from the end.
NEGATIVE_AXES = 11

#: Range is new, which counts to a number known only at run time.
HAS_RANGE = 11

#: Round is new.
HAS_ROUND = 11

#: Clip takes its limits as inputs.
CLIP_HAS_INPUTS = 11

#: The branches of an If may give values of two shapes.
SHAPES_MAY_DIFFER = 11

#: A Loop may carry nothing.
LOOP_MAY_CARRY_NOTHING = 11

#: Clip takes whole numbers.
CLIP_TAKES_INTEGERS = 12

#: Squeeze, Unsqueeze and ReduceSum take their axes as an input, Split its sizes.
AXES_ARE_INPUTS = 13

#: DequantizeLinear takes a scale for each index of an axis.
DEQUANTIZES_CHANNELS = 13

#: Softmax and its kin work along one axis, instead of on a matrix.
SOFTMAX_OF_ONE_AXIS = 13

#: Resize takes either scales or sizes, and leaves the other input out.
RESIZE_OF_SCALES_OR_SIZES = 13

#: Reshape can take a 0 as the size 0 (`allowzero`).
ZERO_IS_A_SIZE = 14

#: Identity takes sequences, not only tensors.
IDENTITY_OF_SEQUENCES = 14

#: Shape may return a part of the sizes (`start`, `end`).
SHAPE_HAS_BOUNDS = 15

#: CastLike is new, which casts to a type known only at run time.
HAS_CAST_LIKE = 15

#: Identity takes optionals, too.
IDENTITY_OF_OPTIONALS = 16

#: Reducers other than ReduceSum take their axes as an input.
REDUCED_AXES_ARE_INPUTS = 18

#: Split may be told the number of its parts (`num_outputs`), and needs it where it has no sizes.
SPLIT_COUNTS_OUTPUTS = 18

#: Pad and Resize may be given some axes only.
SOME_AXES = 18

#: GroupNormalization has a scale for each channel, not for each group.
SCALES_OF_CHANNELS = 21


_TOOLS = {
    "passes": "onnx-passes",
    **{name: name for name in ("onnx", "onnxruntime", "numpy", "openvino", "tract")},
}


@cache
def tools() -> Mapping[str, str]:
    """The versions of Python, of this tool, and of what it runs on, as far as it is installed."""
    found = {"python": platform.python_version()}
    for name, distribution in _TOOLS.items():
        try:
            found[name] = metadata.version(distribution)
        except metadata.PackageNotFoundError:
            if name == "passes":
                from passes import __version__

                found[name] = __version__
    return found
