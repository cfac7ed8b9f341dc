"""What options say by default, and what they may say where that is one of a few words.

Imports nothing of what runs models: the command line shows its help without.
"""

from __future__ import annotations

from enum import StrEnum

#: The opset of what is converted where none is named, unless the model has a newer one: with its IR
#: version, 10, every onnxruntime since 1.18 loads it and has kernels for all of its operators.
DEFAULT_OPSET = 21
#: The most nodes that all loops together unroll to.
MOST_NODES = 100_000
#: The most that moves out of one loop: 256 MiB.
MOST_BYTES = 1 << 28


class Batch(StrEnum):
    """Ways of upgrading a Scan-8."""

    auto = "auto"
    vectorize = "vectorize"
    nest = "nest"
    unroll = "unroll"


class Bounded(StrEnum):
    """Ways of writing an iteration that may not take place."""

    auto = "auto"
    select = "select"
    branch = "if"


class Peel(StrEnum):
    """Which iteration to write out."""

    first = "first"
    last = "last"


class Target(StrEnum):
    """What a model is optimized for."""

    onnxruntime = "onnxruntime"
    no_control_flow = "no-control-flow"
    loop_only = "loop-only"
    scan_only = "scan-only"


class Executors(StrEnum):
    """What runs the models."""

    reference = "reference"
    onnxruntime = "onnxruntime"
    both = "both"


class Assumption(StrEnum):
    """What may be taken for granted."""

    valid_inputs = "valid-inputs"
    non_empty = "non-empty"
