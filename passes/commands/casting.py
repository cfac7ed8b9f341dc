"""The command that gives the values of a model other element types: its options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from passes.choices import BFLOAT16_OPSET, Half, Retyping, RuleOptions, Signature, Storage
from passes.commands.declaring import option
from passes.commands.options import Options
from passes.commands.registry import command


@command("cast", short_help="Compute in float16, bfloat16 or int32, in loops, too.", suffix="cast")
@dataclass(frozen=True, kw_only=True)
class Cast(Options):
    """Give the values of a model other element types, in loops and branches, too: compute in half
    precision or in int32, or store weights in fewer bits.

    What would lose too much keeps its type, such as sums over many iterations and what decides; the
    report tells why. The outcome is not equal to the model: the report tells how far each output is
    off, at several lengths. Exit 3 if an error is larger than --max-error. With --int32 alone the
    outcome is equal, and verified as that.
    """

    to: str | None = option(
        None,
        "Compute in this type instead of float32, where that holds. bfloat16 converts the model to "
        f"opset {BFLOAT16_OPSET}, unless it is newer.",
        Half,
    )
    io: str = option(
        Signature.keep,
        "Whether inputs and outputs `keep` their types, or are `cast` as all else.",
        Signature,
    )
    keep: Sequence[str] = option(
        (),
        "Keep nodes in float32: those whose operator, path or name matches, as `Exp` or "
        "`main/scan_0.body/*`; repeatable.",
        metavar="PATTERN",
    )
    half: Sequence[str] = option(
        (),
        "Compute nodes in half precision that would be kept in float32, whatever the reason; "
        "repeatable.",
        metavar="PATTERN",
    )
    weights: str | None = option(
        None,
        "Store weights in this type, and compute in the type that they had: they are cast, or "
        "dequantized, before the loops.",
        Storage,
    )
    int32: bool = option(
        False,
        "Compute in int32 instead of int64, where the values are proven to fit. `--assume "
        "int32-inputs` promises that int64 inputs do.",
    )
    max_error: float | None = option(
        None,
        "The largest error that an output may have, over its largest element, as 1e-3: nodes are "
        "kept in float32 until it is reached; exit 3 if it cannot be.",
        least=0,
        metavar="E",
    )

    def for_rules(self) -> RuleOptions:
        retyping = Retyping(
            self.to or "",
            self.io,
            tuple(self.keep),
            tuple(self.half),
            self.weights or "",
            self.int32,
            self.max_error,
        )
        return replace(super().for_rules(), retyping=retyping)

    def check(self) -> None:
        """See that a type is asked for, and nothing that no cast can have."""
        super().check()
        if self.to is None and self.weights is None and not self.int32:
            raise ValueError("name a type: to, weights or int32")
        if self.to is None:
            for name in ("keep", "half"):
                if getattr(self, name):
                    raise ValueError(f"{name} goes with to")
        if self.proving() is not None:
            raise ValueError("a cast changes what the model computes, so that nothing is proven")
        if self.max_error is not None and self.to is None and self.weights is None:
            raise ValueError("max_error goes with to or weights")
        if self.max_error is not None and not self.verify:
            raise ValueError("max_error needs verification")
