"""Opset versions, and IR versions if named so, each called after what it introduced."""

from __future__ import annotations

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

#: The only version of Scan that has a batch axis and sequence_lens.
SCAN_8 = 8

#: Where is new, which chooses between two values of any type.
HAS_WHERE = 9

#: ConstantOfShape is new, which makes a tensor of sizes known only at run time.
HAS_CONSTANT_OF_SHAPE = 9

#: Less and Greater compare whole numbers.
LESS_TAKES_INTEGERS = 9

#: Slice takes its bounds as inputs, and steps.
SLICE_HAS_INPUTS = 10

#: The branches of an If may give values of two shapes.
SHAPES_MAY_DIFFER = 11

#: A Loop may carry nothing.
LOOP_MAY_CARRY_NOTHING = 11

#: Reshape can take a 0 as the size 0 (`allowzero`).
ZERO_IS_A_SIZE = 14

#: Identity takes sequences, not only tensors.
IDENTITY_OF_SEQUENCES = 14

#: Identity takes optionals, too.
IDENTITY_OF_OPTIONALS = 16

#: Reducers other than ReduceSum take their axes as an input.
REDUCED_AXES_ARE_INPUTS = 18
