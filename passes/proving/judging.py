"""Proves two models equal, or runs both on the inputs for which the proof asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from passes.choices import PROOF_BUDGET, Executors
from passes.ir.model import Model
from passes.proving.certificates.guide import Choices
from passes.proving.clues import cases_of
from passes.proving.drawn.proving import at_sizes
from passes.proving.promises import NO_PROMISES, Promises
from passes.proving.prover import Attempt, attempt
from passes.reports.proof import Proof
from passes.verify.compare.ledger import in_short
from passes.verify.compare.verdicts import Failure
from passes.verify.executor import Feeds
from passes.verify.inputs.hints import model_hints
from passes.verify.installed import executors
from passes.verify.requirements import Inputs, Limits, Models, Requirements
from passes.verify.verification import verify


@dataclass(frozen=True)
class Judged:
    """A proof, with its choices if it is one for all sizes; if it is `disproven`, the failure that
    shows it."""

    proof: Proof
    failure: Failure | None = None
    choices: Choices | None = None


@dataclass(frozen=True)
class Executing:
    """The way to execute models that are not proven equal: `budget` in seconds, `given` inputs come
    first."""

    executor: str = Executors.both
    budget: float = 60.0
    seed: int = 0
    given: Sequence[Feeds] = ()


def judge(
    before: Model,
    after: Model,
    budget: float = PROOF_BUDGET,
    executing: Executing = Executing(),  # it is frozen
    promises: Promises = NO_PROMISES,
) -> Judged:
    """Prove that `after` answers as `before` within `budget` seconds; where that fails, execute
    both.

    The inputs are those on which what was not proven depends, and drawn ones, as far as they keep
    the promises. If no inputs show a
    difference, the models are proven at drawn sizes, if that succeeds.

    Raises:
        NoExecutor: only onnxruntime was requested, and it is not installed.
    """
    found = attempt(before, after, budget, promises)
    if found.proof.is_proven or found.proof.code == "signature":
        return Judged(found.proof, choices=found.choices)
    judged = executed(before, after, found, executing, promises)
    if judged.failure is not None:
        return judged
    return Judged(at_sizes(before, after, found.proof, budget, promises))


def executed(
    before: Model, after: Model, found: Attempt, executing: Executing, promises: Promises
) -> Judged:
    """What was found, or that inputs on which it depends disprove it.

    Raises:
        NoExecutor: only onnxruntime was requested, and it is not installed.
    """
    before, after = promises.applied(before, after)
    sought = cases_of(before.proto, found.clues, executing.seed)
    hints = model_hints(before)
    with executors(executing.executor) as chosen:
        executed = verify(
            Models(before.proto, after.proto, before.base_dir, after.base_dir),
            Requirements(
                chosen,
                exact=False,
                lenient=True,
                non_empty=promises.non_empty,
                inputs=Inputs(
                    executing.seed, hints, executing.given, sought, promises.keeping(before)
                ),
                limits=Limits(executing.budget),
                portable=executing.executor == "both",
            ),
        )
    if executed.verdict != "mismatch" or executed.failure is None:
        return Judged(found.proof)
    feeds = executed.failure.case.feeds
    proof = replace(
        found.proof,
        verdict="disproven",
        code="mismatch",
        detail=executed.reason,
        inputs=tuple(in_short(*one) for one in feeds.items()),
    )
    return Judged(proof, executed.failure)
