"""What proofs assume, in words: the verdict tells each that a proof used."""

from __future__ import annotations

_AXES = "axes of one name have one size"
_NANS = "NaNs are alike"
_NOT_COLLECTED = "rows that no iteration collects have the sizes that the body would give them"
#: What every proof for all sizes assumes.
ALWAYS = (
    _AXES,
    "no axis is longer than 2^31 - 1, no loop iterates more than 2^47 times",
    _NANS,
    _NOT_COLLECTED,
)
#: What every proof at drawn sizes assumes.
AT_SIZES = (
    _AXES,
    _NANS,
    "what is constant is computed as the reference executor does",
    "kernels sum up a row in the same order wherever it is",
    _NOT_COLLECTED,
)

#: Of sums that are equal terms.
ROWS = "a row is summed up in the same order wherever it is"
#: Of recurrent operators, whose documents leave the order of sums open.
CELLS = "LSTM, GRU and RNN sum up a gate as inputs and biases first, then states, then peepholes"
FITS = "inputs of LSTM, GRU and RNN have the sizes of their documents, and none is broadcast"
#: Of what the new model alone runs over nothing.
SCANS_NOTHING = "a Scan over nothing answers, on which onnxruntime fails"
CELLS_NOTHING = "LSTM, GRU and RNN over no step end with the initial state; onnxruntime differs"
#: Of operators that have no model.
ALIKE = "an operator that is not modelled gives equal outputs for equal inputs, wherever it is"
DECLARED = "an operator of another domain gives tensors of the declared types"
STEPS = "an operator of an older version is what the table of opset steps makes of it"
#: Of sums in another order, for all sizes.
REGROUPED = (
    "sums and products of the same terms in another order are equal, but for rounding and the sign"
    " of a zero; others are told apart but for a probability below 2^-40"
)
#: Of sums in another order at drawn sizes, where cases are executed, too.
REORDERED = (
    "sums and products of the same terms in another order differ by what verification allows for"
    " rounding, and in the sign of a zero, where none overflows or underflows"
)
#: Up to rounding.
ROUNDED = (
    "each operation rounds as IEEE 754 does, sums in any order, in the precision of its type",
    "Exp and Sqrt are right to 4 epsilons of the type; so are other functions, of 1 if"
    " they are smaller",
)
