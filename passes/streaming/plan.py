"""The description of a model that runs in chunks: its states, and the axes of time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import ml_dtypes  # noqa: F401  (numpy knows the names of its types then)
import numpy as np

from passes.verify.executor import Array

#: The key under which a model holds its description, in JSON.
KEY = "passes.stream"
#: A size, or the name of a dim.
Size = int | str


@dataclass(frozen=True)
class State:
    """A value that a chunk hands to the next one, as `output`, which the caller feeds to `input`.

    Before the first chunk, each element is `fill`, or the state is `value`, whose axes of size 1 at
    symbolic dims are repeated; where both are None, the caller chooses. `node` is the path of the
    node that carries it, empty where the model had both names before.
    """

    input: str
    output: str
    shape: tuple[Size, ...]
    type: str
    fill: float | None = None
    value: Any = None
    batch_axis: int | None = None
    node: str = ""

    def first(self, sizes: Mapping[str, int]) -> Array | None:
        """The state before the first chunk; None where the caller chooses it."""
        if self.fill is None and self.value is None:
            return None
        shape = [size if isinstance(size, int) else sizes[size] for size in self.shape]
        initial = self.fill if self.value is None else self.value
        return np.array(np.broadcast_to(np.array(initial, np.dtype(self.type)), shape))


@dataclass(frozen=True)
class Port:
    """An input or output with frames along `time_axis`; `every`: an output has one frame for so
    many frames of the inputs."""

    name: str
    time_axis: int
    every: int = 1


@dataclass(frozen=True)
class Plan:
    """The description: the name of the dim of time, the inputs and outputs that have it, and the
    states. A chunk has at least one frame; `chunk_multiple`: their number is a multiple of it.
    `last`: the outputs without time, which hold what they hold at the end after the last chunk.
    """

    axis: str
    inputs: Sequence[Port]
    outputs: Sequence[Port]
    states: Sequence[State]
    last: Sequence[str] = ()
    chunk_multiple: int = 1

    def to_json(self) -> str:
        """The text that the model holds. An output frame is that of the same place in the whole:
        none is delayed, and none is to be dropped."""
        return json.dumps({"schema_version": 1, "delay": 0, "drop": 0, **asdict(self)})
