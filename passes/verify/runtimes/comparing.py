"""An outcome in the runtime that it is for, against the original in the reference executor."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from passes.check import load_checked
from passes.verify.inputs.hints import model_hints
from passes.verify.reference import ReferenceExecutor
from passes.verify.runtimes.executors import OutcomeOnly, marked, runtime
from passes.verify.terms import Inputs, Limits, Models, Terms
from passes.verify.verification import verify


@dataclass(frozen=True)
class Compared:
    """How an outcome did in a runtime: in how many cases it `agrees`, or why not."""

    runtime: str
    cases: int
    reason: str = ""

    @property
    def agrees(self) -> bool:
        """Whether it does, in at least one case."""
        return self.cases > 0 and not self.reason

    def __str__(self) -> str:
        if self.agrees:
            return f"agrees with the original on {self.runtime}, in {self.cases} cases"
        if self.cases:
            return f"does not agree with the original on {self.runtime}: {self.reason}"
        return f"was not compared on {self.runtime}: {self.reason}"


def compared(
    original: Path, outcome: Path, name: str, inputs: Path | None, budget: float, seed: int
) -> Compared:
    """Run the outcome in a runtime on drawn inputs, and those that are given, and compare.

    Raises:
        NoRuntime: the runtime is not installed.
        BadModel: a model cannot be read.
        BadInputs: the inputs are not those of the original.
    """
    before, after = (load_checked(path)[0] for path in (original, outcome))
    given = []
    if inputs is not None:
        from passes.verify.inputs.given import load

        given = [load(inputs, before.proto)]
    with runtime(name) as there:
        alone = OutcomeOnly(there)
        verification = verify(
            Models(marked(before.proto), after.proto, before.base_dir, after.base_dir),
            Terms(
                [ReferenceExecutor(keep=2), alone],
                exact=False,
                inputs=Inputs(seed, model_hints(before), given),
                limits=Limits(budget),
            ),
        )
        which = f"{name} {there.version}"
    if verification.verdict == "mismatch":
        return Compared(which, 1, verification.reason)
    cases = verification.tallies[name].crossed if name in verification.tallies else 0
    if cases:
        return Compared(which, cases)
    refusals = Counter(alone.refusals).most_common(1)
    return Compared(which, 0, refusals[0][0] if refusals else verification.reason)
