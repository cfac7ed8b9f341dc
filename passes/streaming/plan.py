"""How a model runs in chunks: the flow of time through its values, and the description of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum, StrEnum
from typing import Any

import numpy as np
from onnx import helper

from passes.errors import NOT_PRODUCED, PassesError, count
from passes.verify.executor import Array

#: The key under which a model holds its description, in JSON.
KEY = "passes.stream"


@dataclass(frozen=True)
class Frames:
    """A value with frames along `axis`, each of which is the same in a chunk as in the whole.

    One frame belongs to `every` frames of the inputs. In a chunk, `past` frames come before those
    of the chunk itself; in the whole, so many before the first, and `ahead` after the last, which
    no chunk has: they come from padding. A chunk has `later` frames of the next one, too; of what
    is `closed` it can have no more of them, as a state is computed from its own alone.
    """

    axis: int
    every: int = 1
    past: int = 0
    ahead: int = 0
    later: int = 0
    closed: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Last:
    """A value that is computed from the states after the last frame, by their inputs' names."""

    states: frozenset[str] = frozenset()


class Count(Enum):
    """Numbers that depend on how many frames there are."""

    COUNT = "count"


#: None: the same for every chunk.
Flow = Frames | Last | Count | None


class Reason(StrEnum):
    """Why a model cannot be run in chunks."""

    AHEAD = "reads-ahead"
    BACKWARDS = "backwards"
    WHOLE = "whole-sequence"
    NUMBER = "number-of-frames"
    LENGTHS = "lengths"
    INITIAL = "initial-state"
    LOOP = "loop"
    UNSUPPORTED = "unsupported"


class ReadsLater(Exception):
    """A node reads so many `frames` of the inputs that come after the chunk."""

    def __init__(self, frames: int) -> None:
        super().__init__(frames)
        self.frames = frames


class CannotStream(PassesError):
    """A model cannot be run in chunks; the sentence names the node and the reason."""

    exit_code = NOT_PRODUCED

    def __init__(self, reason: Reason, sentence: str, path: str = "") -> None:
        super().__init__(": ".join(filter(None, (path, f"{sentence} [{reason}]"))))
        self.reason = reason


@dataclass(frozen=True)
class State:
    """A value that a chunk hands to the next one, as `output`, which the caller feeds to `input`.

    Before the first chunk, each element is `fill`, or the state is `value`, which is broadcast to
    its `shape`; where both are None, the output of its name of the initial model if it is
    `computed`, or else what the caller chooses. `node` is the path of the node that
    carries it, empty where the model had both names before. `each`: the output that holds it after
    each frame of the chunk, along a new first axis, if there is one.
    """

    input: str
    output: str
    shape: tuple[int | str, ...]
    type: str
    fill: float | None = None
    value: Any = None
    batch_axis: int | None = None
    node: str = ""
    each: str = ""
    computed: bool = False

    def first(self, sizes: Mapping[str, int]) -> Array | None:
        """The state before the first chunk, by the sizes of dims; None where the caller chooses, or
        another model computes it."""
        if self.is_given:
            return None
        shape = [size if isinstance(size, int) else sizes[size] for size in self.shape]
        value = np.array(self.fill if self.value is None else self.value, np.dtype(self.type))
        return np.array(np.broadcast_to(value, shape))

    def __str__(self) -> str:
        first = "fed by the caller" if self.value is None else "a value in the description"
        first = first if self.fill is None else f"{self.fill:g}"
        first = "what the initial model computes" if self.computed else first
        node = f" ({self.node})" if self.node else ""
        kind = f"{self.type}[{','.join(map(str, self.shape))}]"
        each = f", after each frame {self.each}" if self.each else ""
        return f"{self.input} -> {self.output}: {kind}, at first {first}{each}{node}"

    @property
    def is_given(self) -> bool:
        """Whether the caller chooses what it starts with, or another model computes it."""
        return self.fill is None and self.value is None

    @property
    def elem_type(self) -> int:
        """The type of its elements, as onnx numbers it."""
        return helper.np_dtype_to_tensor_dtype(np.dtype(self.type))


@dataclass(frozen=True)
class Port:
    """An input or output with frames along `time_axis`; an output has one for `every` frames of the
    inputs."""

    name: str
    time_axis: int
    every: int = 1


@dataclass(frozen=True)
class Plan:
    """The description: the name of the dim of time, the inputs and outputs that have it, and the
    states. The frames of a chunk are one or more, a multiple of `chunk_multiple`. `last`: the
    outputs without time, which hold what they hold in the whole after the last chunk. `chunk`: the
    only number of frames of a chunk, if it is fixed. A chunk is followed by `look_ahead` frames of
    the next one, and `frames_left` is the input that is how many frames of the sequence begin with
    the first of the chunk; "" if there is none."""

    axis: str
    inputs: Sequence[Port]
    outputs: Sequence[Port]
    states: Sequence[State]
    last: Sequence[str] = ()
    chunk_multiple: int = 1
    chunk: int = 0
    look_ahead: int = 0
    frames_left: str = ""

    @property
    def multiple(self) -> int:
        """What the frames of a chunk are a multiple of."""
        return self.chunk or self.chunk_multiple

    def to_json(self) -> str:
        """The text that the model holds; an output frame is delayed by what the model looks ahead,
        and none is to be dropped."""
        return json.dumps(
            {"schema_version": 1, "delay": self.look_ahead, "drop": 0, **asdict(self)}
        )

    def to_text(self) -> str:
        """The description for people."""
        free = self.chunk_multiple > 1 and not self.chunk
        least = f", a multiple of {self.chunk_multiple}" if free else ""
        number = count(self.chunk, "frame") if self.chunk else "any number of frames"
        lines = [f"chunks of {number} along {self.axis}{least}"]
        lines += [f"  input {port.name}: frames on axis {port.time_axis}" for port in self.inputs]
        if self.look_ahead:
            ahead = f"a chunk is followed by {self.look_ahead} frames of the next"
            lines.append(f"  looks ahead: {ahead}")
            left = "the number of frames from this chunk to the end"
            lines.append(f"  input {self.frames_left}: {left}")
        for port in self.outputs:
            every = f", one for {port.every} of the inputs" if port.every > 1 else ""
            lines.append(f"  output {port.name}: frames on axis {port.time_axis}{every}")
        lines += [f"  output {name}: holds after the last chunk" for name in self.last]
        return "\n".join([*lines, *(f"  state {state}" for state in self.states)])
