"""`compare` and the command `verify`: two models, the same inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from onnx import ModelProto

from passes.ir.model import Model
from passes.reports.report import Checked
from passes.session import Source, loaded
from passes.verify.compare.verdicts import Verification
from passes.verify.executor import Executor, Feeds
from passes.verify.inputs.hints import model_hints
from passes.verify.installed import executors, is_runtime
from passes.verify.requirements import Inputs, Limits, Models, Requirements
from passes.verify.runtimes.comparing import compared
from passes.verify.verification import verify


def compare(
    before: Source,
    after: Source,
    *,
    inputs: Feeds | None = None,
    seed: int = 0,
    executor: str = "both",
    budget: float = 60.0,
    exact: bool = False,
    tolerance: tuple[float, float] | None = None,
) -> Checked:
    """Execute two models on the same inputs and return the verdict: `verified` if their outputs
    agree, `mismatch`, or `not-compared` if no case could be compared.

    Both are run on `inputs` (arrays by name), if given, and on drawn ones. `executor` is that of
    the command `verify`; `budget` is in seconds. `exact`: floats must be equal to the bit;
    `tolerance`: they may be off by this absolute and relative error.

    Raises:
        BadModel: one of them is no valid model.
        NoExecutor: onnxruntime is asked for, and not installed.
        NoRuntime: the runtime of that name is not installed.
    """
    terms = Requirements(
        (),
        exact=exact,
        inputs=Inputs(seed, given=() if inputs is None else (inputs,)),
        limits=Limits(budget),
        tolerance=tolerance,
    )
    return compare_models(loaded(before)[0], loaded(after)[0], executor, terms).short


def compare_models(before: Model, after: Model, executor: str, terms: Requirements) -> Verification:
    """The verification of two valid models, on terms that name no executors and no hints."""
    inputs = replace(terms.inputs, hints=model_hints(before))

    def judge(original: ModelProto, chosen: Sequence[Executor]) -> Verification:
        sides = Models(original, after.proto, before.base_dir, after.base_dir)
        portable = executor == "both"
        return verify(sides, replace(terms, executors=chosen, inputs=inputs, portable=portable))

    if is_runtime(executor):
        return compared(executor, before.proto, judge).verification
    with executors(executor) as chosen:
        return judge(before.proto, chosen)
