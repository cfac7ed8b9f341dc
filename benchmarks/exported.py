"""Every exported model with control flow, optimized: onnxruntime, one
thread, against the original, with all free sizes at 8 and at 64."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from statistics import geometric_mean

import onnx

import passes
from benchmarks.harness import Aim, Bench, Row
from passes.errors import DoesNotFit
from passes.ir.model import Model
from passes.ir.scope import holds_graphs
from passes.measuring.measured import Timing
from passes.measuring.measuring import ONNXRUNTIME, Settings, measure_models
from passes.types.signature import inputs
from passes.verify.inputs.drawer import Drawer
from passes.verify.inputs.hints import model_hints

_EXPORTED = Path(__file__).parent.parent / "golden_models" / "exported"
_SIZES = (8, 64)
_NOT_SLOWER = Aim(ratio=1.05)
#: Seconds for both models, and for those that seem slower, which are measured again.
_BUDGET, _AGAIN = 0.6, 3.0


def measure(bench: Bench) -> None:
    """A row for each model that is slower, the geometric mean and the slowest below them."""
    if importlib.util.find_spec(ONNXRUNTIME) is None:
        bench.note("onnxruntime is not installed")
        return
    paths = sorted(_EXPORTED.glob("*/*.onnx"))
    ratios: dict[str, float] = {}
    for path in paths[::100] if bench.quick else paths:
        model = onnx.load(path)
        if any(map(holds_graphs, model.graph.node)):
            _compare(bench, f"{path.parent.name}/{path.stem}", Model(model), ratios)
    if ratios:
        slowest = max(ratios, key=lambda case: ratios[case])
        mean = geometric_mean(ratios.values())
        bench.note(f"geometric mean {mean:.2f}x of {len(ratios)}")
        bench.note(f"the slowest: {slowest}, {ratios[slowest]:.2f}x")


def _compare(bench: Bench, name: str, model: Model, ratios: dict[str, float]) -> None:
    """The ratio of a model at each of the sizes, unless it stays as it is."""
    ours = passes.optimize(model.proto, verify=False).model
    if ours is model.proto:
        return
    drawer = Drawer(tuple(inputs(model.proto.graph)), 0, model_hints(model))
    free = drawer.symbols()
    for size in _SIZES if free else (1,):
        case = f"{name}, {size}" if free else name
        try:
            before, after = _timings(model, Model(ours), dict.fromkeys(free, (size,)), _BUDGET)
            if not _NOT_SLOWER.met(after.seconds / before.seconds, 0, 0):
                before, after = _timings(model, Model(ours), dict.fromkeys(free, (size,)), _AGAIN)
        except DoesNotFit as error:
            bench.note(f"{case}: {error}")
            continue
        ratio = ratios[case] = after.seconds / before.seconds
        if not (met := _NOT_SLOWER.met(ratio, 0, 0)):
            sides = case, "optimize", "original", after.seconds, before.seconds, ratio
            bench.rows.append(Row(*sides, aim=str(_NOT_SLOWER), met=met))


def _timings(
    model: Model, ours: Model, sizes: dict[str, tuple[int]], budget: float
) -> tuple[Timing, Timing]:
    """The times of the original and of the outcome.

    Raises:
        DoesNotFit: no inputs are found that the original takes, or one of them does not run.
    """
    settings = Settings(sizes=sizes, runtimes=(ONNXRUNTIME,), budget=budget)
    (row,) = measure_models([model, ours], settings).rows
    before, after = row.timings
    if before.failure or after.failure:
        raise DoesNotFit(before.failure or after.failure)
    return before, after
