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
from benchmarks.harness import Aim, Bench, Side
from benchmarks.loops_of_floats import LENGTHS, STORED, Case, Fed, exported, golden
from benchmarks.models import nested
from benchmarks.peers import CASTS, Failed, cast_by
from benchmarks.rounded import rounded
from passes.errors import PassesError
from passes.ir import scope as scoping
from passes.verify.executor import Ended, Value
from passes.verify.installed import OnnxRuntimeExecutor
from tests.precision.recurrences import MODELS, feeds_of

_OURS = "passes cast"
#: Seconds for one run.
_SECONDS = 60
_NODES, _SOON = 20, Aim(seconds=5)
_BOUNDS = (1e-3, 1e-2)
#: Those of recurrences.
_ITERATIONS = 4096
_TOTALS = ("pass the full check", "run in onnxruntime", "within 1e-3", "within 1e-2")
_DRIFTS = ("recurrence", "form", "float16, all half", "float16", "bfloat16")
_PAGE = """# Errors of exported models in float16

Made by `python -m benchmarks.cast docs/precision-table.md`, with {versions}.

{models} models of TensorFlow, PyTorch, JAX, scikit-learn and onnxscript (`golden_models/exported`),
each at the newest opset at which it is stored: all that have floats in a loop or a branch. Inputs
and outputs keep their types. {broken} of them does not pass the check as it is exported.

{counts}

An error is the largest difference over the largest element before, of the worst output, of three
draws, and of the inputs that the exporter stored (`stored`). The free size that decides the trip
count is 1, 16, 128 and 1,024; if none does, all free sizes are. Of the other converters the largest
error of all is shown. Every node rounds its result, and products are summed in float32
(`benchmarks/rounded.py`), which onnxruntime runs without optimizations. "5 differ" counts elements
of discrete outputs; such a model is within no bound. "not measured": onnx infers no types of it.

{errors}

## Recurrences over {length:,} iterations

Errors that grow with the length if all is half (`--half '*'`), and those by default.

{drifts}
"""


@dataclass(frozen=True)
class Outcome:
    """What a converter made of a model: why it does not pass onnx's full check, does not run in
    onnxruntime, or cannot be measured; the largest errors of all outputs by the number of
    iterations, and how many elements of discrete outputs differ."""

    invalid: str = ""
    unusable: str = ""
    unmeasured: str = ""
    errors: Mapping[str, float] = field(default_factory=dict)
    differing: int = 0

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
    loops = 10 if bench.quick else 1000
    model = _loops(loops)
    ours = Side("cast", lambda: passes.cast(model, to="float16", verify=False))
    theirs = Side("infer_shapes", lambda: onnx.shape_inference.infer_shapes(model))
    bench.compare(f"{loops} Loops of {_NODES} nodes", ours, theirs, aim=_SOON, runs=3)
    for title, cases in (("exported", exported), ("golden", golden)):
        found = measured(list(cases(quick=bench.quick)))
        for line in totals(found):
            bench.note(f"{title}: {line}")
    for name, form, (halves, *kept) in drifts(64 if bench.quick else _ITERATIONS):
        said = (
            f"{kept[0]:.0e} in float16, {kept[1]:.0e} in bfloat16, {halves:.0e} if all is float16"
        )
        bench.note(f"{name} as a {form}: {said}")


def _loops(count: int) -> ModelProto:
    """A chain of Loops with states that are half by default, for they saturate."""
    model = nested(count, nodes=_NODES, changing=0, opset=17)
    for node in (inner for loop in model.graph.node for inner in scoping.inner_nodes(loop)):
        if node.op_type == "LeakyRelu":
            node.op_type = "Tanh"
            del node.attribute[:]
    return model


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
        return Outcome(f"{made}", f"{made}")
    invalid = _invalid(made)
    try:
        usual.run(made, case.fed[0].feeds, timeout=_SECONDS)
    except Ended as error:
        return Outcome(invalid, _line(error))
    try:
        return Outcome(invalid, "", "", *_errors(case, rounded(made), plain))
    except Exception as error:  # onnx infers no types of an invalid model, which may not run
        return Outcome(invalid, "", _line(error))


