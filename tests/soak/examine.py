"""One model through the commands: what each did, and what is wrong with it."""

from __future__ import annotations

import re
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from onnx import ModelProto

import passes.verifying
from passes.errors import PassesError
from passes.session import Mismatch, NotProduced, NotVerified, Result
from passes.verify.executor import Executor
from passes.verify.onnxruntime import OnnxRuntimeExecutor
from passes.verify.reference import ReferenceExecutor
from tests.generate.model import Generated
from tests.soak.commands import Command, commands
from tests.soak.outcomes import Oracle, whole_cases
from tests.soak.properties import broken


@dataclass(frozen=True)
class Finding:
    """Something wrong: the command, a kind, and what happened."""

    command: Command
    kind: str
    sentence: str

    @property
    def key(self) -> str:
        """The same for what seems to be the same fault."""
        text = re.sub(r"[a-z]?\d+_?|'[^']*'|\[[^]]*\]|\([^)]*\)", "", self.sentence)
        return f"{self.command.pipeline} {self.kind} {text[:60]}"


@dataclass
class Examination:
    """What came of one model, or of many."""

    tally: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)


class Examiner:
    """Holds the executors, so that onnxruntime starts once for many models."""

    def __init__(self, *, verified_every: int = 8, only: Sequence[str] = ()) -> None:
        self._only = only
        self._reference = ReferenceExecutor(keep=4)
        self._onnxruntime = OnnxRuntimeExecutor()
        self._verified_every = verified_every
        self.executors: list[Executor] = [self._reference]
        if OnnxRuntimeExecutor.available():
            self.executors.append(self._onnxruntime)

    def close(self) -> None:
        self._onnxruntime.close()

    def examine(
        self, generated: Generated, chosen: Sequence[Command] = (), *, verify: bool | None = None
    ) -> Examination:
        """Run the commands (all of them by default) and look at what they write.

        `verify`: with the tool's own verification; by default at times.
        """
        outcome = Examination()
        model = generated.model
        oracle = Oracle(generated, self.executors)
        results: dict[str, ModelProto] = {}
        for number, command in enumerate(chosen or self._commands(model)):
            turn = (number + len(generated.drawn)) % self._verified_every == 0
            result = self._run(command, model, outcome, verify=turn if verify is None else verify)
            if result is not None:
                results[command.label] = result.model
                self._look(command, generated, result, oracle, outcome)
        self._in_either_order(oracle, results, outcome)
        return outcome

    def _commands(self, model: ModelProto) -> list[Command]:
        """All commands, or those of the pipelines that were chosen."""
        return [one for one in commands(model) if not self._only or one.pipeline in self._only]

    def _run(
        self, command: Command, model: ModelProto, outcome: Examination, *, verify: bool
    ) -> Result | None:
        untouched = model.SerializeToString(deterministic=True)
        found = outcome.findings
        try:
            result = self._result(command, model, outcome, verify)
        except Mismatch as error:
            found.append(Finding(command, "mismatch", str(error)))
            return None
        except NotVerified:
            outcome.tally["not verified"] += 1
            return None
        except NotProduced as error:
            outcome.tally["not produced"] += 1
            outcome.refusals.update(f"{one.rule} {one.code}" for one in error.report.refusals)
            return None
        except PassesError as error:
            found.append(Finding(command, type(error).__name__, str(error)))
            return None
        except Exception as error:  # whatever is a fault of the program
            found.append(Finding(command, "traceback", _last_frames(error)))
            return None
        if model.SerializeToString(deterministic=True) != untouched:
            found.append(Finding(command, "argument", "the model that was given is changed"))
        outcome.refusals.update(f"{one.rule} {one.code}" for one in result.report.refusals)
        rewritten = [one.rule for one in result.report.records if one.outcome == "rewritten"]
        outcome.tally.update(f"rewritten by {rule}" for rule in rewritten)
        outcome.tally["unchanged" if result.model is model else "written"] += 1
        return result

    def _result(
        self, command: Command, model: ModelProto, outcome: Examination, verify: bool
    ) -> Result:
        if not verify:
            return command.run(model)
        with self._at_hand():
            result = command.run(model, verify=True)
        if result.report.checked is not None:
            outcome.tally[f"the tool says {result.report.checked.verdict}"] += 1
        return result

    @contextmanager
    def _at_hand(self) -> Iterator[None]:
        """Let verification use these executors, in place of a process for each run."""

        @contextmanager
        def ours(which: str) -> Iterator[list[Executor]]:
            yield self.executors

        usual = passes.verifying.executors
        passes.verifying.executors = ours
        try:
            yield
        finally:
            passes.verifying.executors = usual

    def _look(
        self,
        command: Command,
        generated: Generated,
        result: Result,
        oracle: Oracle,
        outcome: Examination,
    ) -> None:
        model, after = generated.model, result.model
        sentences = list(broken(model, result, command))
        if after is not model:
            cases = [0] if command.fixes_dims else whole_cases(empty=not command.assumed)
            assumed = command.assumed
            sentences += oracle.differences(after, cases, outcome.tally, assumed=assumed)
            sentences += self._again(command, model, after)
        for sentence in sentences:
            kind, _, rest = sentence.partition(": ")
            outcome.findings.append(Finding(command, kind, rest))

    def _again(self, command: Command, model: ModelProto, after: ModelProto) -> Iterator[str]:
        """The same bytes once more, and nothing left to do on the outcome."""
        bytes_ = after.SerializeToString(deterministic=True)
        if command.run(model).model.SerializeToString(deterministic=True) != bytes_:
            yield "bytes: a second run writes others"
        if command.idempotent:
            try:
                again = command.run(after).model
            except Exception as error:  # a refusal too: the first run did it
                yield f"again: {_last_frames(error)}"
                return
            if again.SerializeToString(deterministic=True) != bytes_:
                yield "idempotence: the outcome is not left as it is"

    def _in_either_order(
        self, oracle: Oracle, results: dict[str, ModelProto], outcome: Examination
    ) -> None:
        """Upgrading then lowering gives the same results as lowering then upgrading."""
        upgrade, lower = Command("upgrade"), Command("lower")
        if not {upgrade.label, lower.label} <= results.keys():
            return
        try:
            one = lower.run(results[upgrade.label]).model
            other = upgrade.run(results[lower.label]).model
        except NotProduced:
            outcome.tally["not produced"] += 1
            return
        except Exception as error:  # whatever is a fault of the program
            outcome.findings.append(Finding(lower, "traceback", _last_frames(error)))
            return
        for sentence in oracle.differences(other, [0, 1], outcome.tally, before=one):
            outcome.findings.append(Finding(lower, "order", sentence))


def _last_frames(error: Exception) -> str:
    """The error and where it comes from, in a line."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    places = " < ".join(f"{one.name}:{one.lineno}" for one in reversed(frames))
    return f"{type(error).__name__}: {error} at {places}"
