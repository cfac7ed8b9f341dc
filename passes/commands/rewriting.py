"""The commands that rewrite a model: a class of options each, which names the phases it runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Annotated

from passes.choices import (
    MOST_BYTES,
    MOST_NODES,
    Batch,
    Bounded,
    Form,
    Peel,
    ProofScope,
    RuleOptions,
    Target,
)
from passes.commands.declaring import WrongValue, option, options_of
from passes.commands.delivery import CLI, Delivery, Reporting
from passes.commands.options import (
    Binding,
    Choosing,
    MaxBytes,
    MaxNodes,
    MaxTrips,
    Options,
    Selecting,
)
from passes.commands.registry import command
from passes.commands.standalone import Output, Say, Standalone, TheModel, silent
from passes.errors import WrongUsage, nearest
from passes.operators.cells import RECURRENT

if TYPE_CHECKING:
    from passes.inspection.lowest import Lowest
    from passes.targets.profile import Profile


@command("upgrade", short_help="Upgrade a model to a newer opset.", suffix="opset{opset}")
@dataclass(frozen=True, kw_only=True)
class Upgrade(Options):
    """Upgrade a model to a newer opset: Scan-8, with its batch and sequence_lens, and all else.

    Nothing is written unless every node was converted and every rewrite was verified.
    """

    batch: str = option(
        Batch.auto,
        "How a Scan-8 handles its batch: `vectorize` handles all rows at once; `mask` too, but "
        "rows of other lengths take all steps, and masks end them: slower, without a size that "
        "is known only at run time; `nest` runs a loop over the batch around the loop over "
        "time, `unroll` writes out each row of a static batch, `auto` chooses.",
        Batch,
    )


@command(
    "convert",
    short_help="Convert a model to another opset, up or down.",
    suffix="opset{opset}",
    suffix_without_opset="converted",
)
@dataclass(frozen=True, kw_only=True)
class Convert(Options):
    """Convert a model to another opset, newer or older, from 7 on, or to an IR version.

    Nothing is written unless every node was converted and every rewrite was verified; what the
    older opset does not support is reported, and the exit code is 3.
    """

    lowest: bool = option(
        False,
        "Write no model and execute nothing: report the oldest opset that the model can be "
        "converted to, and for each opset down to 7 what blocks it.",
        shown=CLI,
    )
    ir_version: int | None = option(
        None,
        "The IR version. By default the model's, or what a newer opset needs; on the way to an "
        "older opset the smallest that this and the content of the model need.",
        least=3,
        metavar="V",
    )
    inline: Sequence[str] = option(
        (),
        "Which model-local functions to inline: `all`, those `unsupported` by the IR version "
        "(the default), or one by its name, as `my::gelu`; repeatable.",
        metavar="NAME",
    )
    drop_metadata: bool = option(
        False, "Drop metadata that the IR version cannot hold, instead of refusing it."
    )

    def for_rules(self) -> RuleOptions:
        own = replace(super().for_rules(), inline=tuple(self.inline) or ("unsupported",))
        _, release = self.asked()
        return own if release is None else replace(own, ir_version=release.ir_version)

    def instead(self, models: Sequence[str], delivery: Delivery) -> Standalone | None:
        if not self.lowest:
            return None
        for name in ("opset", "for_", "ir_version", *options_of(Binding)):
            if getattr(self, name) is not None:
                flag = options_of(Convert)[name].key
                raise WrongUsage(f"--lowest does not go together with --{flag}")
        if delivery.output is not None:
            raise WrongUsage("--lowest does not go together with --output")
        if len(models) > 1:
            raise WrongUsage("--lowest takes one model")
        return LowestOpset(
            models[0], inline=self.inline, verbose=delivery.verbose, json=delivery.json
        )

    def check(self) -> None:
        """See that something is asked for, and an IR version that there is."""
        super().check()
        if not (self.opset or self.for_ or self.ir_version or self.inline or self.lowest):
            raise ValueError("name an opset, a release, an IR version or functions to inline")
        if self.ir_version is None:
            return
        if self.for_ is not None:
            raise ValueError("an IR version and a release that it is for do not go together")
        from onnx import IR_VERSION

        from passes.ir.versions import OLDEST_IR_VERSION

        if not OLDEST_IR_VERSION <= self.ir_version <= int(IR_VERSION):
            known = f"known are {OLDEST_IR_VERSION} to {int(IR_VERSION)}"
            raise ValueError(
                f"IR version {self.ir_version} is not known to the installed onnx, {known}"
            )


@dataclass(frozen=True)
class LowestOpset(Reporting, Standalone):
    """Return whether a model can be written in each opset from its own down to 7, and what stops
    it.

    Nothing is executed, so no outcome is verified, and nothing is written.
    """

    model: TheModel
    _: KW_ONLY
    inline: Annotated[Sequence[str], options_of(Convert)["inline"].help] = ()
    verbose: Annotated[bool, options_of(Delivery)["verbose"].help] = False

    def run(self, say: Say = silent) -> Lowest:
        """Return what becomes of the model at each opset.

        Raises:
            BadModel: the input is no valid model.
            UnknownFunction: the model has no function of a name in `inline`.
        """
        from passes.inspection.lowest import find_lowest

        return find_lowest(self.model, RuleOptions(inline=tuple(self.inline) or ("unsupported",)))

    def outputs(self, say: Say = silent) -> Iterator[Output]:
        found = self.run(say)
        yield Output(found.to_text(verbose=self.verbose), {"json": found.to_json})


@command("lower", short_help="Turn every Scan into a Loop.", suffix="lowered")
@dataclass(frozen=True, kw_only=True)
class Lower(Selecting):
    """Turn every Scan into a Loop; a model with a Scan-8 is upgraded first.

    Nothing is written unless every Scan became one and every rewrite was verified.
    """


@command("raise", short_help="Turn Loops into Scans, where that is proven.", suffix="raised")
@dataclass(frozen=True, kw_only=True)
class Raise(Selecting):
    """Turn Loops into Scans, and whiles into fors, where that is proven to be the same.

    A Loop that stays is reported with what its proof lacks; under --strict that exits with 3.
    """


@command("unroll", short_help="Write out loops of a static length.", suffix="unrolled")
@dataclass(frozen=True, kw_only=True)
class Unroll(Selecting):
    """Write out every iteration of the loops whose trip count is static, or bounded.

    A loop that stays is reported with the reason; under --strict that exits with 3.
    """

    max_nodes: MaxNodes = MOST_NODES
    factor: int | None = option(
        None,
        "Let loops do K iterations at a time, whatever their trip count.",
        least=1,
        metavar="K",
    )
    max_trips: MaxTrips = None
    bounded: str = option(
        Bounded.auto,
        "How to write an iteration that may not take place: `select` runs it and keeps the "
        "previous values, `if` puts it in an If, `auto` selects where the body cannot fail.",
        Bounded,
    )
    check_output: str | None = option(
        None,
        "With --max-trips: instead of failing, the new model has one more output, a bool of "
        "this name, which is false if N was not enough.",
        metavar="NAME",
    )
    peel: str | None = option(
        None, "Write out only the first, or the last, iteration of each loop.", Peel
    )

    @property
    def scheduled(self) -> str:
        if self.peel is not None:
            return "peel"
        return "unroll" if self.factor is None else "unroll-partial"

    def check(self) -> None:
        """See that the loops are written out in one way."""
        super().check()
        whole = {"factor": self.factor, "peel": self.peel, "max_trips": self.max_trips}
        declared = [name for name, value in whole.items() if value is not None]
        if len(declared) > 1:
            raise ValueError(f"{declared[0]} and {declared[1]} do not go together")
        if self.check_output is not None and (self.max_trips is None or not self.check_output):
            raise WrongValue("check_output", "is the name of an output that goes with max_trips")


@command("expand", short_help="Write RNN, GRU and LSTM in plain operators.", suffix="expanded")
@dataclass(frozen=True, kw_only=True)
class Expand(Selecting):
    """Write every RNN, GRU and LSTM as a loop over its steps, or step by step.

    An operator that stays is reported with the reason; under --strict that exits with 3.
    """

    form: str = option(
        Form.scan,
        "How to write the steps: as a `scan`, as a `loop`, or `written-out`, which needs a "
        "static number of them.",
        Form,
        flag="as",
    )
    max_nodes: MaxNodes = MOST_NODES


@command("reroll", short_help="Make loops of what is written out.", suffix="rerolled")
@dataclass(frozen=True, kw_only=True)
class Reroll(Options):
    """Turn a subgraph that is repeated in a chain, such as an unrolled loop, into a Scan.

    At least three copies are needed, each of which reads what the one before it computed. If there
    are none, the reason is reported; under --strict that exits with 3.
    """

    stack_weights: bool = option(
        False, "Join weights of which each copy has its own, as equal layers have."
    )


@command("hoist", short_help="Move work and constants out of loops.", suffix="hoisted")
@dataclass(frozen=True, kw_only=True)
class Hoist(Choosing):
    """Move invariant work out of loops and branches, and constants to the main graph."""

    max_bytes: MaxBytes = MOST_BYTES


@command(
    "simplify",
    short_help="Remove unused and duplicate work from loops and branches.",
    suffix="simplified",
)
@dataclass(frozen=True, kw_only=True)
class Simplify(Choosing):
    """Remove unused or duplicate work in loops and branches, and those that do nothing.

    What might fail stays, for the new model must fail where the old one does; --assume
    valid-inputs removes it, too.
    """


@command("optimize", short_help="Optimize control flow for a target runtime.", suffix="optimized")
@dataclass(frozen=True, kw_only=True)
class Optimize(Choosing):
    """Optimize the control flow of a model for speed, or for what a runtime supports.

    What a rule does not apply to is reported with the reason. Under --strict the exit code is 3 if
    a Loop stays, or, with another target than onnxruntime, if `check` finds anything in the way.
    """

    target: str = option(
        Target.onnxruntime,
        "`onnxruntime` is for speed: Scans with as little work as possible; `scan-only` the "
        "same, for runtimes without Loop; `loop-only` leaves no Scan; `no-control-flow` "
        "unrolls, inlines and selects. For any other target of `check`, the one of these is "
        "chosen that fits it best.",
        metavar="TARGET",
    )
    max_nodes: MaxNodes = MOST_NODES
    max_trips: MaxTrips = None
    max_bytes: MaxBytes = MOST_BYTES
    allow_reassociation: bool = option(
        False,
        "Sum, multiply and compare floats in another order, where a loop only does that. "
        "Target onnxruntime allows it by default, where no proof of the order is required.",
    )
    keep_order: bool = option(
        False, "Keep the order in which floats are summed, multiplied and compared."
    )
    contrib: bool = option(
        False, "Write operators of onnxruntime's own domain, too, which no other runtime has."
    )
    measure: bool = option(
        False, "Measure the model before and after in onnxruntime, and report the gain."
    )
    require_gain: float | None = option(
        None,
        "Measure, and write nothing and exit 3 unless the outcome is so many times as fast.",
        least=0,
        metavar="X",
    )

    @property
    def least_gain(self) -> float | None:
        return self.require_gain if self.require_gain is not None else 0.0 if self.measure else None

    @property
    def scheduled(self) -> str:
        return "optimize" if self._form == Target.onnxruntime else f"optimize-{self._form}"

    @property
    def profile(self) -> Profile | None:
        from passes.targets.profile import load

        return None if self.target == Target.onnxruntime else load(self.target)

    @property
    def _form(self) -> str:
        if self.target in set(Target):
            return self.target
        return self.profile.form if self.profile is not None else Target.onnxruntime

    @property
    def _lacked(self) -> frozenset[str]:
        """The recurrent operators that the target lacks."""
        profile = self.profile
        return frozenset(one for one in RECURRENT if profile and profile.lacks(one))

    @property
    def _regroups(self) -> bool:
        """Floats may be summed in another order: by request, or where nothing is against it."""
        orderless = (None, ProofScope.summation, ProofScope.reals)
        proven = self.certify or self.require_proof not in orderless
        by_default = self.target == Target.onnxruntime and not self.keep_order and not proven
        return self.allow_reassociation or by_default

    def check(self) -> None:
        """See that there is such a target, and that one promised trip counts writes loops out."""
        super().check()
        if self.target not in set(Target):
            self._check_profile()
        if self.max_trips is not None and self._form != Target.no_control_flow:
            flat = f"target {Target.no_control_flow}, which alone writes loops out"
            raise WrongValue("max_trips", f"goes with {flat}; {self.target} does not")
        if self.contrib and self._form != Target.onnxruntime:
            raise WrongValue("contrib", f"goes with target onnxruntime, not {self.target}")
        if self.keep_order and self.allow_reassociation:
            raise WrongValue("keep_order", "does not go together with allow_reassociation")

    def _check_profile(self) -> None:
        from passes.targets.profile import BadProfile, load, names

        known = dict.fromkeys([*map(str, Target), *names()])
        if self.target not in known and not self.target.endswith(".toml"):
            raise WrongValue(
                "target", f"is {self.target!r}, not a target; {nearest(self.target, known)}"
            )
        try:
            load(self.target)
        except BadProfile as error:
            raise WrongValue("target", f"is wrong: {error}") from error

    def for_rules(self) -> RuleOptions:
        forms = {Target.loop_only: Form.loop, Target.no_control_flow: Form.written_out}
        form = forms.get(Target(self._form), Form.scan)
        own = replace(
            super().for_rules(),
            lacks=self._lacked,
            form=form,
            allow_reassociation=self._regroups,
        )
        if self._form == Target.no_control_flow:  # unrolling into Ifs would not remove them
            own = replace(own, flat=True, bounded=Bounded.select)
        return own