def _errors(
    case: Case, narrow: ModelProto, plain: OnnxRuntimeExecutor
) -> tuple[dict[str, float], int]:
    """The largest errors by length, and the number of discrete elements that differ.

    Raises:
        Ended: a model does not run.
    """
    errors, differing = dict[str, float](), 0
    for fed in case.fed:
        before = plain.run(case.model, fed.feeds, timeout=_SECONDS).outputs
        after = plain.run(narrow, fed.feeds, timeout=_SECONDS).outputs
        for name, value in before.items():
            error, different = _error(value, after[name])
            errors[fed.length] = max(errors.get(fed.length, 0.0), error)
            differing += different
    return errors, differing


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


def drifts(length: int) -> Iterator[tuple[str, str, list[float]]]:
    """Recurrences as Scans and as Loops, with the error of a model that is float16 altogether, and
    those by default, in float16 and in bfloat16."""
    with OnnxRuntimeExecutor(optimize=False) as plain:
        for name, text in MODELS.items():
            scan = onnx.parser.parse_model(text)
            fed = Fed(f"{length:,}", feeds_of(scan, length))
            for form in ("Scan", "Loop"):
                model = scan if form == "Scan" else passes.lower(scan, verify=False).model
                found = []
                for options in (
                    {"to": "float16", "half": ("*",)}, {"to": "float16"}, {"to": "bfloat16"}
                ):  # fmt: skip
                    made = passes.cast(model, verify=False, **options).model
                    found.append(_errors(Case(name, model, [fed]), rounded(made), plain)[0])
                yield name, form, [errors[fed.length] for errors in found]


def document(found: Sequence[Measured]) -> str:
    """The table of all models, in Markdown."""
    broken = sum(bool(_invalid(one.case.model)) for one in found)
    versions = ", ".join(
        f"{name} {version(name)}" for name in ("onnx", "onnxruntime", "onnxconverter-common")
    )
    lengths = [f"{count:,}" for count in LENGTHS]
    head = ["model", *(f"at {length}" for length in lengths), STORED, *map("`{}`".format, CASTS)]
    errors = [
        [
            one.case.name,
            *(_cell(one.outcomes[_OURS], length) for length in (*lengths, STORED)),
            *(_cell(one.outcomes[name]) for name in CASTS),
        ]
        for one in found
    ]
    grown = [[name, form, *map(_shown, drifted)] for name, form, drifted in drifts(_ITERATIONS)]
    counts = [[f"`{name}`", *map(str, _counts(found, name))] for name in (_OURS, *CASTS)]
    return _PAGE.format(
        versions=versions,
        models=len(found),
        broken=broken,
        counts=_table(["converter", *_TOTALS], counts),
        errors=_table(head, errors),
        length=_ITERATIONS,
        drifts=_table(_DRIFTS, grown),
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows))


def _counts(found: Sequence[Measured], name: str) -> list[int]:
    """How many outcomes are valid, run, and are within each bound."""
    outcomes = [one.outcomes[name] for one in found]
    within = [sum(one.error <= bound for one in outcomes) for bound in _BOUNDS]
    return [
        sum(not one.invalid for one in outcomes), sum(not one.unusable for one in outcomes), *within
    ]  # fmt: skip


def _cell(outcome: Outcome, length: str | None = None) -> str:
    """The error at a length, the largest one without it; or why there is none."""
    if outcome.unusable or outcome.unmeasured:
        return "does not run" if outcome.unusable else "not measured"
    error = outcome.error if length is None else outcome.errors.get(length)
    if outcome.differing and length is None:
        return f"{outcome.differing} differ"
    return "" if error is None else _shown(error)


def _shown(error: float) -> str:
    return "infinite" if not isfinite(error) else f"{error:.0e}" if error else "0"


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
