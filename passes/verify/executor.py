"""The interface of an executor: it runs a model on inputs, and reports plainly when it is unable
to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy.typing as npt

if TYPE_CHECKING:  # the process that runs onnxruntime starts quicker without onnx
    from onnx import ModelProto, NodeProto

    from passes.ir.places import Key

Array = npt.NDArray[Any]
#: A tensor, a sequence of values, or an empty optional.
Value = Array | list[Any] | None
Feeds = Mapping[str, Value]


def kind_of(value: Value) -> str:
    """Return a short description of a value, for messages."""
    if value is None:
        return "an empty optional"
    return "a sequence" if isinstance(value, list) else "a tensor"


#: How `CannotRun` begins where the process of an executor ended.
CRASHED = "the process crashed"
#: How it begins where an executor does not take the model.
CANNOT_LOAD = "cannot load"
#: How it begins where a model fails on sizes that had to be guessed.
GUESSED = "the sizes of what no iteration made are unknown"


@dataclass(frozen=True)
class Trouble:
    """The node at which a run ended, its inputs, and its location: its position in its graph,
    preceded by the positions of the nodes that contain it."""

    node: NodeProto
    operands: Sequence[Value]
    position: tuple[int, ...]


class Ended(Exception):
    """A run that gave no outcome. `trouble` is where it ended, if that is known."""

    trouble: Trouble | None = None


class ModelFailed(Ended):
    """The model itself fails on these inputs: what a user of the model would see too."""


class InputsRefused(ModelFailed):
    """A Scan does not take its inputs: lengths or sizes that differ, or lie out of range."""


class CannotRun(Ended):
    """The executor cannot run the model (missing kernel, crash, time-out): no word on the model."""


class TookTooLong(CannotRun):
    """The run was ended by its time-out."""


#: What a node did, by its key in the model: `true` and `false` are what the condition of an If was,
#: `0`, `1` and `more` the trip count of a loop, `ended` that its condition ended it, `on`, `off`
#: and `partly` where the mask of a Where held.
Did = Literal["true", "false", "0", "1", "more", "ended", "on", "off", "partly"]
Event: TypeAlias = "tuple[Key, Did]"


@dataclass(frozen=True)
class Outcome:
    """The outcome of one run.

    `outputs` maps the names of the graph outputs to their values, in order. `guessed_shapes`
    is true where a loop ran zero times and a collected element had an unknown dim:
    such dims are wildcards in a comparison. `seen` holds, per watched node, the values that
    the watched names had each time that node was about to run. `idle`: a loop, or a row of a
    Scan-8 or recurrent operator, ran no iteration; `idle_scan`: one of a Scan did; `idle_cell`: a
    recurrent operator read no element, as over no time steps; `misfed`: the body of one that ran
    none declares other sizes than it is fed or would give; `undeclared`: one that ran changed the
    size of a state from or to one that its body rules out, or collects what it declares otherwise;
    `reached` is what Ifs, loops and masks did, `decided` the trip count of a loop, or 1 or 0 for
    the branch of an If, for each time that it ran; the reference executor reports them.
    """

    outputs: dict[str, Value]
    guessed_shapes: bool = False
    seen: dict[str, list[dict[str, Value]]] = field(default_factory=dict)
    idle: bool = False
    idle_scan: bool = False
    idle_cell: bool = False
    misfed: bool = False
    undeclared: bool = False
    reached: frozenset[Event] = frozenset()
    decided: Mapping[Key, Sequence[int]] = field(default_factory=dict)


class Executor(Protocol):
    """Runs models. `base_dir` is where external data lies; `timeout` is in seconds. `load` only
    sees whether the model loads, and raises CannotRun where it does not."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    def load(
        self, model: ModelProto, *, base_dir: Path | None = None, timeout: float | None = None
    ) -> None: ...

    def run(
        self,
        model: ModelProto,
        feeds: Feeds,
        *,
        base_dir: Path | None = None,
        timeout: float | None = None,
    ) -> Outcome: ...


@runtime_checkable
class Perturbing(Protocol):
    """An executor that can run a model with every rounding another one, by a seed."""

    def perturbed(
        self,
        model: ModelProto,
        feeds: Feeds,
        seed: int,
        *,
        base_dir: Path | None = None,
        timeout: float | None = None,
    ) -> Outcome: ...


#: Per node name, the value names to note down whenever that node is about to run.
Watch = Mapping[str, Sequence[str]]
