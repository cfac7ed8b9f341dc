"""One model through the commands: what each did, and what is wrong with it."""

from __future__ import annotations

import re
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from unittest.mock import patch

from onnx import ModelProto

import passes
from passes.errors import Mismatch, NotProduced, NotVerified, PassesError
from passes.ir import scope as scoping
from passes.reports.report import Report
from passes.session import Result
from passes.verify.executor import Executor
from passes.verify.installed import OnnxRuntimeExecutor
from passes.verify.reference import ReferenceExecutor
from tests.instruments.generate.model import Generated
from tests.instruments.soak.commands import Command
from tests.instruments.soak.outcomes import (
    NOTHING,
    OPTIMIZER,
    Oracle,
    is_known_of_onnxruntime,
    whole_cases,
)
from tests.instruments.soak.properties import broken
from tests.instruments.tally import Tally

#: How the tool itself tells of it.
_SHAPE_OF_NOTHING = re.compile(
    r"the shape of \S+ is \((?:\d+, )*0\b[^)]*\) before and \((?:\d+, )*0\b"
)
_NOT_IDEMPOTENT = "optimize"
#: Seconds of the processor that a command may take on one of these models, verification included.
_LONGEST = 40.0


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
        pipeline = "" if self.kind == "executors" else f"{self.command.pipeline} "
        return f"{pipeline}{self.kind} {text[:60]}"

    @property
    def known(self) -> bool:
        """Whether it is of a kind that `docs/trust.md` names as known and open."""
        return self.kind == "idempotence" and self.command.pipeline.startswith(_NOT_IDEMPOTENT)


@dataclass
class Examination:
    """What came of one model."""

    tally: Tally = field(default_factory=Tally)
    findings: list[Finding] = field(default_factory=list)


class Examiner:
    """Holds the executors, so that onnxruntime starts once for many models."""

    def __init__(self) -> None:
        self._onnxruntime = OnnxRuntimeExecutor()
        self._plain = OnnxRuntimeExecutor(optimize=False)
        self.executors: list[Executor] = [ReferenceExecutor(keep=4)]
        if OnnxRuntimeExecutor.available():
            self.executors.append(self._onnxruntime)

    def close(self) -> None:
        self._onnxruntime.close()
        self._plain.close()

    def examine(
        self, generated: Generated, chosen: Sequence[Command], *, verify: bool = False
    ) -> Examination:
        """Run the commands and look at what they write; `verify`: as the tool itself does, too."""
        outcome = Examination()
        oracle = Oracle(generated, self.executors, self._plain)
        results: dict[str, ModelProto] = {}
        outcome.tally.count("models", _size(generated.model))
        for command in chosen:
            outcome.tally.count("commands", command.kind)
            result = self._run(command, generated.model, outcome, verify=verify)
            if result is not None:
                results[command.label] = result.model
                self._look(command, generated, result, oracle, outcome)
        self._in_either_order(oracle, results, outcome)
        return outcome

    def _run(
        self, command: Command, model: ModelProto, outcome: Examination, *, verify: bool
    ) -> Result | None:
        began = time.process_time()
        result = self._ran(command, model, outcome, verify=verify)
        seconds = time.process_time() - began
        if seconds > _LONGEST:
            found = Finding(command, "slow", f"{seconds:.0f} s of the processor")
            outcome.findings.append(found)
        return result

    def _ran(
        self, command: Command, model: ModelProto, outcome: Examination, *, verify: bool
    ) -> Result | None:
        untouched = model.SerializeToString(deterministic=True)
        found, tally = outcome.findings, outcome.tally
        try:
            result = self._result(command, model, outcome, verify)
        except Mismatch as error:
            if is_known_of_onnxruntime(str(error), command.run(model).model):
                tally.count("outcomes", "mismatch: onnxruntime fails as is known")
                return None
            if "onnxruntime" in str(error) and self._holds_without_optimizations(command, model):
                tally.count("outcomes", f"mismatch: {OPTIMIZER}")
                return None
            kind = NOTHING if _SHAPE_OF_NOTHING.search(str(error)) else "mismatch"
            found.append(Finding(command, kind, str(error)))
            return None
        except NotVerified:
            tally.count("outcomes", "not verified")
            return None
        except NotProduced as error:
            tally.count("outcomes", "not produced")
            _count_refusals(tally, error.report)
            return None
        except PassesError as error:
            found.append(Finding(command, type(error).__name__, str(error)))
            return None
        except Exception as error:  # whatever is a fault of the program
            found.append(Finding(command, "traceback", last_frames(error)))
            return None
        if model.SerializeToString(deterministic=True) != untouched:
            found.append(Finding(command, "argument", "the model that was given is changed"))
        _count_refusals(tally, result.report)
        for record in result.report.records:
            if record.outcome == "rewritten":
                tally.count("rewrites", record.rule)
        tally.count("outcomes", "unchanged" if result.model is model else "written")
        return result

    def _result(
        self, command: Command, model: ModelProto, outcome: Examination, verify: bool
    ) -> Result:
        if not verify:
            return command.run(model)
        with _at_hand(self.executors):
            result = command.run(model, verify=True)
        if result.report.checked is not None:
            outcome.tally.count("the tool says", result.report.checked.verdict)
        return result

    def _holds_without_optimizations(self, command: Command, model: ModelProto) -> bool:
        """Whether the tool finds the outcome right where onnxruntime optimizes nothing."""
        with _at_hand([self.executors[0], self._plain]):
            try:
                command.run(model, verify=True)
            except PassesError:
                return False
        return True

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
            sentences += oracle.differences(
                after,
                cases,
                outcome.tally,
                assumed=command.assumed,
                check=command.check,
                promised=command.promised,
                newest=after.opset_import[0].version > passes.DEFAULT_OPSET,
            )
            if not result.report.left_out:
                sentences += self._again(command, model, after)  # which leaves nothing out
            outcome.tally.count("held against the original", command.kind)
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
                yield f"again: {last_frames(error)}"
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
            outcome.tally.count("outcomes", "not produced")
            return
        except Exception as error:  # whatever is a fault of the program
            outcome.findings.append(Finding(lower, "traceback", last_frames(error)))
            return
        outcome.tally.count("commands", "upgrade and lower in either order")
        for sentence in oracle.differences(other, [0, 1], outcome.tally, before=one):
            outcome.findings.append(Finding(lower, "order", sentence))


@contextmanager
def _at_hand(executors: list[Executor]) -> Iterator[None]:
    """Let verification use these executors, in place of a process for each run."""

    @contextmanager
    def ours(which: str) -> Iterator[list[Executor]]:
        yield executors

    with patch("passes.verify.rewrites.verifying.executors", ours):
        yield


def _count_refusals(tally: Tally, report: Report) -> None:
    for refusal in report.refusals:
        tally.count("refusals", f"{refusal.rule} {refusal.code}")


def _size(model: ModelProto) -> str:
    """How many nodes it has, bodies with them, in steps of ten."""
    count = sum(1 for _ in scoping.walk_model(model)) // 10 * 10
    return f"of {count:2} to {count + 9} nodes"


def last_frames(error: Exception) -> str:
    """The error and where it comes from, in a line."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    places = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames))
    return f"{type(error).__name__}: {error} at {places}"
