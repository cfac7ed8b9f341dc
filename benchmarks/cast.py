"""Models with floats in loops and branches, in float16: errors by the number of iterations, of
`passes cast` and of two other converters.

`python -m benchmarks.cast docs/precision-table.md` writes the table of all models.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from math import isfinite
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto

import passes
from benchmarks.harness import Bench
from benchmarks.loops_of_floats import LENGTHS, STORED, Case, exported, golden
from benchmarks.peers import CASTS, Failed, cast_by
from benchmarks.rounded import rounded
from passes.errors import PassesError
from passes.verify.executor import Ended, Value
from passes.verify.installed import OnnxRuntimeExecutor

_OURS = "passes cast"
#: Seconds for one run.
_SECONDS = 60
_BOUNDS = (1e-3, 1e-2)
_PAGE = """# Errors of exported models in float16

Made by `python -m benchmarks.cast docs/precision-table.md`, with {versions}.

{models} models of TensorFlow, PyTorch, JAX, scikit-learn and onnxscript (`golden_models/exported`), each
at the newest opset at which it is stored: all that have floats in a loop or a branch. Inputs and
outputs keep their types. {broken} of them does not pass the check as it is exported.

| converter | pass the full check | run in onnxruntime | within 1e-3 | within 1e-2 |
|---|---|---|---|---|
{counts}

An error is the largest difference over the largest element before, of the worst output, of three
draws, and of the inputs that the exporter stored (`stored`). The free size that decides the trip
count is 1, 16, 128 and 1,024; if none does, all free sizes are. Of the other converters the largest
error of all is shown. Every node rounds its result, and products are summed in float32
(`benchmarks/rounded.py`), which onnxruntime runs without optimizations. "5 differ" counts elements
of discrete outputs; such a model is within no bound. "not measured": onnx infers no types of it.

{table}
"""


@dataclass(frozen=True)
class Outcome:
    """What a converter made of a model: whether it passes onnx's full check, whether onnxruntime
    loads and runs it, and else why not; the largest errors of all outputs by the number of
    iterations, and how many elements of discrete outputs differ."""

    invalid: str = ""
    unusable: str = ""
    errors: Mapping[str, float] = field(default_factory=dict)
    differing: int = 0

    @property
    def loads(self) -> bool:
        """Whether it is valid and onnxruntime runs it."""
        return not self.invalid and not self.unusable

    @property
    def error(self) -> float:
        """The largest error; infinite if a discrete output differs or nothing was measured."""
        return float("inf") if self.differing else max(self.errors.values(), default=float("inf"))


@dataclass(frozen=True)
class Measured:
    """A case, and the outcome of each converter."""

    case: Case
    outcomes: Mapping[str, Outcome]


def measure(bench: Bench) -> None:
    """How many models each converter casts, and how far their outputs are off."""
    if importlib.util.find_spec("onnxruntime") is None:
        bench.note("onnxruntime is not installed")
        return
    for title, cases in (("exported", exported), ("golden", golden)):
        found = measured(list(cases(quick=bench.quick)))
        for line in totals(found):
            bench.note(f"{title}: {line}")


def measured(cases: Sequence[Case]) -> list[Measured]:
    """Each case with what all converters make of it."""
    made: dict[str, Sequence[ModelProto | Exception]] = {_OURS: [_cast(one) for one in cases]}
    for peer in CASTS:
        try:
            made[peer] = cast_by(peer, [case.model for case in cases])
        except Failed as error:
            made[peer] = [error] * len(cases)
    with OnnxRuntimeExecutor() as usual, OnnxRuntimeExecutor(optimize=False) as plain:
        return [
            Measured(
                case,
                {name: _judged(case, models[at], usual, plain) for name, models in made.items()},
            )
            for at, case in enumerate(cases)
        ]


def _cast(case: Case) -> ModelProto | Exception:
    try:
        return passes.cast(case.model, to="float16", verify=False).model
    except PassesError as error:
        return error


def _judged(
    case: Case,
    made: ModelProto | Exception,
    usual: OnnxRuntimeExecutor,
    plain: OnnxRuntimeExecutor,
) -> Outcome:
    """The outcome of a converter: `usual` has to run it, `plain` runs what rounds as it should."""
    if isinstance(made, Exception):
        return Outcome(str(made), str(made))
    invalid = _invalid(made)
    try:
        usual.run(made, case.fed[0].feeds, timeout=_SECONDS)
    except Ended as error:
        return Outcome(invalid, _line(error))
    errors, differing = dict[str, float](), 0
    try:
        narrow = rounded(made)
    except Exception as error:  # onnx infers no types of an invalid model
        return Outcome(invalid, f"not measured: {_line(error)}")
    for fed in case.fed:
        try:
            before = plain.run(case.model, fed.feeds, timeout=_SECONDS).outputs
            after = plain.run(narrow, fed.feeds, timeout=_SECONDS).outputs
        except Ended as error:
            return Outcome(invalid, f"not measured: {_line(error)}", errors, differing)
        for name, value in before.items():
            error, different = _error(value, after[name])
            errors[fed.length] = max(errors.get(fed.length, 0.0), error)
            differing += different
    return Outcome(invalid, "", errors, differing)


def _invalid(model: ModelProto) -> str:
    """What onnx's full check says against a model."""
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:  # its errors have no common base
        return _line(error)
    return ""


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _error(before: Value, after: Value) -> tuple[float, int]:
    """The largest difference over the largest element before, and how many elements differ if they
    are no floats. Infinite for other shapes, and for what is finite on one side only."""
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = [_error(*pair) for pair in zip(before, after, strict=True)]
        return max((error for error, _ in pairs), default=0.0), sum(count for _, count in pairs)
    if not isinstance(before, np.ndarray) or not isinstance(after, np.ndarray):
        return 0.0 if before is after else float("inf"), 0
    if before.shape != after.shape or before.dtype != after.dtype:
        return float("inf"), 0
    if before.dtype.kind != "f":
        return 0.0, int(np.sum(before != after))
    finite = np.isfinite(before)
    if not np.array_equal(before[~finite], after[~finite], equal_nan=True):
        return float("inf"), 0
    scale = np.abs(before[finite]).max(initial=0.0)
    worst = np.abs(after[finite].astype(np.float64) - before[finite]).max(initial=0.0)
    if not np.isfinite(worst):
        return float("inf"), 0
    return float(worst / scale if scale else worst), 0


