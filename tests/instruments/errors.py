"""Compares the errors of recurrences as they are and with sums regrouped, in hard conditions.

    python -m tests.instruments.errors [STEPS ...] [--only NAME]

Each architecture of `benchmarks/suite_recurrences.py` runs in onnxruntime before and after
`optimize`, and in a loop in float64. For each condition it prints the ratio
of the two errors of the worst output, as root of the mean square over three draws and as largest
element, and how many elements are NaN or infinite in one of the two alone. The last lines are the
worst of all.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import ModelProto, numpy_helper

import passes
from benchmarks import suite_recurrences as suite

Floats = NDArray[np.float64]
#: How values of a role change; those of the roles that are not named stay.
Condition = Mapping[str, Callable[[np.random.Generator, Floats], Floats]]
SIZES = {"H": 2, "D": 16, "W": 64, "N": 16}
STEPS = (64, 1024, 4096)
_DRAWS = 3
#: Half the rounding of one operation: less is no error.
_LEAST = 2.0**-26
_DECAY, _VALUE, _STATE, _OTHER, _FIXED = "decay", "value", "state", "other", "fixed"
_VALUES = ("v", "b", "x", "c", "i")


def _mixed(draw: np.random.Generator, value: Floats) -> Floats:
    large = 10 ** draw.uniform(3, 5, value.shape)
    return value * np.where(draw.random(value.shape) < 0.5, large, 1e-3)


def _cancelling(draw: np.random.Generator, value: Floats) -> Floats:
    """Of four, the second is minus the first one, and the others are small."""
    found = value * 1e5
    found[1::4] = -found[::4]
    found[2::4], found[3::4] = value[2::4] * 1e-3, value[3::4] * 1e-3
    return found


def _within_half_a_block(log: float, *, once: bool) -> Callable[..., Floats]:
    def change(draw: np.random.Generator, value: Floats) -> Floats:
        places = (np.arange(len(value)) % 16 == 7).reshape(-1, *[1] * (value.ndim - 1))
        logs = np.where(places, log, -1e-3) if once else np.full(value.shape, log / 16)
        return np.asarray(np.exp(logs * draw.uniform(0.99, 1, value.shape)))

    return change


def _few(odd: float) -> Callable[..., Floats]:
    def change(draw: np.random.Generator, value: Floats) -> Floats:
        found = value.copy()
        for place in (len(value) // 3, len(value) // 2 + 5):
            found[place].flat[draw.integers(value[place].size)] = odd
        return found

    return change


def _first(draw: np.random.Generator, value: Floats) -> Floats:
    return np.concatenate([value[:1], 0 * value[1:]])


def _initial(factor: float) -> Condition:
    return {_STATE: lambda draw, value: factor * draw.standard_normal(value.shape)}


def _all(number: float) -> Condition:
    return {_DECAY: lambda draw, value: np.full(value.shape, number)}


CONDITIONS: Mapping[str, Condition] = {
    "as drawn": {},
    "1e3 to 1e5 mixed with 1e-3": {_VALUE: _mixed},
    "the same, keys and gates too": {_VALUE: _mixed, _OTHER: _mixed},
    "1e5 that cancel": {_VALUE: _cancelling},
    "decay of e^-5.9 in half a block": {_DECAY: _within_half_a_block(-5.9, once=False)},
    "of e^-6.1": {_DECAY: _within_half_a_block(-6.1, once=False)},
    "of e^-5.9 at once": {_DECAY: _within_half_a_block(-5.9, once=True)},
    "of e^-20 at once": {_DECAY: _within_half_a_block(-20, once=True)},
    "decays of 0 and 1": {_DECAY: lambda draw, value: (draw.random(value.shape) < 0.9) * 1.0},
    "decays of 0.97": _all(0.97),
    "decays of 1.0001": _all(1.0001),
    "decays of 1.01": _all(1.01),
    "decays of 0.99 to 1.01": {_DECAY: lambda draw, value: draw.uniform(0.99, 1.01, value.shape)},
    "denormal": {_VALUE: lambda draw, value: value * 1e-41},
    "NaN": {_VALUE: _few(np.nan)},
    "infinity": {_VALUE: _few(np.inf)},
    "initial states of 1e5": _initial(1e5),
    "initial states of 1e8": _initial(1e8),
    "nothing after the first iteration": {_VALUE: _first},
}


@dataclass(frozen=True)
class Ratio:
    """The errors of an outcome by those of the loop: root of the mean square, and largest element;
    and the number of elements that are finite, or NaN, in one of the two alone."""

    mean: float
    largest: float
    odd: int


def ratio(name: str, steps: int, condition: Condition, sizes: Mapping[str, int] = SIZES) -> Ratio:
    """The ratio for an architecture."""
    step = (suite._MATRICES | suite._ELEMENTS)[name]
    model, feeds = suite._model(step, steps, sizes)
    draw = np.random.default_rng(0)
    for one in model.graph.initializer:
        if _role(step, one.name) == _DECAY and _DECAY in condition:
            value = condition[_DECAY](draw, numpy_helper.to_array(one).astype(np.float64)[None])[0]
            one.CopyFrom(numpy_helper.from_array(value.astype(np.float32), one.name))
    after = passes.optimize(model, verify=False).model
    runs = []
    for number in range(_DRAWS):
        drawn = {}
        for key, value in feeds.items():
            own = np.roll(value, 37 * number, 0).astype(np.float64)
            change = condition.get(_role(step, key[:-1], initial=key.endswith("0")))
            drawn[key] = (change(draw, own) if change else own).astype(np.float32)
        with np.errstate(all="ignore"):
            exact = suite.exact(suite.Recurrence(name, model, drawn, None))
        runs.append((exact, _run(model, drawn), _run(after, drawn)))
    columns = [list(zip(*(run[place] for run in runs), strict=True)) for place in range(3)]
    pairs = [(_errors(e, b), _errors(e, a)) for e, b, a in zip(*columns, strict=True)]
    both = [(b, a) for _, before, after in runs for b, a in zip(before, after, strict=True)]
    odd = sum(int(np.count_nonzero(_kinds(b) != _kinds(a))) for b, a in both)
    mean, largest = (max(a[k] / max(b[k], _LEAST) for b, a in pairs) for k in (0, 1))
    return Ratio(mean, largest, odd)


def _role(step: suite.Step, name: str, *, initial: bool = False) -> str:
    if name in step.states and initial:
        return _STATE
    how = step.drawn.get(name, "")
    if how == "decay" or (how == "gate" and name == "f"):
        return _DECAY
    return _VALUE if name in _VALUES and not how else _FIXED if name in step.fixed else _OTHER


def _run(model: ModelProto, feeds: Mapping[str, NDArray[np.generic]]) -> list[Floats]:
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    return [np.asarray(value, np.float64) for value in session.run(None, dict(feeds))]


def _kinds(values: Floats) -> NDArray[np.int64]:
    return np.isfinite(values) + 2 * np.isnan(values)


def _errors(exact: tuple[Floats, ...], found: tuple[Floats, ...]) -> tuple[float, float]:
    """Root of the mean square, and largest element, relative to the exact values."""
    right, own = np.stack(exact), np.stack(found)
    known = np.isfinite(right) & np.isfinite(own)
    right, own = right[known], own[known]
    top = np.abs(right).max(initial=0)
    if not top:
        return 0.0, 0.0
    off, right = np.abs(own - right) / top, right / top
    return float(np.sqrt(np.mean(off**2) / np.mean(right**2))), float(off.max())


def main() -> None:
    """Print all ratios, then the worst."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("steps", type=int, nargs="*", default=STEPS)
    parser.add_argument("--only", default="", help="part of the name of an architecture")
    given = parser.parse_args()
    worst = dict[tuple[int, str], tuple[float, float, int, str]]()
    for steps in given.steps:
        for name in suite._MATRICES | suite._ELEMENTS:
            for condition, change in CONDITIONS.items() if given.only in name else ():
                one = ratio(name, steps, change)
                figures = f"{one.mean:6.2f} {one.largest:6.2f} {one.odd}"
                print(f"{steps:5} {name:16} {condition:34} {figures}", flush=True)
                last = worst.get((steps, condition), (0, 0, 0, ""))
                found = (one.mean, one.largest, last[2] + one.odd, name)
                worst[steps, condition] = max(last, found)
    for (steps, condition), (mean, largest, odd, name) in worst.items():
        print(f"worst {steps:5} {condition:34} {mean:6.2f} {largest:6.2f} {odd} {name}")


if __name__ == "__main__":
    main()
