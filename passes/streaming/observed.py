"""Runs of a model at other numbers of frames show where its values have time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from time import monotonic

import numpy as np
from onnx import ValueInfoProto, helper

from passes.ir.model import Model
from passes.ir.protos import copied, replace_all
from passes.streaming.plan import CannotStream, Frames, Reason
from passes.types import signature
from passes.types.value_types import dims_of
from passes.verify.executor import Array, Ended, Feeds
from passes.verify.inputs.drawer import CannotDraw, Drawer
from passes.verify.inputs.hints import model_hints
from passes.verify.inputs.lessons import Lessons
from passes.verify.inputs.plans import ATTEMPTS, LARGER, ORDINARY, Plan
from passes.verify.reference import ReferenceExecutor

#: A number of frames that most strides divide; twice as many; and as many at other sizes.
_FEW = 24
#: Bytes of an initializer whose elements are no beginning of a state; seconds to learn its sizes.
_LARGE, _SECONDS = 1 << 20, 20.0
_RUNS = ((ORDINARY, _FEW), (ORDINARY, 2 * _FEW), (LARGER, _FEW))


def sizes_of(values: Sequence[ValueInfoProto], feeds: Feeds) -> dict[str, int]:
    """The sizes of the symbolic dims of inputs, by name."""
    found: dict[str, int] = {}
    for value in values:
        shape = getattr(feeds.get(value.name), "shape", ())
        pairs = zip(dims_of(value.type) or (), shape, strict=False)
        found |= {dim: size for dim, size in pairs if isinstance(dim, str)}
    return found


@dataclass(frozen=True)
class Observed:
    """The values of the main graph in each run, and the sizes of the inputs' dims."""

    sizes: Sequence[Mapping[str, int]]
    values: Sequence[dict[str, Array]]

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a value in the first run."""
        return tuple(self.values[0][name].shape)

    def call(self, name: str, new: str) -> None:
        """Give a value another name, too."""
        for values in self.values:
            values[new] = values[name]

    def elem_type(self, name: str) -> int:
        """The type of the elements of a value, as onnx numbers it."""
        return helper.np_dtype_to_tensor_dtype(self.values[0][name].dtype)

    def times(self, name: str) -> list[int]:
        """The axes whose size depends on the number of frames."""
        shapes = [self.values[run][name].shape for run in (0, 1)]
        if len(shapes[0]) != len(shapes[1]):
            return []
        return [axis for axis, (few, many) in enumerate(zip(*shapes, strict=True)) if few != many]

    def has(self, name: str, frames: Frames) -> bool:
        """Return whether a value has as many frames as that."""
        few, many = (self.values[run][name].shape[frames.axis] for run in (0, 1))
        rate, padding = Fraction(_FEW, frames.every), frames.past + frames.ahead
        return (few, many) == (rate + padding, 2 * rate + padding)

    def is_steady(self, name: str) -> bool:
        """Return whether a value was the same at both numbers of frames."""
        return np.array_equal(self.values[0][name], self.values[1][name])


def observe(model: Model, time: str) -> Observed:
    """Run a model in the reference executor. Raises CannotStream where it fails."""
    proto, graph = copied(model.proto), model.proto.graph
    made = [ValueInfoProto(name=name) for node in graph.node for name in node.output if name]
    replace_all(proto.graph.output, made)
    inputs, executor, reason = tuple(signature.inputs(graph)), ReferenceExecutor(), ""
    drawer = Drawer(inputs, hints=model_hints(model))
    fixed = {
        tensor.name: model.read(tensor) if tensor.ByteSize() < _LARGE else np.empty(tensor.dims)
        for tensor in graph.initializer
    }
    for attempt in range(len(ATTEMPTS)):
        sizes, values, symbols = [], [], drawer.symbols()
        try:
            for others, count in _RUNS:
                place = symbols.index(time) if time in symbols else 0
                plan = Plan("ordinary", "frames", others, ((place, count),))
                feeds = drawer.case(plan, 0 if drawer.needs else attempt).feeds
                outputs = executor.run(proto, feeds, base_dir=model.base_dir).outputs
                found = {**feeds, **outputs}.items()
                values.append(fixed | {name: np.asarray(one) for name, one in found})
                sizes.append(sizes_of(inputs, feeds))
        except (Ended, CannotDraw) as error:
            reason = reason or str(error)
            if not attempt:
                lessons = Lessons(proto, drawer, executor, model.base_dir, _SECONDS)
                drawer = replace(drawer, needs=lessons.learn(monotonic() + _SECONDS))
            elif drawer.needs:
                drawer = replace(drawer, needs=None)
            continue
        apart = {**sizes[0], time: 2 * _FEW} == sizes[1]  # no other dim is that of time
        if apart and [size[time] for size in sizes] == [count for _, count in _RUNS]:
            return Observed(sizes, values)
    raise CannotStream(Reason.WHOLE, f"the model fails at other numbers of frames: {reason}")
