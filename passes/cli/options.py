"""The options of the command line, each defined once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from passes.choices import DEFAULT_OPSET, Assumption, Batch, Bounded, Executors, Peel, Target

if TYPE_CHECKING:
    from passes.options import WithOpset
    from passes.session import Progress


ModelFile = Annotated[Path, typer.Argument(help="The model: binary, or .onnxtxt, .json, ...")]
Opset = Annotated[
    int | None,
    typer.Option(
        "--opset",
        min=7,
        help=f"The opset to convert the model to. By default {DEFAULT_OPSET} for `upgrade`, unless "
        "the model is newer, and for a model with a Scan-8; else a model keeps its own.",
    ),
]
For = Annotated[
    str | None,
    typer.Option(
        "--for",
        help="Instead of --opset: the newest that a release of onnxruntime loads, as "
        "`onnxruntime==1.22`.",
        metavar="RELEASE",
    ),
]
BatchOption = Annotated[
    Batch,
    typer.Option(
        help="How a Scan-8 handles its batch: `vectorize` handles all rows at once, `nest` runs a "
        "loop over the batch around the loop over time, `unroll` writes out each row of a static "
        "batch, `auto` chooses."
    ),
]
Json = Annotated[
    Path | None,
    typer.Option("--json", help="Write the report as JSON, too.", metavar="FILE"),
]
ExecutorOption = Annotated[
    Executors,
    typer.Option(help="What executes the models; `both` leaves out what is not installed."),
]
Inputs = Annotated[
    Path | None,
    typer.Option(
        help="Run on these inputs too: an .npz with an array per input, or a folder of "
        "input_N.pb as in ONNX's test data."
    ),
]
Budget = Annotated[
    float, typer.Option(min=0.0, help="Seconds that verification may take.", metavar="S")
]
Seed = Annotated[int, typer.Option(help="Seed of the drawn inputs.", metavar="N")]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="Where to write; beside the model by default.", metavar="OUT"
    ),
]
Verify = Annotated[bool, typer.Option("--verify/--no-verify", help="Execute before and after.")]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict", help="Exit 3, too, if something stays that the command is to rewrite."
    ),
]
AllowUnverified = Annotated[
    bool, typer.Option("--allow-unverified", help="Write rewrites that could not be compared.")
]
Assume = Annotated[
    list[Assumption] | None,
    typer.Option(
        help="`valid-inputs` leaves out the guards that make the new model fail on inputs "
        "on which the old one fails; `non-empty` what handles a batch, time or length of 0."
    ),
]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Report every rewrite, and how it was verified."),
]
Robust = Annotated[
    bool,
    typer.Option(
        "--robust",
        help="Where a Scan-8 is upgraded: go around its loops where a batch, a time or all lengths "
        "are 0. The Scan does nothing there, but onnxruntime fails on it, as on most such Scan-8.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Write over OUT if it exists.")]
MaxNodes = Annotated[
    int,
    typer.Option(min=1, help="The most nodes that all loops together unroll to.", metavar="N"),
]
MaxBytes = Annotated[
    int,
    typer.Option(
        min=0,
        help="The most bytes of values that may move out of one loop, and live on while it runs.",
        metavar="N",
    ),
]
Reassociation = Annotated[
    bool,
    typer.Option(
        "--allow-reassociation",
        help="Sum, multiply and compare floats in another order, where a loop only does that.",
    ),
]
Factor = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Let loops do K iterations at a time, whatever their trip count.",
        metavar="K",
    ),
]
MaxTrips = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Promise that no Loop runs more than N times: one whose trip count is not known is "
        "written out so often, and the new model fails where that is not enough.",
        metavar="N",
    ),
]
BoundedOption = Annotated[
    Bounded,
    typer.Option(
        help="How an iteration that may not take place is written: `select` runs it and takes "
        "what was there before, `if` puts it in an If, `auto` selects where the body cannot fail.",
    ),
]
CheckOutput = Annotated[
    str | None,
    typer.Option(
        help="With --max-trips: instead of failing, the new model has one more output, a bool of "
        "this name, which is false where N was not enough.",
        metavar="NAME",
    ),
]
PeelOption = Annotated[
    Peel | None,
    typer.Option(help="Write out only the first, or the last, iteration of each loop."),
]
Dims = Annotated[
    list[str] | None,
    typer.Option(
        "--dim",
        help="Fix a symbolic dim of the whole model, as `batch=4`; may be repeated.",
        metavar="NAME=SIZE",
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        help="Rewrite only the loops whose path or name matches, as `main/*/scan_0`; repeatable.",
        metavar="PATTERN",
    ),
]

IrVersion = Annotated[
    int | None,
    typer.Option(
        min=3,
        help="The IR version. By default the model's, or what a newer opset needs; on the way to "
        "an older opset the smallest that this and the content of the model need.",
        metavar="V",
    ),
]
Inline = Annotated[
    list[str] | None,
    typer.Option(
        help="Which model-local functions become the nodes that they stand for: `all`, "
        "`unsupported` by the IR version (the default), or one by its name, as `my::gelu`; "
        "repeatable.",
        metavar="NAME",
    ),
]
DropMetadata = Annotated[
    bool,
    typer.Option(
        "--drop-metadata",
        help="Drop metadata that the IR version cannot hold, and say so, instead of refusing it.",
    ),
]
LowestOption = Annotated[
    bool,
    typer.Option(
        "--lowest",
        help="Write no model and execute nothing: report for each opset down to 7 whether the "
        "model can be written in it, and what stops it.",
    ),
]

TargetOption = Annotated[
    Target,
    typer.Option(
        help="`onnxruntime` is for speed: Scans that do little; `scan-only` the same, for runtimes "
        "without Loop; `loop-only` leaves no Scan; `no-control-flow` unrolls and inlines."
    ),
]
RuleOption = Annotated[
    list[str] | None,
    typer.Option(
        "--rule",
        help="Run only this rule, of this command or of any other; may be repeated.",
        metavar="NAME",
    ),
]
Skip = Annotated[
    list[str] | None,
    typer.Option(help="Do not run this rule; may be repeated.", metavar="NAME"),
]


def refuse_both(opset: int | None, for_: str | None) -> None:
    """See that the opset is given once.

    Raises:
        typer.BadParameter: it is given twice.
    """
    if opset is not None and for_ is not None:
        raise typer.BadParameter("does not go together with --opset", param_hint="--for")


def sizes_of(dims: list[str] | None) -> dict[str, int]:
    """What `--dim` fixes.

    Raises:
        typer.BadParameter: an entry is not of the form NAME=SIZE.
    """
    from passes.dims import parsed

    try:
        return dict(parsed(text) for text in dims or ())
    except ValueError as error:
        raise typer.BadParameter(f"{error}", param_hint="--dim") from error


@dataclass(frozen=True, kw_only=True)
class CommonOptions:
    """The options of every command that rewrites."""

    opset: Opset = None
    for_: For = None
    verify: Verify = True
    executor: ExecutorOption = Executors.both
    inputs: Inputs = None
    verify_budget: Budget = 60.0
    seed: Seed = 0
    json: Json = None
    strict: Strict = False
    allow_unverified: AllowUnverified = False
    assume: Assume = None
    robust: Robust = False
    force: Force = False
    verbose: Verbose = False

    def for_library(self, progress: Progress | None) -> WithOpset:
        """What the library's functions take of them."""
        return {
            "opset": self.opset,
            "for_": self.for_,
            "verify": self.verify,
            "executor": self.executor.value,
            "inputs": self.inputs,
            "verify_budget": self.verify_budget,
            "seed": self.seed,
            "allow_unverified": self.allow_unverified,
            "assume": [assumption.value for assumption in self.assume or []],
            "robust": self.robust,
            "progress": progress,
        }
