"""Options of every command that rewrites, and groups of options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from passes.choices import (
    DEFAULT_OPSET,
    PROOF_BUDGET,
    Assumption,
    Executors,
    ProofScope,
    Proving,
    RuleOptions,
    Verifying,
)
from passes.commands.declaring import Declared, Feeds, Help, Place, WrongValue, option, options_of
from passes.commands.registry import command_of
from passes.errors import nearest

if TYPE_CHECKING:
    from onnx import ModelProto

    from passes.commands.delivery import Delivery
    from passes.commands.standalone import Standalone
    from passes.engine.schedules import Schedule
    from passes.onnxruntime.releases import Release
    from passes.targets.profile import Profile


@dataclass(frozen=True, kw_only=True)
class Converting(Declared):
    """The opset that a model is converted to."""

    opset: int | None = option(
        None,
        f"The opset to convert the model to. By default {DEFAULT_OPSET} for `upgrade`, unless "
        "the model is newer, and for a model with a Scan-8; else a model keeps its own.",
        least=7,
    )
    for_: str | None = option(
        None,
        "Instead of --opset: the newest opset that a release of onnxruntime loads, as "
        "`onnxruntime==1.22`.",
        metavar="RELEASE",
    )

    def asked(self) -> tuple[int | None, Release | None]:
        """The requested opset, and the release of onnxruntime that it is for.

        Raises:
            UnknownRelease: there is no such release.
        """
        if self.for_ is None:
            return self.opset, None
        from passes.onnxruntime.releases import release_of

        release = release_of(self.for_)
        return release.opset, release

    def check(self) -> None:
        """See that the opset is given once."""
        if self.opset is not None and self.for_ is not None:
            raise WrongValue("for_", "does not go together with opset")


def _refuse_executor(name: str) -> None:
    """Raise WrongValue for what is no executor."""
    if name in set(Executors):
        return
    from passes.verify.runtimes.executors import modules

    known = [*map(str, Executors), *modules()]
    if name not in known:
        raise WrongValue("executor", f"is {name!r}, not an executor; {nearest(name, known)}")


@dataclass(frozen=True, kw_only=True)
class Executing(Declared):
    """The executors of models, and their inputs."""

    executor: str = option(
        Executors.both,
        "What executes the models: `reference`, `onnxruntime`, or `both` of them, without what "
        "is not installed. `openvino`, `tract` or another one that is registered executes the "
        "outcome there, too.",
        metavar="EXECUTOR",
        refuse=_refuse_executor,
    )
    inputs: Place | None = option(
        None,
        "Run on these inputs, too: an .npz file with an array for each input, or a folder of "
        "input_N.pb files as in ONNX's test data.",
    )
    verify_budget: float = option(60.0, "Seconds that verification may take.", least=0, metavar="S")
    seed: int = option(0, "Seed of the drawn inputs.", metavar="N")


#: What executes both of two models, or a model and its parts.
BothExecutors = Annotated[
    str,
    Help(
        "What executes the models: `reference`, `onnxruntime`, or `both` of them, without what "
        "is not installed.",
        Executors,
    ),
]


@dataclass(frozen=True, kw_only=True)
class Comparing(Declared):
    """How two models that the user names are compared."""

    executor: Annotated[str, options_of(Executing)["executor"].help] = Executors.both
    inputs: Annotated[Place | Feeds | None, options_of(Executing)["inputs"].help] = None
    budget: Annotated[
        float, replace(options_of(Executing)["verify_budget"].help, flag="verify-budget")
    ] = 60.0
    seed: Annotated[int, options_of(Executing)["seed"].help] = 0
    exact: bool = option(False, "Floats must be equal to the bit.")


def feeds_of(inputs: Place | Feeds | None, model: ModelProto) -> Sequence[Feeds]:
    """The inputs that are given for a model, read if they are in a file. Raises BadInputs."""
    from passes.verify.inputs.given import load

    if inputs is None:
        return ()
    return (inputs if isinstance(inputs, Mapping) else load(Path(inputs), model),)


Dims = Annotated[
    Mapping[str, int | str] | None,
    Help(
        "Fix a symbolic dim of the whole model, as `batch=4`, or declare it equal to another one, "
        "as `b=batch`; repeatable.",
        flag="dim",
        metavar="NAME=SIZE|NAME",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Binding(Declared):
    """Facts about the inputs of a model."""

    dims: Dims = None
    shapes: Mapping[str, Sequence[int | None]] | None = option(
        None,
        "Fix the shape of an input, as `input=1,576`; `?` leaves a dim as it is; repeatable.",
        flag="shape",
        metavar="INPUT=SIZE,...",
    )
    values: Mapping[str, Any] | None = option(
        None,
        "Make an input a constant: a number, bool, string or list, as `sr=16000` or "
        "`sizes=[1,2]`, or the array in a file, as `x=@file.npy`; repeatable.",
        flag="set",
        metavar="INPUT=VALUE",
    )


ProofBudget = Annotated[
    float,
    Help(
        "Seconds that the proof may take, for all sizes, stated ones and drawn ones together.",
        least=0,
        metavar="S",
    ),
]

Ranges = Annotated[
    Mapping[str, tuple[float, float]] | None,
    Help(
        "For a proof up to rounding: the least and the largest element of an input, as `x=0..10`; "
        "-1 to 1 if none is given; repeatable.",
        flag="range",
        metavar="INPUT=LOW..HIGH",
    ),
]


def rule_options(declared: Declared) -> RuleOptions:
    """The options for rules that options of the same names give, as far as they are set."""
    given = {one.name: getattr(declared, one.name, None) for one in fields(RuleOptions)}
    return RuleOptions(**{name: value for name, value in given.items() if value is not None})


@dataclass(frozen=True, kw_only=True)
class Options(Executing, Binding, Converting):
    """The options of every command that rewrites. A command is a subclass: its own fields, its
    docstring, which is the help; another `schedule` of phases than that of its name."""

    verify: bool = option(True, "Execute the model before and after.")
    allow_unverified: bool = option(False, "Write rewrites that could not be compared.")
    prove: bool = option(
        False,
        "Also prove that the outcome answers as the model does, for all sizes, else for stated or "
        "drawn ones, and report the result. Where there is no proof for all sizes, what it asks "
        "for is executed.",
    )
    require_proof: str | None = option(
        None,
        "Write nothing and exit 3 unless --prove shows the outcome right: for `all` sizes, at "
        "least at stated or drawn `sizes`, at least there up to the order of "
        "`summation`, or at least equal over the `reals`, with a bound on rounding.",
        ProofScope,
    )
    certify: bool = option(
        False,
        "Prove it as --prove does, and put the certificate of the proof into the metadata of "
        "the outcome, for `certificate check`.",
    )
    prove_budget: ProofBudget = PROOF_BUDGET
    ranges: Ranges = None
    assume: Sequence[str] = option(
        (),
        "`valid-inputs` leaves out the guards that make the new model fail on inputs on which "
        "the old one fails; `non-empty` what handles a batch, time or length of 0. "
        "`int32-inputs` promises that the elements of int64 inputs fit int32.",
        Assumption,
    )
    robust: bool = option(
        False,
        "Where a Scan-8 is upgraded: skip its loops if a batch, a time or all lengths are 0. "
        "The Scan does nothing there, but onnxruntime fails on it, as on most such Scan-8.",
    )
    progress: Callable[[str], None] | None = option(None, shown=frozenset({"api"}))

    @property
    def schedule(self) -> Schedule:
        """The phases that the command runs with these options."""
        from passes.commands.schedules import SCHEDULES

        return SCHEDULES[self.scheduled]

    @property
    def scheduled(self) -> str:
        """The name of its schedule, if that is one of this package."""
        return command_of(self).name

    def instead(self, models: Sequence[str], delivery: Delivery) -> Standalone | None:
        """The command that answers on the command line in place of this one, if the options ask
        for it. Raises WrongUsage if they do not go together."""
        return None

    @property
    def profile(self) -> Profile | None:
        """The profile that the outcome must fit under --strict."""
        return None

    @property
    def least_gain(self) -> float | None:
        """The gain that the outcome must have when it is measured, None if it is not measured."""
        return None

    def for_rules(self) -> RuleOptions:
        """Return the options for rules."""
        return replace(rule_options(self), for_onnxruntime=self.for_ is not None)

    def proving(self) -> Proving | None:
        """Return how to prove the outcome, None if that is not asked for."""
        asked = self.prove or self.require_proof is not None or self.certify
        return Proving(self.prove_budget, self.require_proof, self.certify) if asked else None

    def verifying(self) -> Verifying | None:
        """Return how to verify, None if verification is off."""
        if not self.verify:
            return None
        return Verifying(
            executor=self.executor,
            budget=self.verify_budget,
            seed=self.seed,
            inputs=self.inputs,
            allow_unverified=self.allow_unverified,
            assume=self.assume,
        )


@dataclass(frozen=True, kw_only=True)
class Selecting(Options):
    """Some of the loops of a model."""

    only: Sequence[str] = option(
        (),
        "Rewrite only the loops whose path or name matches, as `main/*/scan_0`; repeatable.",
        metavar="PATTERN",
    )


@dataclass(frozen=True, kw_only=True)
class Choosing(Selecting):
    """Some of the loops, and some of the rules."""

    rules: Sequence[str] = option(
        (),
        "Run only this rule, of this command or of any other; repeatable.",
        flag="rule",
        metavar="NAME",
    )
    skip: Sequence[str] = option((), "Do not run this rule; repeatable.", metavar="NAME")


MaxNodes = Annotated[
    int, Help("The most nodes that all loops together unroll to.", least=1, metavar="N")
]
MaxTrips = Annotated[
    int | None,
    Help(
        "Promise that no Loop runs more than N times: one whose trip count is unknown is written "
        "out that often, and the new model fails if that is not enough.",
        least=1,
        metavar="N",
    ),
]
MaxBytes = Annotated[
    int,
    Help(
        "The most bytes of values that may move out of one loop, and stay alive while it runs.",
        least=0,
        metavar="N",
    ),
]
