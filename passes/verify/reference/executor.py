"""`ReferenceExecutor`: takes a model and feeds, gives an outcome."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TypeProto

from passes.ir import scope
from passes.ir.protos import collector_held_back
from passes.verify.executor import GUESSED, CannotRun, Feeds, ModelFailed, Outcome, Value, Watch
from passes.verify.reference.control_flow.static_sizes import StaticSizes
from passes.verify.reference.evaluator import Evaluator, plain
from passes.verify.reference.kernels import kernel_for
from passes.verify.reference.library import Library
from passes.verify.reference.machine import Frame, Kernel, Machine
from passes.verify.reference.roundings import Roundings
from passes.verify.reference.value_types import known_dtype, known_shape

#: From this IR version on, an initializer that is also an input is a default, not a constant.
_IR_WITH_DEFAULTS = 4


class ReferenceExecutor:
    """Runs models with numpy: onnx's reference kernels, ours where those are wrong.

    It keeps the last `keep` models ready for another run, the time limit of a run not counting
    the time to make them so; they must not change in between. `kernels` finds the kernel of a node
    in the graph of an evaluator.
    """

    def __init__(
        self, *, keep: int = 0, kernels: Callable[[NodeProto, Evaluator], Kernel] = kernel_for
    ) -> None:
        self._keep = keep
        self._kernels = kernels
        self._ready: list[tuple[ModelProto, Path | None, Watch, Evaluator]] = []

    @property
    def name(self) -> str:
        """The name of this executor in reports."""
        return "reference"

    @property
    def version(self) -> str:
        """It is part of this program."""
        return ""

    def load(
        self, model: ModelProto, *, base_dir: Path | None = None, timeout: float | None = None
    ) -> None:
        """Loads whatever there is: what it cannot run shows when it runs."""

    def run(
        self,
        model: ModelProto,
        feeds: Feeds,
        *,
        base_dir: Path | None = None,
        timeout: float | None = None,
        watch: Watch | None = None,
    ) -> Outcome:
        """Runs `model` on `feeds`, which name its inputs (None for an empty optional).

        `base_dir` is where external data lies; `timeout` (seconds) is looked at between nodes
        and iterations. `watch` names, per node name, the values to note down whenever a node of
        that name is about to run, in bodies and functions too, as they are seen from there;
        names that mean nothing there are left out, and only the first 16 runs are kept.

        Raises `ModelFailed` when the model fails on these feeds (a missing feed and one of a
        wrong type or shape included), `CannotRun` when a kernel or external data is missing or
        the time is over.
        """
        return self._run(model, feeds, base_dir, timeout, watch or {}, None)

    def perturbed(
        self,
        model: ModelProto,
        feeds: Feeds,
        seed: int,
        *,
        base_dir: Path | None = None,
        timeout: float | None = None,
    ) -> Outcome:
        """Runs `model` as `run` does, but with every operator rounding otherwise (`Roundings`)."""
        return self._run(model, feeds, base_dir, timeout, {}, Roundings(seed))

    def _run(
        self,
        model: ModelProto,
        feeds: Feeds,
        base_dir: Path | None,
        timeout: float | None,
        watch: Watch,
        roundings: Roundings | None,
    ) -> Outcome:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # numpy's, of the mean of nothing
            evaluator = self._evaluator(model, base_dir, watch)
            machine = evaluator.machine
            machine.start(timeout, roundings)
            values = {"": None, **evaluator.rt_inits_, **_fed(model, feeds)}
            try:
                results = _execute(evaluator, values)
            except ModelFailed as error:
                if not machine.guessed_shapes:
                    raise
                undecided = CannotRun(f"{GUESSED}: {error}")
                undecided.trouble = error.trouble
                raise undecided from error
        outputs = dict(zip(scope.output_names(model.graph), results, strict=True))
        return Outcome(
            outputs,
            machine.guessed_shapes,
            machine.seen,
            machine.idle,
            machine.idle_scan,
            machine.idle_cell,
            machine.misfed,
            machine.undeclared,
            frozenset(machine.reached),
            machine.decided,
        )

    def _evaluator(self, model: ModelProto, base_dir: Path | None, watch: Watch) -> Evaluator:
        for known, folder, watched, evaluator in self._ready:
            if known is model and folder == base_dir and watched == watch:
                return evaluator
        imports = {entry.domain: entry.version for entry in model.opset_import}
        machine = Machine(
            Library(model.functions), StaticSizes(model), self._kernels, base_dir, None, watch
        )
        with collector_held_back():
            evaluator = _evaluator(model.graph, machine, imports)
        evaluator.is_main = True
        if self._keep:
            self._ready = [*self._ready, (model, base_dir, watch, evaluator)][-self._keep :]
        return evaluator


def _evaluator(graph: GraphProto, machine: Machine, imports: dict[str, int]) -> Evaluator:
    try:
        return Evaluator(graph, machine, imports)
    except RecursionError as error:
        raise CannotRun("the model nests its bodies too deeply") from error


def _execute(evaluator: Evaluator, values: dict[str, Value]) -> list[Value]:
    try:
        return evaluator.execute(Frame(values, None))
    except RecursionError as error:
        raise CannotRun("the model nests its bodies or functions too deeply") from error


def _fed(model: ModelProto, feeds: Feeds) -> dict[str, Value]:
    """The feeds, checked against the model's inputs."""
    own = scope.initializer_names(model.graph)
    defaults = own if model.ir_version >= _IR_WITH_DEFAULTS else set()
    types = {
        value.name: value.type
        for value in model.graph.input
        if value.name not in own or value.name in defaults
    }
    unknown = [name for name in feeds if name not in types]
    if unknown:
        raise ModelFailed(f"{unknown[0]!r} is no input of the model, which has {list(types)}")
    missing = [name for name in types if name not in feeds and name not in defaults]
    if missing:
        raise ModelFailed(f"the input {missing[0]!r} is not fed")
    return {name: _checked(name, value, types) for name, value in feeds.items()}


def _checked(name: str, value: Value, types: Mapping[str, TypeProto]) -> Value:
    kind = types[name]
    if value is None or isinstance(value, list):
        if kind.HasField("tensor_type"):
            raise ModelFailed(f"the input {name!r} must be a tensor")
        return [plain(element) for element in value] if isinstance(value, list) else None
    tensor = plain(value)
    assert isinstance(tensor, np.ndarray)
    if kind.HasField("tensor_type"):
        dtype, shape = known_dtype(kind), known_shape(kind)
        if dtype is not None and dtype != tensor.dtype:
            raise ModelFailed(f"the input {name!r} is {dtype}, not {tensor.dtype}")
        fits = shape is None or (
            len(shape) == tensor.ndim
            and all(dim in (None, size) for dim, size in zip(shape, tensor.shape, strict=True))
        )
        if not fits:
            raise ModelFailed(f"the input {name!r} has shape {shape}, not {tensor.shape}")
    return tensor
