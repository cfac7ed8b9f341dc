"""Measures models side by side, in turn, each in a process of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import product

from passes.errors import DoesNotFit, nearest
from passes.ir.external_data import external_files
from passes.ir.model import Model
from passes.reports.measured import Measured, Row, Timing
from passes.types.signature import inputs as signature_inputs
from passes.verify.executor import CannotRun, Ended, Executor, Feeds
from passes.verify.inputs.drawer import Drawer
from passes.verify.inputs.hints import model_hints
from passes.verify.inputs.lengths import length_of, taken, trip_counts
from passes.verify.installed import OnnxRuntimeExecutor
from passes.verify.reference import ReferenceExecutor
from passes.verify.runtimes.executors import UnknownRuntime, modules
from passes.verify.runtimes.process import ProcessExecutor

ONNXRUNTIME = "onnxruntime"
#: Lengths that are measured unless others are given; other free sizes are 1 then.
LENGTHS = (16, 64, 256, 1024)
#: Rounds in which each model is called in turn, the seconds of a turn, and of the shortest one.
_ROUNDS, _TURN, _SHORTEST = 7, 0.05, 1e-6


@dataclass(frozen=True)
class Settings:
    """What to measure: `sizes` of symbols, several each, `inputs` in place of drawn ones; the
    runtimes and the numbers of threads, 0 for all; the seconds that it may take."""

    sizes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    inputs: Feeds | None = None
    seed: int = 0
    runtimes: Sequence[str] = ()
    threads: Sequence[int] = (1,)
    budget: float = 60.0


def installed() -> list[str]:
    """The runtimes that are installed, onnxruntime first."""
    known = {ONNXRUNTIME: "", **modules()}
    from importlib.util import find_spec

    return [name for name in known if find_spec(name) is not None]


def measure_models(models: Sequence[Model], settings: Settings) -> Measured:
    """Measure models that take the same inputs.

    Raises:
        UnknownRuntime: a runtime is not known, or not installed.
        DoesNotFit: the first model has no symbol of a name, or no inputs that it takes are found.
    """
    first, names = models[0], list(settings.runtimes) or installed()
    for name in names:
        if name not in installed():
            near = nearest(name, installed())
            raise UnknownRuntime(f"{name} is no runtime that is installed; {near}")
    drawer = Drawer(tuple(signature_inputs(first.proto.graph)), settings.seed, model_hints(first))
    length = length_of(first, drawer.symbols())
    points = _points(drawer, length, settings)
    fed = list(_fed(first, drawer, points, settings))
    kinds = [(name, count) for name in names for count in _threads(name, settings.threads)]
    each = settings.budget / max(1, len(kinds) * len(points))
    rows = [
        row
        for name, threads in kinds
        for row in _measured(models, name, threads, list(zip(points, fed, strict=True)), each)
    ]
    bytes_ = [_size(model) for model in models]
    return Measured([model.file or "model" for model in models], bytes_, rows, length)


def not_measured(models: Sequence[Model], why: str) -> Measured:
    """The measurement of models that did not run, with the reason."""
    row = Row(ONNXRUNTIME, "", 1, {}, None, [Timing(failure=why) for _ in models])
    return Measured([one.file or "model" for one in models], list(map(_size, models)), [row])


def _threads(name: str, asked: Sequence[int]) -> Sequence[int]:
    """The numbers of threads that are measured in a runtime: tract has one."""
    return [count for count in asked if count == 1 or name != "tract"]


def _size(model: Model) -> int:
    """The bytes of a model, and of its weights in other files."""
    folder = model.base_dir
    files = [] if folder is None else external_files(model.proto, folder)
    return model.proto.ByteSize() + sum(os.path.getsize(file) for file in files)


def _points(drawer: Drawer, length: str, settings: Settings) -> list[dict[str, int]]:
    """The sizes of free symbols at which to measure, each by name."""
    if settings.inputs is not None:
        return [{}]
    known = drawer.symbols()
    for name in settings.sizes:
        if name not in known:
            free = ", ".join(known) or "none"
            raise DoesNotFit(f"the model has no free dim {name!r}; those that it has: {free}")
    choices = {
        name: settings.sizes.get(name) or (LENGTHS if name == length else (1,)) for name in known
    }
    return [dict(zip(choices, sizes, strict=True)) for sizes in product(*choices.values())]


def _fed(
    model: Model, drawer: Drawer, points: Sequence[Mapping[str, int]], settings: Settings
) -> Iterator[Feeds]:
    """Inputs of the sizes of each point that the model takes.

    Raises:
        DoesNotFit: none are found.
    """
    if settings.inputs is not None:
        yield settings.inputs
        return
    with ExitStack() as stack:
        executor: Executor = ReferenceExecutor()
        if OnnxRuntimeExecutor.available():
            executor = stack.enter_context(OnnxRuntimeExecutor())
        for sizes in points:
            drawer, feeds, _ = taken(model, drawer, sizes, executor)
            yield feeds


def _measured(
    models: Sequence[Model],
    name: str,
    threads: int,
    points: Sequence[tuple[Mapping[str, int], Feeds]],
    budget: float,
) -> Iterator[Row]:
    """The rows of one runtime."""
    module = modules().get(name, f"passes.verify.runtimes.{name}")
    with ExitStack() as stack:
        processes = [
            stack.enter_context(ProcessExecutor(name, module, threads=threads)) for _ in models
        ]
        for sizes, feeds in points:
            timings = _timings(models, processes, feeds, budget)
            trips = [trip.static for trip in trip_counts(_bound(models[0], sizes))]
            known = [count for count in trips if count is not None]
            iterations = sum(known) if known and len(known) == len(trips) else None
            yield Row(name, _version(processes[0]), threads, sizes, iterations, timings)


def _version(process: ProcessExecutor) -> str:
    try:
        return process.version
    except CannotRun:
        return ""


def _bound(model: Model, sizes: Mapping[str, int]) -> Model:
    """The model with the sizes of its named symbols."""
    from passes.binding.dims import dims_of_inputs
    from passes.binding.inputs import Binding

    named = {name: size for name, size in sizes.items() if name in dims_of_inputs(model)}
    return Binding(named).of(model) if named else model


def _timings(
    models: Sequence[Model], processes: Sequence[ProcessExecutor], feeds: Feeds, budget: float
) -> list[Timing]:
    """The time of each model on the same inputs: in rounds, in turn."""
    calls: list[list[float]] = [[] for _ in models]
    failures = [""] * len(models)
    loads, memory = [0.0] * len(models), [0] * len(models)
    end = time.monotonic() + budget
    turn = max(_SHORTEST, min(_TURN, budget / _ROUNDS / len(models)))
    for round_ in range(_ROUNDS):
        for number, (model, process) in enumerate(zip(models, processes, strict=True)):
            if failures[number] or (round_ and time.monotonic() > end):
                continue
            names = {value.name for value in signature_inputs(model.proto.graph)}
            given = {name: value for name, value in feeds.items() if name in names}
            try:
                timed = process.time(
                    model.proto, given, turn, base_dir=model.base_dir, timeout=2 * budget + 10
                )
            except Ended as error:
                failures[number] = f"{error}"
                continue
            calls[number] += timed.calls
            loads[number], memory[number] = timed.loading, max(memory[number], timed.memory)
    return [
        Timing(failure=failure) if failure else Timing.of(found, loading, used)
        for failure, found, loading, used in zip(failures, calls, loads, memory, strict=True)
    ]
