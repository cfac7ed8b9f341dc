"""The defaults of options, and the words that an option may be.

Imports nothing that runs models, so that the command line can show its help quickly.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal

#: The opset of what is converted where none is named, unless the model has a newer one: with its IR
#: version, 10, every onnxruntime since 1.18 loads it and has kernels for all of its operators.
DEFAULT_OPSET = 21
#: That of a cast to bfloat16: about all operators take bfloat16 from here on.
BFLOAT16_OPSET = 22
#: The most nodes that all loops together unroll to.
MOST_NODES = 100_000
#: The most that moves out of one loop: 256 MiB.
MOST_BYTES = 1 << 28
#: Seconds that a proof may take.
PROOF_BUDGET = 20.0


class Batch(StrEnum):
    """Ways of upgrading a Scan-8."""

    auto = "auto"
    vectorize = "vectorize"
    mask = "mask"
    nest = "nest"
    unroll = "unroll"


class Bounded(StrEnum):
    """Ways of writing an iteration that may not take place."""

    auto = "auto"
    select = "select"
    branch = "if"


class Peel(StrEnum):
    """The iteration to write out."""

    first = "first"
    last = "last"


class Form(StrEnum):
    """Ways of writing the steps of a recurrent operator."""

    scan = "scan"
    loop = "loop"
    written_out = "written-out"


class Target(StrEnum):
    """The target that a model is optimized for."""

    onnxruntime = "onnxruntime"
    no_control_flow = "no-control-flow"
    loop_only = "loop-only"
    scan_only = "scan-only"


class Half(StrEnum):
    """The element types of half precision."""

    float16 = "float16"
    bfloat16 = "bfloat16"


class Signature(StrEnum):
    """What a cast does to the element types of inputs and outputs of the model."""

    keep = "keep"
    cast = "cast"


class Storage(StrEnum):
    """The element types that weights may be stored in, to be computed with as they were."""

    float16 = "float16"
    int8 = "int8"


class Executors(StrEnum):
    """The executors that run the models."""

    reference = "reference"
    onnxruntime = "onnxruntime"
    both = "both"


class Assumption(StrEnum):
    """An assumption that rewrites may make."""

    valid_inputs = "valid-inputs"
    non_empty = "non-empty"
    int32_inputs = "int32-inputs"


class ProofScope(StrEnum):
    """For which inputs a proof holds, the widest first."""

    all = "all"
    sizes = "sizes"
    summation = "summation"
    reals = "reals"


#: Options that only pipelines set.
Flag = Literal[
    "no_branches",
    "dispatch_on_size",
    "weigh_few_iterations",
    "keep_packed_weights",
    "all_constants",
    "lacking_cells",
    "quicker_cells",
]

#: Options by name, with values: each of the sequence lifts a refusal by itself; None for a value
#: that only the user knows.
Lifts = Sequence[Mapping[str, Any]]
#: Those that lift a refusal of a code, where the rule names none.
LIFTED_BY: Mapping[str, Lifts] = {
    "batch-not-static": ({"dims": None}, {"batch": Batch.vectorize}),
    "condition-unknown": ({"values": None}, {"dims": None}),
    "contrib": ({"contrib": True},),
    "ir-metadata": ({"drop_metadata": True},),
    "may-be-empty": ({"assume": ("non-empty",)},),
    "not-verified": ({"inputs": None}, {"verify_budget": None}),
    "over-budget": ({"max_bytes": None},),
    "reassociation": ({"allow_reassociation": True},),
    "shape-unknown": ({"dims": None},),
    "steps-unknown": ({"dims": None},),
    "too-many-nodes": ({"max_nodes": None},),
    "trip-count-not-static": ({"dims": None}, {"values": None}, {"max_trips": 16}),
    "weights-differ": ({"stack_weights": True},),
}


@dataclass(frozen=True)
class Retyping:
    """The element types that a cast is to give: `to` is a `Half`, `weights` a `Storage`, each empty
    if it is not asked for; `int32`: int64 becomes int32. `io` is a `Signature`. The nodes that
    `keep` matches by operator, path or name stay float32, those that `half` matches do not, for
    whatever reason. `max_error` is the largest error that an output may have, over its largest
    element, None if it is only reported."""

    to: str = ""
    io: str = Signature.keep
    keep: tuple[str, ...] = ()
    half: tuple[str, ...] = ()
    weights: str = ""
    int32: bool = False
    max_error: float | None = None

    @property
    def is_exact(self) -> bool:
        """True if the outcome answers as the model, to the bit."""
        return not self.to and not self.weights


@dataclass(frozen=True)
class RuleOptions:
    """The options of rules: those that the user sets, then those that the pipeline adds."""

    assume: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    dims: Mapping[str, int | str] = field(default_factory=dict)
    shapes: Mapping[str, tuple[int | None, ...]] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    #: The least and the largest element of inputs, for proofs up to rounding.
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    batch: str = Batch.auto
    robust: bool = False
    max_trips: int | None = None
    max_nodes: int = MOST_NODES
    max_bytes: int = MOST_BYTES
    bounded: str = Bounded.auto
    factor: int = 2
    peel: str = Peel.first
    check_output: str = ""
    form: str = Form.scan
    #: Weights of which each copy of a subgraph has its own are joined to be scanned.
    stack_weights: bool = False
    #: Functions to inline: `all`, `unsupported` by the IR version, or names.
    inline: tuple[str, ...] = ("all",)
    #: The IR version that the outcome is to have, or fit in; None where any will do.
    ir_version: int | None = None
    #: Metadata that the IR version cannot hold is dropped.
    drop_metadata: bool = False
    #: A release of onnxruntime was named: what goes down to an older opset needs its kernels.
    for_onnxruntime: bool = False
    allow_reassociation: bool = False
    #: Operators of onnxruntime's own domain may be written.
    contrib: bool = False
    #: The model is to have no control flow.
    flat: bool = False
    #: An If is no better than the loop.
    no_branches: bool = False
    #: The size of a row may select one of two forms of a loop at run time.
    dispatch_on_size: bool = False
    #: A loop of a few iterations is written out where that is quicker, or stays as it is.
    weigh_few_iterations: bool = False
    #: Weights stay near the nodes for which onnxruntime rearranges them.
    keep_packed_weights: bool = False
    #: Constants that the main graph had are hoisted, too, though no loop reads them.
    all_constants: bool = False
    #: Recurrent operators are expanded only where the target lacks them.
    lacking_cells: bool = False
    #: And where onnxruntime runs the loop in less time.
    quicker_cells: bool = False
    #: Operators that the target lacks.
    lacks: frozenset[str] = frozenset()
    #: Names of the constants that the main graph had.
    own_constants: frozenset[str] = frozenset()
    #: The element types that a cast is to give.
    retyping: Retyping | None = None
    #: Why a rule is not to rewrite a site, by rule and path: a code and a sentence.
    left_out: Mapping[tuple[str, str], tuple[str, str]] = field(default_factory=dict)

    @property
    def default_opset(self) -> int:
        """The opset of what is converted where none is named, unless the model has a newer one."""
        half = self.retyping is not None and self.retyping.to == Half.bfloat16
        return BFLOAT16_OPSET if half else DEFAULT_OPSET

    def with_flags(self, flags: Iterable[Flag]) -> RuleOptions:
        """The same, with some of those on that are on or off."""
        on: dict[str, Any] = dict.fromkeys(flags, True)
        return replace(self, **on)


#: The key of a certificate in the metadata of a model.
CERTIFICATE = "passes.certificate"


@dataclass(frozen=True)
class Proving:
    """How to prove an outcome: `budget` in seconds; `required` is the narrowest scope with which
    the outcome is written, None if it is written without a proof, too; `certified`: its metadata
    has the certificate."""

    budget: float = PROOF_BUDGET
    required: str | None = None
    certified: bool = False

    def accepts(self, scope: ProofScope | None) -> bool:
        """Return whether a proof of this scope, or none, is enough."""
        order = [*ProofScope, None]
        return self.required is None or order.index(scope) <= order.index(ProofScope(self.required))


@dataclass(frozen=True)
class Verifying:
    """The way to verify. `budget` is in seconds; `executor` one of reference, onnxruntime, both;
    `assume` are the assumptions that the rewrites made."""

    executor: str = "both"
    budget: float = 60.0
    seed: int = 0
    inputs: str | os.PathLike[str] | None = None
    allow_unverified: bool = False
    assume: Sequence[str] = ()