def totals(found: Sequence[Measured]) -> Iterator[str]:
    """A sentence for each converter."""
    for name in (_OURS, *CASTS):
        valid, running, *within = _counts(found, name)
        said = [f"{valid} pass the full check", f"{running} run in onnxruntime"]
        said += [f"{many} within {bound:g}" for many, bound in zip(within, _BOUNDS, strict=True)]
        yield f"{name}: of {len(found)} models {', '.join(said)}"


def document(found: Sequence[Measured]) -> str:
    """The table of all models, in Markdown."""
    broken = sum(bool(_invalid(one.case.model)) for one in found)
    versions = ", ".join(
        f"{name} {version(name)}" for name in ("onnx", "onnxruntime", "onnxconverter-common")
    )
    head = [
        "model",
        *(f"at {count:,}" for count in LENGTHS),
        STORED,
        *(f"`{name}`" for name in CASTS),
    ]
    rows = [
        [
            one.case.name,
            *(_cell(one.outcomes[_OURS], f"{count:,}") for count in LENGTHS),
            _cell(one.outcomes[_OURS], STORED),
            *(_cell(one.outcomes[name]) for name in CASTS),
        ]
        for one in found
    ]
    lines = [head, ["---"] * len(head), *rows]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    counts = "\n".join(
        f"| `{name}` | {' | '.join(str(count) for count in _counts(found, name))} |"
        for name in (_OURS, *CASTS)
    )
    return _PAGE.format(
        versions=versions, table=table, counts=counts, models=len(found), broken=broken
    )


def _counts(found: Sequence[Measured], name: str) -> list[int]:
    """How many outcomes are valid, run, and are within each bound."""
    outcomes = [one.outcomes[name] for one in found]
    within = [sum(one.error <= bound for one in outcomes) for bound in _BOUNDS]
    return [
        sum(not one.invalid for one in outcomes), sum(not one.unusable for one in outcomes), *within
    ]  # fmt: skip


def _cell(outcome: Outcome, length: str | None = None) -> str:
    """The error at a length, the largest one without it; or why there is none."""
    if outcome.unusable:
        return "-" if length else "does not run" if not outcome.errors else "not measured"
    error = outcome.error if length is None else outcome.errors.get(length)
    if outcome.differing and length is None:
        return f"{outcome.differing} differ"
    return (
        ""
        if error is None
        else f"{error:.0e}".replace("0e+00", "0")
        if isfinite(error)
        else "infinite"
    )


def main() -> None:
    """Write the table of the exported models and of the golden ones."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cast", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--quick", action="store_true", help="a few models")
    options = parser.parse_args()
    found = measured(list(exported(quick=options.quick)))
    options.file.write_text(document(found), encoding="utf-8")


if __name__ == "__main__":
    main()
