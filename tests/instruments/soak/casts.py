"""Random models in other element types: whether an outcome is valid, loads, runs and is near."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import ModelProto, helper

from benchmarks.rounded import rounded
from passes.choices import Half, Retyping, Signature, Storage
from passes.errors import NotProduced, PassesError
from passes.types import signature
from passes.verify.executor import CANNOT_LOAD
from passes.verify.installed import OnnxRuntimeExecutor
from passes.verify.reference import ReferenceExecutor
from tests.instruments.generate.feeds import draw
from tests.instruments.generate.model import Generated
from tests.instruments.soak.commands import Command
from tests.instruments.soak.examine import Examination, Finding, last_frames
from tests.instruments.soak.outcomes import MISSING, OPTIMIZER, Ran, run
from tests.instruments.soak.properties import is_valid

Array = npt.NDArray[Any]
#: The cases of `feeds` without an empty size.
_CASES = (0, 1, 2)
#: Errors that are counted, each as a part of the largest element.
_BOUNDS = (0.0, 1e-3, 1e-2, 1e-1)
#: Names of values and nodes in messages of onnxruntime.
_NAME = re.compile(r" \(\w+_\)| node with name '\S*'")
#: How sentences about a run begin that tell of a fault.
_FAULTS = ("fails", "invalid", "types")


def casts() -> list[Command]:
    """Each cast, with inputs and outputs kept or cast."""
    wanted = [
        Retyping(to=half, io=io, int32=whole)
        for half in ("", *Half)
        for io in Signature
        for whole in (False, True)
        if half or whole
    ]
    wanted += [Retyping(weights=storage) for storage in Storage]
    return [Command("cast", options={"retyping": one}) for one in wanted]


def dealt_cast(seed: int) -> list[Command]:
    """One cast, float16 with inputs and outputs kept in one of two models."""
    every, rng = casts(), random.Random(seed)
    usual = Command("cast", options={"retyping": Retyping(to=Half.float16)})
    return [usual if rng.randrange(2) else rng.choice(every)]


class CastExaminer:
    """Holds the executors, as an `Examiner` does."""

    def __init__(self) -> None:
        self._usual = OnnxRuntimeExecutor()
        self._plain = OnnxRuntimeExecutor(optimize=False)
        self._reference = ReferenceExecutor(keep=4)

    def close(self) -> None:
        self._usual.close()
        self._plain.close()

    def examine(
        self, generated: Generated, chosen: Sequence[Command], *, verify: bool = False
    ) -> Examination:
        """Run the casts and look at what they write; `verify`: let the tool judge them, too."""
        outcome = Examination()
        outcome.tally.count("models", "all")
        for command in chosen:
            outcome.tally.count("commands", command.label)
            for kind, sentence in self._found(command, generated, outcome, verify):
                outcome.findings.append(Finding(command, kind, sentence))
        return outcome

    def _found(
        self, command: Command, generated: Generated, outcome: Examination, verify: bool
    ) -> Iterator[tuple[str, str]]:
        """Yield what is wrong, as a kind and a sentence."""
        before, tally = generated.model, outcome.tally
        try:
            after = command.run(before, verify=verify).model
        except NotProduced as error:
            if not error.report.refusals:
                yield "not-produced", str(error)
            for refusal in error.report.refusals:
                tally.count("outcomes", f"refused: {refusal.code}")
            return
        except PassesError as error:
            yield type(error).__name__, str(error)
            return
        except Exception as error:  # whatever is a fault of the program
            yield "traceback", last_frames(error)
            return
        tally.count("outcomes", "unchanged" if after is before else "written")
        if after is before:
            return
        try:
            onnx.checker.check_model(after, full_check=after.ir_version > 3)
        except Exception as error:  # its errors have no common base
            if is_valid(before):
                yield "invalid", str(error)
                return
        for case in _CASES:
            feeds = draw(generated, case)
            said = self._ran(command, before, after, feeds)
            kind = said.partition(":")[0]
            tally.count("cases", kind if kind in _FAULTS else said)
            if kind in _FAULTS:
                yield kind, f"{said} (case {case})"

    def _ran(
        self, command: Command, before: ModelProto, after: ModelProto, feeds: Mapping[str, Any]
    ) -> str:
        """What a run tells of a cast; faults begin with `invalid`, `fails` or `types`."""
        usual = run(self._plain, before, dict(feeds))
        original = run(self._reference, before, dict(feeds))
        if usual.outcome is None or original.outcome is None:
            return "original fails"
        given = _fed(after, feeds)
        if said := _trouble(run(self._usual, after, given)):
            if said.startswith("missing"):  # with the kernels of float32 it is to run
                more = _trouble(run(self._plain, rounded(after), given))
            else:
                more = _trouble(run(self._plain, after, given))
            if more:
                return more
            said = said.partition(":")[0] if said.startswith("missing") else OPTIMIZER
        found = run(self._reference, after, given)
        if found.outcome is None:
            return f"fails: in the reference executor: {found.failed or found.unable}"
        pairs = [
            (value, found.outcome.outputs[name]) for name, value in original.outcome.outputs.items()
        ]
        if command.options["retyping"].io == Signature.keep and any(
            _dtypes(one) != _dtypes(other) for one, other in pairs
        ):
            return "types: an output has another type"
        if not all(_same_shapes(*pair) for pair in pairs):
            return "other shapes"
        error = max((_error(*pair) for pair in pairs), default=0.0)
        bound = next((f"{one:g}" for one in _BOUNDS if error <= one), "nothing")
        return f"{said}, within {bound}" if said else f"within: {bound}"


def _trouble(ran: Ran) -> str:
    """What is wrong with a run, or nothing."""
    if ran.outcome is not None:
        return ""
    said = ran.unable or ran.failed
    if any(sign in said for sign in MISSING):
        return f"missing: {re.sub(_NAME, '', said)[:90]}"
    return f"invalid: {said}" if said.startswith(CANNOT_LOAD) else f"fails: {said}"


def _fed(model: ModelProto, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs in the types that a model takes."""
    found: dict[str, Any] = {}
    for value in signature.inputs(model.graph):
        fed = feeds[value.name]
        if value.type.WhichOneof("value") == "tensor_type":
            kind = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
            fed = fed if fed.dtype.kind in "OSU" else fed.astype(kind)
        elif value.type.WhichOneof("value") == "sequence_type":
            inner = value.type.sequence_type.elem_type.tensor_type.elem_type
            fed = [one.astype(helper.tensor_dtype_to_np_dtype(inner)) for one in fed]
        found[value.name] = fed
    return found


