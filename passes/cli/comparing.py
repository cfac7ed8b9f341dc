"""The command `verify`: two model files, the same inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from onnx import ModelProto

from passes.check import load_checked
from passes.report import Checked, Report, Size
from passes.verify.compare.verdicts import Verification
from passes.verify.executor import Executor
from passes.verify.inputs.hints import model_hints
from passes.verify.installed import executors, is_runtime
from passes.verify.runtimes.comparing import compared
from passes.verify.terms import Inputs, Limits, Models, Terms
from passes.verify.verification import verify


def compare_files(
    before: Path,
    after: Path,
    executor: str,
    inputs: Path | None,
    budget: float,
    seed: int,
    say: Callable[[str], None] | None,
    *,
    exact: bool = False,
    tolerance: tuple[float, float] | None = None,
) -> tuple[tuple[ModelProto, ModelProto], Verification, Report]:
    """Load, check and execute two models; returns both, the verdict and its report.

    Raises:
        BadModel: one of them is no valid model.
    """
    sides = [load_checked(path)[0] for path in (before, after)]
    given = []
    if inputs is not None:
        from passes.verify.inputs.given import load

        given = [load(inputs, sides[0].proto)]
    if say is not None:
        say("verifying")

    def judge(before: ModelProto, chosen: Sequence[Executor]) -> Verification:
        return verify(
            Models(before, sides[1].proto, sides[0].base_dir, sides[1].base_dir),
            Terms(
                chosen,
                exact=exact,
                inputs=Inputs(seed, model_hints(sides[0]), given),
                limits=Limits(budget),
                tolerance=tolerance,
            ),
        )

    if is_runtime(executor):
        verification = compared(executor, sides[0].proto, judge).verification
    else:
        with executors(executor) as chosen:
            verification = judge(sides[0].proto, chosen)
    opsets = (sides[0].opset(), sides[1].opset())
    sizes = (Size.of(sides[0]), Size.of(sides[1]))
    report = Report("verify", str(before), opsets, sizes, checked=Checked.of(verification))
    return (sides[0].proto, sides[1].proto), verification, report
