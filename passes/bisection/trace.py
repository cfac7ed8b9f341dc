"""One run of a model in the reference executor, node by node: who made which value, and when."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from onnx import FunctionProto, ModelProto, NodeProto

from passes.ir import scope as scoping
from passes.ir.operators import HOLDERS, op_of
from passes.ir.places import MAIN, function_label, label
from passes.verify.executor import Ended, Feeds, Outcome, Value
from passes.verify.reference import ReferenceExecutor
from passes.verify.reference.evaluator import Evaluator, plain
from passes.verify.reference.kernels import RANDOM, kernel_for
from passes.verify.reference.machine import Frame, Kernel

#: What is assumed that a run takes in memory, without its values.
_BYTES_PER_RUN = 4096
#: Values of at most this many bytes are held in any case.
_SMALL = 1024
#: Seconds that a run may take.
_MOST_SECONDS = 60.0
#: The operators that run their body once for each iteration.
REPEATS = HOLDERS - {"If"}


@dataclass(eq=False)
class Instance:
    """A value, once: what a node made in one iteration, an input, or a constant.

    `digest` is equal for equal dtypes, shapes and bits; `kind` is dtype and shape. `is_trivial`:
    others may hold the same by chance, as it has one distinct element at most. `agreed` is the
    digest of the value of the other model that it agrees with.
    """

    name: str
    digest: bytes
    serial: int
    trace: Trace
    held: bool
    stored: Value
    kind: tuple[str, tuple[int, ...]] | None
    is_trivial: bool
    at: GraphRun | None = None
    run: Run | None = None
    constant: bool = False
    entry: bool = False
    agreed: bytes | None = None

    @property
    def value(self) -> Value:
        """The value; if memory did not allow to keep it, another run computes it."""
        return self.stored if self.held else self.trace.again(self.serial)


@dataclass(eq=False)
class GraphRun:
    """One execution of a graph: which, in which iteration of the node that holds it."""

    evaluator: Evaluator
    holder: Run | None
    iteration: int
    values: dict[str, Instance] = field(default_factory=dict)

    @property
    def iterations(self) -> tuple[int, ...]:
        """The iteration of each loop around it, outermost first."""
        if self.holder is None:
            return ()
        around = self.holder.at.iterations
        return (*around, self.iteration) if op_of(self.holder.node) in REPEATS else around

    @property
    def path(self) -> str:
        """The path of the graph in its model."""
        graph = self.evaluator.proto_
        if isinstance(graph, FunctionProto):
            return function_label(graph)
        if self.holder is None or self.evaluator.held is None:
            return MAIN
        return f"{self.holder.path}.{self.evaluator.held[1]}"


@dataclass(eq=False)
class Run:
    """One execution of a node. `bodies` counts how often each of its bodies ran."""

    node: NodeProto
    at: GraphRun
    reads: dict[str, Instance]
    makes: list[Instance | None] = field(default_factory=list)
    bodies: Counter[int] = field(default_factory=Counter)

    @property
    def operands(self) -> list[Instance | None]:
        """The values of its inputs, in order, without omitted ones at the end."""
        found = [self.reads.get(name) for name in self.node.input]
        while found and found[-1] is None:
            found.pop()
        return found

    @property
    def trips(self) -> int:
        """The number of times its bodies ran."""
        return sum(self.bodies.values())

    @property
    def path(self) -> str:
        """The path of its node in the model."""
        key = self.at.evaluator.key_of(self.node)
        return f"{self.at.path}/{label(self.node, int(key[-1]) if key else 0)}"


@dataclass(frozen=True)
class Moment:
    """A node begins, or it ended. Only nodes with bodies have a moment of their own to begin."""

    run: Run
    ended: bool


@dataclass
class Trace:
    """All that happened in a run. `outcome` is None where it failed, with the reason in `why` and
    the innermost node that did not end in `failed`. `left_out` are iterations for which there was
    no room in `memory` (bytes)."""

    model: ModelProto
    feeds: Feeds
    base_dir: Path | None
    memory: int
    moments: list[Moment] = field(default_factory=list)
    instances: list[Instance] = field(default_factory=list)
    outcome: Outcome | None = None
    outputs: list[Instance] = field(default_factory=list)
    why: Ended | None = None
    failed: Run | None = None
    left_out: int = 0
    _later: Trace | None = None

    @property
    def runs(self) -> Iterator[Run]:
        """The nodes that ran, as they ended."""
        return (moment.run for moment in self.moments if moment.ended)

    def again(self, serial: int) -> Value:
        """Trace again, and keep this value and the later ones, which did not fit."""
        if self._later is None or not self._later.instances[serial].held:
            self._later = None
            self._later = trace(self.model, self.feeds, self.base_dir, self.memory, start=serial)
        return self._later.instances[serial].stored


def trace(
    model: ModelProto,
    feeds: Feeds,
    base_dir: Path | None,
    memory: int,
    *,
    start: int = 0,
    patches: Mapping[int, Value] | None = None,
) -> Trace:
    """Run a model and note every value. Never raises for what the model does.

    `memory` bounds the bytes of what is held: beyond, values from the serial number `start` on have
    a digest alone, and iterations are left out. `patches` are values, by serial number, with which
    the model computes on in place of its own.
    """
    made = Trace(model, feeds, base_dir, memory)
    recorder = _Recorder(made, memory // 2, start, patches or {})
    executor = ReferenceExecutor(kernels=recorder.kernel)
    try:
        made.outcome = executor.run(model, feeds, base_dir=base_dir, timeout=_MOST_SECONDS)
    except Ended as error:
        made.why = error
    else:
        recorder.finish(made.outcome)
    return made


@dataclass
class _Recorder:
    trace: Trace
    room: int
    start: int
    patches: Mapping[int, Value]
    _stack: list[Run | None] = field(default_factory=list)
    _current: dict[int, tuple[Frame, GraphRun | None]] = field(default_factory=dict)
    _constants: dict[tuple[int, str], Instance] = field(default_factory=dict)
    _main: GraphRun | None = None

    def kernel(self, node: NodeProto, evaluator: Evaluator) -> Kernel:
        """The kernel of a node, noting what it reads and makes."""
        kernel = kernel_for(node, evaluator)
        reads = scoping.free_names(node)
        holds = scoping.holds_graphs(node)

        def noting(operands: list[Value], frame: Frame) -> Sequence[Any]:
            at = self._activation(evaluator, frame)
            if at is None:
                self._stack.append(None)
                try:
                    return kernel(operands, frame)
                finally:
                    self._stack.pop()
            found = {name: self._find(name, at, frame) for name in reads}
            run = Run(node, at, {name: one for name, one in found.items() if one is not None})
            if holds:
                self.trace.moments.append(Moment(run, ended=False))
            self._stack.append(run)
            try:
                results = kernel(operands, frame)
            except BaseException:
                self.trace.failed = self.trace.failed or run
                raise
            finally:
                self._stack.pop()
            return self._noted(run, results)

        return noting

    def finish(self, outcome: Outcome) -> None:
        """Note what the model answers."""
        for name, value in outcome.outputs.items():
            known = self._main.values.get(name) if self._main else None
            self.trace.outputs.append(known or self._instance(name, value))
        self._current.clear()

    def _activation(self, evaluator: Evaluator, frame: Frame) -> GraphRun | None:
        """The execution of a graph that a frame is of; None in the function of a schema, and where
        there is no room."""
        known = self._current.get(id(evaluator))
        if known is not None and known[0] is frame:
            return known[1]
        made = self._begun(evaluator, frame)
        self._current[id(evaluator)] = (frame, made)
        return made

    def _begun(self, evaluator: Evaluator, frame: Frame) -> GraphRun | None:
        holder = self._stack[-1] if self._stack else None
        if self._stack and (holder is None or evaluator.key is None):
            return None
        count = 0
        if holder is not None:
            count = holder.bodies[id(evaluator)]
            holder.bodies[id(evaluator)] += 1
            if len(self.trace.moments) * _BYTES_PER_RUN > self.trace.memory // 2:
                self.trace.left_out += 1
                return None
        made = GraphRun(evaluator, holder, count)
        if holder is None:
            self._main = made
        for name in evaluator.input_names_:
            if name in frame.values and name not in made.values:
                entry = self._instance(name, frame.values[name])
                entry.entry, entry.at = holder is not None, made
                made.values[name] = entry
        return made

    def _find(self, name: str, at: GraphRun, frame: Frame) -> Instance | None:
        around: GraphRun | None = at
        while around is not None:
            if name in around.values:
                return around.values[name]
            if name in around.evaluator.rt_inits_:
                key = (id(around.evaluator), name)
                if key not in self._constants:
                    made = self._instance(name, around.evaluator.rt_inits_[name])
                    made.constant = True
                    self._constants[key] = made
                return self._constants[key]
            around = around.holder.at if around.holder is not None else None
        value = frame.values.get(name)
        return None if value is None else self._instance(name, value)

    def _noted(self, run: Run, results: Sequence[Any]) -> list[Value]:
        """Record the results of a node, patched, and return them."""
        constant = op_of(run.node) not in RANDOM
        constant &= all(one.constant for one in run.reads.values())
        values = list(map(plain, results))
        for place, name in enumerate(run.node.output[: len(values)]):
            made = None
            if name:
                serial = len(self.trace.instances)
                values[place] = self.patches.get(serial, values[place])
                made = self._instance(name, values[place])
                made.run, made.at, made.constant = run, run.at, constant
                run.at.values[name] = made
            run.makes.append(made)
        self.trace.moments.append(Moment(run, ended=True))
        return values

    def _instance(self, name: str, value: Value) -> Instance:
        serial, size = len(self.trace.instances), _size(value)
        held = size <= _SMALL or serial == self.start or (self.start < serial and size <= self.room)
        if held and size > _SMALL:
            self.room -= size
        made = instance(name, value, serial, self.trace, held=held)
        self.trace.instances.append(made)
        return made


def instance(name: str, value: Value, serial: int, of: Trace, *, held: bool = True) -> Instance:
    """A value of a run; kept if it is to be `held`."""
    kind = (value.dtype.name, value.shape) if isinstance(value, np.ndarray) else None
    stored = value if held else None
    return Instance(name, digest(value), serial, of, held, stored, kind, _is_trivial(value))


def _is_trivial(value: Value) -> bool:
    if not isinstance(value, np.ndarray) or value.dtype.kind == "b" or value.size < 2:
        return True
    flat = value.reshape(-1)
    return bool(flat[0] == flat[-1] and np.all(flat == flat[0]))


def _size(value: Value) -> int:
    if isinstance(value, list):
        return sum(map(_size, value))
    return 0 if value is None else int(value.nbytes)


def digest(value: Value) -> bytes:
    """Equal for values of one dtype, one shape and the same bits."""
    found = hashlib.blake2b(digest_size=16)
    _feed(found, value)
    return found.digest()


def _feed(found: Any, value: Value) -> None:
    if value is None:
        found.update(b"none")
    elif isinstance(value, list):
        found.update(b"list%d" % len(value))
        for item in value:
            _feed(found, item)
    else:
        found.update(f"{value.dtype}{value.shape}".encode())
        if value.dtype.kind == "O":
            found.update(repr(value.tolist()).encode())
        else:
            found.update(np.ascontiguousarray(value).view(np.uint8).data if value.size else b"")
