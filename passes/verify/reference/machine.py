"""State shared by all evaluators of one run: the clock, the watched values, the functions, the
location of weights."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onnx import FunctionProto, NodeProto

from passes.ir.places import Key
from passes.verify.executor import Array, Event, TookTooLong, Value, Watch
from passes.verify.reference.control_flow.static_sizes import StaticSizes
from passes.verify.reference.library import Library
from passes.verify.reference.roundings import Roundings

#: A watched node is noted down at most this many times: a loop may run it a million times.
SEEN_AT_MOST = 16


class Frame:
    """The values of one graph while it runs, and the frame that encloses it lexically.

    `values` also holds what the graph captures, so that a kernel's operands are one look-up
    away; `outer` serves the watch, which may ask for names that nothing here reads.
    """

    __slots__ = ("outer", "values")

    def __init__(self, values: dict[str, Value], outer: Frame | None) -> None:
        self.values = values
        self.outer = outer

    def visible(self, names: Sequence[str]) -> dict[str, Value]:
        """The values of those of `names` that mean something here, innermost first."""
        found: dict[str, Value] = {}
        for name in names:
            frame: Frame | None = self
            while frame is not None:
                if name in frame.values:
                    found[name] = frame.values[name]
                    break
                frame = frame.outer
        return found


#: Runs a node on its operands (None where omitted); the frame is what its bodies capture from.
Kernel = Callable[[list[Value], Frame], Sequence[Any]]


@dataclass
class Machine:
    """The state of one run of one model. `kernel_for` finds the kernel of a node in the graph of an
    evaluator."""

    library: Library
    static: StaticSizes
    kernel_for: Callable[[NodeProto, Any], Kernel]
    base_dir: Path | None = None
    timeout: float | None = None
    watch: Watch = field(default_factory=dict)
    seen: dict[str, list[dict[str, Value]]] = field(default_factory=dict)
    guessed_shapes: bool = False
    #: Whether a loop or recurrent operator, or a row of one, ran no iteration; and whether that was
    #: one of a Scan.
    idle: bool = False
    idle_scan: bool = False
    #: Whether a recurrent operator read no element: over no time steps, or an empty batch.
    idle_cell: bool = False
    #: Whether the body of such a one declares other sizes than it is fed or would give; and whether
    #: one that ran changed the size of a state so, or collects what its body declares otherwise.
    misfed: bool = False
    undeclared: bool = False
    #: What nodes with bodies did.
    reached: set[Event] = field(default_factory=set)
    #: The trip counts of loops and the branches of Ifs, in the order of their runs.
    decided: dict[Key, list[int]] = field(default_factory=dict)
    #: Random draws so far.
    draws: int = 0
    #: What perturbs the arithmetic of this run, if anything.
    roundings: Roundings | None = None
    #: The functions by which schemas define operators, by their bytes: equal ones are one object.
    schema_functions: dict[bytes, FunctionProto] = field(default_factory=dict)
    #: Evaluators of functions by function and attributes; the function is kept alive, as its
    #: identity is part of the key.
    function_evaluators: dict[tuple[Any, ...], tuple[Any, FunctionProto]] = field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        self.start(self.timeout)
        self.watched = frozenset(name for names in self.watch.values() for name in names)

    def start(self, timeout: float | None, roundings: Roundings | None = None) -> None:
        """Begin a run: reset the clock, the draws and the values seen."""
        self.roundings = roundings
        self.timeout = timeout
        self.deadline = None if timeout is None else time.monotonic() + timeout
        self.seen = {}
        self.guessed_shapes = False
        self.idle = self.idle_scan = self.idle_cell = False
        self.misfed = self.undeclared = False
        self.reached = set()
        self.decided = {}
        self.draws = 0

    def tick(self) -> None:
        """Called between nodes and between iterations.

        Raises `TookTooLong` once the time is over.
        """
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise TookTooLong(f"took longer than {self.timeout:g} s")

    def elements(self, array: Array) -> Array:
        """The elements of an array on which control flow depends: here itself."""
        return array

    def note(self, node_name: str, frame: Frame) -> None:
        """Notes down what the watch of `node_name` asks for, as it is seen from `frame`."""
        runs = self.seen.setdefault(node_name, [])
        if len(runs) < SEEN_AT_MOST:
            runs.append(frame.visible(self.watch[node_name]))


def opset_versions(imports: Mapping[str, int]) -> dict[str, int]:
    """Opset versions by domain, the standard domain under both of its spellings."""
    versions = dict(imports)
    for alias, domain in (("", "ai.onnx"), ("ai.onnx", "")):
        if alias in versions and domain not in versions:
            versions[domain] = versions[alias]
    return versions
