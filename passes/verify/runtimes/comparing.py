"""An outcome in the runtime that it is for, against the original in the reference executor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from onnx import ModelProto

from passes.binding.inputs import Binding, as_given
from passes.check import load_checked
from passes.verify.compare.verdicts import Verification
from passes.verify.executor import CannotRun, Executor
from passes.verify.inputs.hints import model_hints
from passes.verify.reference import ReferenceExecutor
from passes.verify.requirements import Inputs, Limits, Models, Requirements
from passes.verify.runtimes.executors import NoRuntime, marked, runtime
from passes.verify.verification import verify


@dataclass(frozen=True)
class Compared:
    """The result of an outcome in a runtime: the number of cases that agree, or why none does."""

    runtime: str
    cases: int
    reason: str
    verification: Verification

    @property
    def agrees(self) -> bool:
        """True if they agree, in at least one case."""
        return self.cases > 0 and not self.reason

    def __str__(self) -> str:
        if self.agrees:
            return f"agrees with the original on {self.runtime}, in {self.cases} cases"
        if self.cases:
            return f"does not agree with the original on {self.runtime}: {self.reason}"
        return f"was not compared on {self.runtime}: {self.reason}"


def compared(
    name: str,
    original: ModelProto,
    judge: Callable[[ModelProto, Sequence[Executor]], Verification],
) -> Compared:
    """Return the result of an outcome in a runtime, on drawn and on given inputs: `judge`
    verifies it against the original, which is marked, in these executors.

    Raises:
        UnknownRuntime: there is no such runtime.
        NoRuntime: it is not installed, or does not start.
    """
    with runtime(name) as there:
        try:
            which = f"{name} {there.version}"
        except CannotRun as error:
            raise NoRuntime(f"{error}") from error
        found = judge(marked(original), [ReferenceExecutor(keep=2), there])
    if found.verdict == "mismatch":
        return Compared(which, 1, found.reason, found)
    cases = found.tallies[name]["crossed"] if name in found.tallies else 0
    if cases:
        return Compared(which, cases, "", found)
    refusals = Counter(there.refusals).most_common(1)
    return Compared(which, 0, refusals[0][0] if refusals else found.reason, found)


def compared_files(
    original: Path,
    outcome: Path,
    name: str,
    inputs: Path | None,
    budget: float,
    seed: int,
    bound: Binding,
) -> Compared:
    """Run the outcome in a runtime, and compare it with the original at the inputs that were
    `bound`. Raises what `compared` raises, and:

    Raises:
        BadModel: a model cannot be read.
        BadInputs: the inputs are not those of the original.
    """
    before, after = (load_checked(path)[0] for path in (original, outcome))
    if bound:
        before = as_given(as_given(before, bound.of(before)), after)
    given = []
    if inputs is not None:
        from passes.verify.inputs.given import load

        given = [load(inputs, before.proto)]

    def judge(proto: ModelProto, executors: Sequence[Executor]) -> Verification:
        return verify(
            Models(proto, after.proto, before.base_dir, after.base_dir),
            Requirements(
                executors,
                exact=False,
                inputs=Inputs(seed, model_hints(before), given),
                limits=Limits(budget),
            ),
        )

    return compared(name, before.proto, judge)
