"""Versions by what they brought: opsets, and IR versions where it says so."""

from __future__ import annotations

#: IR version: initializers need not be inputs, and a caller may feed those that are.
FREE_INITIALIZERS = 4

#: The only version of Scan that has a batch axis and sequence_lens.
SCAN_8 = 8

#: Where and ConstantOfShape are new; Less and Greater compare whole numbers.
WHERE_SINCE = 9

#: Slice takes its bounds as inputs, and steps.
SLICE_HAS_INPUTS = 10

#: The branches of an If may give values of two shapes.
SHAPES_MAY_DIFFER = 11

#: A Loop may carry nothing.
LOOP_MAY_CARRY_NOTHING = 11

#: Reshape can take a 0 as the size 0 (`allowzero`).
ZERO_IS_A_SIZE = 14

#: Reducers other than ReduceSum take their axes as an input.
REDUCED_AXES_ARE_INPUTS = 18
