"""Running a model before and after, and comparing: written apart from the tool's own judge."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np
from onnx import ModelProto, helper

from passes.ir.scope import graphs_below
from passes.types import signature
from passes.verify.executor import CRASHED, GUESSED, CannotRun, Executor, ModelFailed, Outcome
from tests.instruments.generate.feeds import SIZES, draw
from tests.instruments.generate.model import Generated
from tests.instruments.tally import Tally

_SECONDS = 10.0
#: How far rounded floats may lie apart, relative to the largest number of the tensor.
_NEAR = 1e-5
_NEAR_NARROW = 3e-2
#: How onnxruntime says that it lacks a kernel, or hands out no such value.
MISSING = ("NOT_IMPLEMENTED", "Could not find an implementation", "no sequence")

#: The outputs hold no element on either side, and have other sizes.
NOTHING = "shape of nothing"
_PROMISE = "more trips than promised"
_EMPTY = "empty in spite of the promise"


@dataclass(frozen=True)
class Ran:
    """What a run gave: an outcome, a failure of the model, or one of the executor."""

    outcome: Outcome | None = None
    failed: str = ""
    unable: str = ""


def run(executor: Executor, model: ModelProto, feeds: dict[str, Any]) -> Ran:
    try:
        return Ran(executor.run(model, feeds, timeout=_SECONDS))
    except ModelFailed as error:
        return Ran(failed=str(error))
    except CannotRun as error:
        return Ran(unable=str(error))


class Oracle:
    """What the original answers on its cases; run once, asked for every command."""

    def __init__(
        self, generated: Generated, executors: Sequence[Executor], plain: Executor
    ) -> None:
        self._generated = generated
        self._executors = executors
        self._plain = plain  # onnxruntime without its graph optimizations
        self._known: dict[tuple[str, int, bool], Ran] = {}
        self._careless = generated.careless
        self._tolerance = _NEAR_NARROW if _has_narrow(generated.model) else _NEAR

    def differences(
        self,
        after: ModelProto,
        cases: Sequence[int],
        tally: Tally,
        *,
        assumed: Sequence[str] = (),
        check: str = "",
        promised: bool = False,
        newest: bool = False,
        before: ModelProto | None = None,
    ) -> list[str]:
        """How the outcome of a command differs, in sentences that begin with a kind.

        `assumed`: what the command took for granted: nothing is drawn empty, and it need not
        fail where the original fails. `check`: an output that was added, which says whether the
        others are right. `promised`: it may fail, for a loop may run too often. `newest`: it was
        to be of an opset that onnxruntime has no kernels for. `before`: compare
        with that model, not the original. Where nothing was to be empty it may fail, too, where a
        loop of the original runs no iteration: inputs do not tell how often inner ones run.
        """
        found = []
        may_answer, positive = bool(assumed), "non-empty" in assumed
        for case in cases:
            feeds = draw(self._generated, case, positive=positive)
            told: tuple[Ran, Ran] | None = None
            taken = {value.name for value in signature.inputs(after.graph)}
            left = {name: value for name, value in feeds.items() if name in taken}
            for executor in self._executors:
                one = self._before(executor, (case, positive), feeds, before)
                other = _checked(run(executor, after, left), check)
                what = self._judge(one, other, told, may_answer, newest)
                if promised and what.startswith("fails"):
                    what = _PROMISE
                if positive and what.startswith("fails") and _is_idle(told[0] if told else one):
                    what = _EMPTY
                tally.count("cases", f"{executor.name}: {what.partition(':')[0]}")
                if told is not None and what not in _FINE:
                    before_ = run(self._plain, before or self._generated.model, feeds)
                    after_ = _checked(run(self._plain, after, left), check)
                    if self._judge(before_, after_, told, may_answer, newest) == "equal":
                        what = OPTIMIZER
                if what not in _FINE and is_known_of_onnxruntime(what, after):
                    what = _KNOWN
                if what not in _FINE:
                    found.append(f"{what} ({executor.name}, case {case})")
                told = told or (one, other)
        return found

    def _before(
        self,
        executor: Executor,
        case: tuple[int, bool],
        feeds: dict[str, Any],
        model: ModelProto | None,
    ) -> Ran:
        if model is not None:
            return run(executor, model, feeds)
        key = (executor.name, *case)
        if key not in self._known:
            self._known[key] = run(executor, self._generated.model, feeds)
        return self._known[key]

    def _judge(
        self, one: Ran, other: Ran, told: tuple[Ran, Ran] | None, may_answer: bool, newest: bool
    ) -> str:
        """What two runs of an executor say. `told`: what the reference executor gave.

        Each executor is asked for itself, whether it gives what it gave; where they give different
        things for the original, one of them is wrong, which is a finding, too. What onnxruntime is
        known to answer wrongly says nothing: careless models, loops of no iteration, whose rows it
        gives no certain sizes, and strings, of which its Gather loses all but the first.
        """
        if one.unable or other.unable.startswith(GUESSED):
            return "not run"
        if told is not None and told[0].unable.startswith("took longer"):
            return "not run"  # onnxruntime may leave out a loop that nothing reads
        if told is not None and one.outcome is None:
            return "not run"
        if told is not None and told[0].failed and other.failed:
            return "wrong on the original"  # it answers where there is none
        strings = told is None
        original = told[0].outcome if told is not None else None
        idle = original is not None and original.idle_scan
        doubtful = self._careless or (original is not None and original.idle)
        if told is not None and doubtful and self._differ(told[0], one):
            return "wrong on the original"
        if other.unable == _PROMISE:
            return other.unable
        if idle and (other.failed or other.unable.startswith(CRASHED)):
            return "wrong on the original"  # as it would, if it did not leave out that Scan
        if other.outcome is None and one.outcome is not None:
            said = other.unable or other.failed
            missing = newest and any(sign in said for sign in MISSING)
            kind = "cannot-run" if other.unable else "fails"
            return "kernel missing" if missing else f"{kind}: {said}"
        if one.outcome is None or other.outcome is None:
            if other.outcome is None:
                return "both failed"
            return "original failed" if may_answer else f"answers: {one.failed}"
        if sentence := self._unlike(one.outcome, other.outcome, strings=strings):
            guessed = replace(other.outcome, guessed_shapes=True)
            nothing = not self._unlike(one.outcome, guessed, strings=strings)
            if nothing and (original or one.outcome).misfed:
                return "wrong on the original"
            return f"{NOTHING}: {sentence}" if nothing else f"wrong: {sentence}"
        rounded = self._tolerance > _NEAR  # as onnxruntime does not, which computes in float32
        if told is not None and not rounded and (sentence := self._differ(told[0], one)):
            return f"executors: {sentence}"
        return "equal"

    def _differ(self, reference: Ran, one: Ran) -> str:
        """How an executor's answer is not the reference executor's, where both have one: what
        fails is left out by onnxruntime, if nothing is made of it."""
        if reference.outcome is None or one.outcome is None:
            return ""
        return self._unlike(reference.outcome, one.outcome, strings=False)

    def _unlike(self, expected: Outcome, actual: Outcome, *, strings: bool = True) -> str:
        """How two outcomes differ, or nothing."""
        guessed = expected.guessed_shapes or actual.guessed_shapes
        if list(expected.outputs) != list(actual.outputs):
            return f"outputs {list(expected.outputs)}, then {list(actual.outputs)}"
        for name, value in expected.outputs.items():
            if not strings and _holds_strings(value):
                continue
            if not _alike(value, actual.outputs[name], guessed, self._tolerance):
                return f"{name} is {_short(value)}, then {_short(actual.outputs[name])}"
        return ""


#: See `docs/onnxruntime.md`; verification stops such an outcome.
_KNOWN = "onnxruntime fails as is known"
#: Without them it answers right.
OPTIMIZER = "onnxruntime's optimizations are wrong"
_FINE = {
    *(_KNOWN, OPTIMIZER),
    *("equal", "not run", "both failed", "original failed"),
    *("kernel missing", "wrong on the original", _PROMISE, _EMPTY),
}
#: What has no kernel for some types, but runs where it is dead in a body, or up to opset 18 as the
#: function body of its document; float8 that optimizations move to where it is not taken.
_NOT_TAKEN = re.compile(
    r"implementation for (HardSigmoid|OneHot|PRelu|Softsign)\(|Type 'tensor\(float8\w+\)' of input"
)


def is_known_of_onnxruntime(sentence: str, model: ModelProto) -> bool:
    """Whether a sentence tells how onnxruntime fails as `docs/onnxruntime.md` says: GRU and LSTM
    over nothing, functions that are inlined, types that it does not take."""
    if "SIGABRT" in sentence:
        nodes = [node for graph in graphs_below(model.graph) for node in graph.node]
        return not {node.op_type for node in nodes}.isdisjoint(("GRU", "LSTM"))
    if "Missing Input: _inlfunc_" in sentence:
        return bool(model.functions)
    return _NOT_TAKEN.search(sentence) is not None


def _is_idle(original: Ran) -> bool:
    return original.outcome is not None and original.outcome.idle


def _checked(ran: Ran, check: str) -> Ran:
    """A run without the output that was added, and without an outcome where that is false."""
    if not check or ran.outcome is None:
        return ran
    outputs = dict(ran.outcome.outputs)
    if not np.all(outputs.pop(check)):
        return Ran(unable=_PROMISE)
    return Ran(replace(ran.outcome, outputs=outputs))


def whole_cases(*, empty: bool) -> list[int]:
    """The numbers of the cases; those with a size of 0 where `empty`."""
    return [n for n, sizes in enumerate(SIZES) if empty or 0 not in sizes.values()]


def _holds_strings(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_holds_strings, value))
    return value is not None and np.asarray(value).dtype.kind in "OSU"


def _alike(one: Any, other: Any, guessed: bool, tolerance: float) -> bool:
    if isinstance(one, list):
        pairs = zip(one, other, strict=False)
        same = isinstance(other, list) and len(one) == len(other)
        return same and all(_alike(*pair, guessed, tolerance) for pair in pairs)
    if one is None or other is None or isinstance(other, list):
        return one is other
    one, other = np.asarray(one), np.asarray(other)
    if one.dtype != other.dtype:
        return False
    if one.shape != other.shape:
        pairs = zip(one.shape, other.shape, strict=False)
        fits = one.ndim == other.ndim and all(a == b or 0 in (a, b) for a, b in pairs)
        return guessed and fits and not one.any() and not other.any()  # a size that is guessed is 0
    if one.dtype.kind in "biuOSU":
        return bool(np.all(one == other))
    return _near(one.astype(np.float64), other.astype(np.float64), one.dtype, tolerance)


def _near(one: Any, other: Any, dtype: Any, tolerance: float) -> bool:
    finite = np.isfinite(one) & np.isfinite(other)
    odd = (one == other) | (np.isnan(one) & np.isnan(other))
    scale = max(1.0, float(np.abs(one[np.isfinite(one)]).max(initial=0.0)))
    allowed = max(tolerance, 4 * float(ml_dtypes.finfo(dtype).eps)) * scale
    with np.errstate(invalid="ignore"):
        return bool(np.all(np.where(finite, np.abs(one - other) <= allowed, odd)))


def _short(value: Any) -> str:
    if isinstance(value, list):
        return f"a list of {len(value)}"
    array = np.asarray(value)
    return f"{array.dtype}{list(array.shape)} " + str(array.flatten()[:6])


def _has_narrow(model: ModelProto) -> bool:
    """Whether float16 or bfloat16 occurs: seen in the text, which shows every type."""
    text = model.SerializeToString()
    narrow = (10, 16)
    marks = [bytes((8, kind)) for kind in narrow]
    types = [helper.make_tensor_type_proto(kind, None) for kind in narrow]
    return any(type_.SerializeToString() in text for type_ in types) or any(
        m in text for m in marks
    )