def _leaves(value: Any) -> list[Any]:
    """The arrays, and the missing values, in a value."""
    return [one for item in value for one in _leaves(item)] if isinstance(value, list) else [value]


def _dtypes(value: Any) -> list[Any]:
    return [None if one is None else np.asarray(one).dtype for one in _leaves(value)]


def _same_shapes(one: Any, other: Any) -> bool:
    shapes = [[np.shape(leaf) for leaf in _leaves(value)] for value in (one, other)]
    return shapes[0] == shapes[1]


def _error(before: Any, after: Any) -> float:
    """The largest difference over the largest element before; infinite for discrete values that
    differ, and for what is finite on one side only."""
    worst = 0.0
    for one, other in zip(_leaves(before), _leaves(after), strict=True):
        if one is None or other is None:
            continue
        one, other = np.asarray(one), np.asarray(other)
        if one.dtype.kind in "biuOSU":
            worst = max(worst, 0.0 if bool(np.all(one == other)) else float("inf"))
            continue
        one, other = one.astype(np.float64), other.astype(np.float64)
        finite = np.isfinite(one)
        if not np.array_equal(one[~finite], other[~finite], equal_nan=True):
            return float("inf")
        scale = np.abs(one[finite]).max(initial=0.0)
        apart = np.abs(one[finite] - other[finite]).max(initial=0.0)
        apart = float(apart / scale if scale else apart)
        worst = max(worst, apart if np.isfinite(apart) else float("inf"))
    return worst
