"""Weights stored as float16 or int8, and given back in their own type once, before all loops and
branches: what reads them does not change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper
from onnx.numpy_helper import from_array

from passes.ir import scope as scoping
from passes.ir.attributes import attribute
from passes.ir.external_data import byte_size, is_external
from passes.ir.lean import add_graph, constants
from passes.ir.model import Model
from passes.ir.names import Names
from passes.ir.protos import copy_fields, replace_all
from passes.ir.versions import DEQUANTIZES, DEQUANTIZES_CHANNELS, FREE_INITIALIZERS
from passes.operators.element_types import signature
from passes.precision.flow import Flow, Step, Value
from passes.precision.seeds import Reason, Seeds, grouped
from passes.reports.precision import Casting
from passes.types.dtypes import Array, numpy_dtype

_LEAST = 1 << 10  # bytes: a Cast takes about 100 with its names, of 512 that it saves
_MOST = (1 << 31) - (1 << 26)  # bytes of weights in the file of a model: protobuf holds 2 GiB
_BLOCK = 1 << 20  # elements that are converted at once
_PART = 8  # the model takes in external data if they are less than this part of all
_HALF = np.finfo(np.float16)

_SMALL = Reason("small", f"of less than {_LEAST} bytes little is saved")
_OPSET = Reason("type", f"DequantizeLinear is part of opset {DEQUANTIZES} and later")
_LARGE = Reason("range", f"an element is above {_HALF.max:.0f}")
_TINY = Reason("range", f"all elements are below {_HALF.smallest_normal:.2g}")
_NOT_FINITE = Reason("range", "an element is infinite or NaN")


def stored(model: Model, how: str, seeds: Seeds | None = None) -> tuple[ModelProto, Casting]:
    """The model with its weights stored in another element type, and what that changed.

    Weights are the floats among the constants of the main graph and of bodies; those of bodies
    become initializers of the main graph. `how` is `float16`, which a Cast reverts, or `int8`,
    which a DequantizeLinear does: symmetric, with a scale for each channel of the products that
    read the weight, below opset 13 with one for all. Of the old weights, one at a time is read.
    `seeds`: the nodes whose weights stay.
    """
    return _Storing(Flow.of(model), how, seeds or Seeds()).outcome()


@dataclass(frozen=True)
class _Form:
    """A weight in its new type: the node that reverts it, and the tensors that this reads, each
    with the ending of its name."""

    node: NodeProto
    tensors: Mapping[str, Array]


@dataclass
class _Storing:
    """The outcome in the making. `gone` are the old weights, by identity; `moved` are those that a
    graph had, by the identity of the graph: by name, the names that they have in the main graph."""

    flow: Flow
    how: str
    seeds: Seeds
    new: ModelProto = field(default_factory=ModelProto)
    gone: dict[int, TensorProto] = field(default_factory=dict)
    moved: dict[int, dict[str, str]] = field(default_factory=dict)

    def outcome(self) -> tuple[ModelProto, Casting]:
        """The new model, and the report."""
        model = self.flow.model
        names, reverting = Names(model.names), []
        kept: list[tuple[Reason, Value]] = []
        total = changed = written = 0
        kinds: set[int] = set()
        copy_fields(model.proto, self.new, ("graph",))
        for value, tensor in self._weights():
            size = byte_size(tensor)
            total += size
            kinds.add(tensor.data_type)
            form = self._form(value, tensor)
            if is_external(tensor) and written + size > _MOST:
                form = Reason("file-limit")
            if isinstance(form, Reason):
                kept.append((form, value))
                continue
            for ending, array in form.tensors.items():
                form.node.input.append(names.fresh(f"{value.name}_{ending}"))
                self.new.graph.initializer.append(from_array(array, form.node.input[-1]))
                written += array.nbytes
            changed += size
            name = names.fresh(value.name) if value.graph else value.name
            form.node.output.append(name)
            reverting.append(form.node)
            self.gone[id(tensor)] = tensor
            owner = self.flow.scopes[value.graph].owner
            self.moved.setdefault(id(owner), {})[value.name] = name
        self.new.graph.node.extend(reverting)
        add_graph(model.proto.graph, self.new.graph, self._put, self._finish)
        if model.proto.ir_version < FREE_INITIALIZERS:
            scoping.list_initializers(self.new.graph)
        return self.new, Casting(
            str(numpy_dtype(min(kinds, default=TensorProto.FLOAT))),  # float32 if any weight is
            self.how,
            weights=(total, total - changed + written),
            casts=len(reverting),
            kept=grouped((why, self._path(one), self._reading(one)) for why, one in kept),
        )

    def _weights(self) -> Iterator[tuple[Value, TensorProto]]:
        """Yield the constants, and the defaults of inputs, of types that can be given back."""
        types: set[int] = {TensorProto.FLOAT}
        dequantizing = signature("DequantizeLinear", self.flow.opset)
        if self.how == "int8" and dequantizing is not None:
            types |= dequantizing.inputs[1].valid
        own = {id(one): one for one in constants(self.flow.model.proto.graph)}  # no `value_floats`
        for value in self.flow.values:
            if value.constant or self.flow.producers[value.number] is None:
                tensor = self.flow.tensor(value)
                if id(tensor) in own and tensor is not None and tensor.data_type in types:
                    yield value, tensor

    def _form(self, value: Value, tensor: TensorProto) -> _Form | Reason:
        model = self.flow.model
        if byte_size(tensor) < _LEAST:
            return _SMALL
        if not value.constant:
            return Reason("trained") if model.proto.training_info else Reason("overridable")
        for read in self.flow.readers.get(value.number, ()):
            if read.step in self.seeds.steps:
                return self.seeds.steps[read.step]
        if self.how == "float16":
            return _halved(model.read(tensor))
        if self.flow.opset < DEQUANTIZES:
            return _OPSET
        channels = self._channels(value.number, len(tensor.dims))
        if not channels:
            return Reason("no-product")
        axis = min(channels) if self.flow.opset >= DEQUANTIZES_CHANNELS else None
        return _quantized(model.read(tensor), axis)

    def _channels(self, value: int, rank: int) -> set[int]:
        """The axes that the products that read a value do not sum up; none if other nodes read it,
        too."""
        found: set[int] = set()
        for read in self.flow.readers.get(value, ()):
            step = None if read.step is None else self.flow.steps[read.step]
            axis = None if step is None else _channel(step, read.position)
            if axis is None or rank < 2:
                return set()
            found.add(axis % rank)
        return found

    def _put(self, tensor: TensorProto) -> TensorProto | None:
        """What takes the place of a tensor: nothing of a weight; the data of one that stays, if
        the file that has them holds little else that is read."""
        if id(tensor) in self.gone:
            return None
        if self._leaves_files and is_external(tensor):
            return from_array(self.flow.model.read(tensor), tensor.name)
        return tensor

    @cached_property
    def _leaves_files(self) -> bool:
        """True if what stays external is a small part: the old files need not be kept for it."""
        external = list(filter(is_external, constants(self.flow.model.proto.graph)))
        rest = sum(byte_size(one) for one in external if id(one) not in self.gone)
        return rest * _PART < sum(map(byte_size, external))

    def _finish(self, graph: GraphProto, copy: GraphProto) -> None:
        """Let a copy of a graph read its weights in the main graph. A body that returns one
        computes it by an Identity."""
        moved = self.moved.get(id(graph), {})
        replace_all(copy.input, [one for one in copy.input if one.name not in moved])
        renamed = {old: new for old, new in moved.items() if old != new}
        if not renamed:
            return
        known = [one for one in copy.value_info if one.name not in renamed]
        replace_all(copy.value_info, known)
        returned = [name for name in renamed if name in scoping.output_names(graph)]
        same = [helper.make_node("Identity", [renamed.pop(name)], [name]) for name in returned]
        replace_all(copy.node, [*same, *copy.node])
        scoping.rename_captures(copy, renamed)

    def _path(self, value: Value) -> str:
        return f"{self.flow.scopes[value.graph].path}/{value.name}"

    def _reading(self, value: Value) -> list[str]:
        """The operators that read a value."""
        reads = self.flow.readers.get(value.number, ())
        return [self.flow.steps[read.step].op for read in reads if read.step is not None]


def _channel(step: Step, position: int) -> int | None:
    """The axis of an input of a product or look-up that is not summed up; None if there is none."""
    axis = step.row.channel(position)
    if axis is None:
        return None
    transposed = position < 2 and attribute(step.node, f"trans{'AB'[position]}", 0)
    return 1 - axis if transposed else attribute(step.node, "axis", axis)


def _halved(array: Array) -> _Form | Reason:
    """The elements as float16; not those out of its range, and no whole numbers that it rounds.

    Elements below the smallest normal number lose digits, which matters only if all are so small:
    among larger ones their error is below that of these.
    """
    half = np.empty(array.shape, np.float16)
    largest, whole, same = 0.0, True, True
    for part in _parts(array):
        old, new = array[part], half[part]
        with np.errstate(over="ignore"):
            new[...] = old
        finite = np.isfinite(old)
        if not np.array_equal(finite, np.isfinite(new)):
            return _LARGE
        if not finite.all():
            old, new = old[finite], new[finite]
        sizes = np.abs(old)
        largest = max(largest, sizes.max(initial=0))
        whole = whole and np.array_equal(sizes, np.rint(sizes))
        same = same and np.array_equal(old, new)
    if whole and not same:
        return Reason("whole-numbers")
    if 0 < largest < _HALF.smallest_normal:
        return _TINY
    node = helper.make_node("Cast", [], [], to=TensorProto.FLOAT)
    return _Form(node, {"float16": half})


def _quantized(array: Array, axis: int | None) -> _Form | Reason:
    """The elements as int8 and their scales: for each index of an axis, or one for all."""
    summed = tuple(at for at in range(array.ndim) if at != axis)
    largest = np.maximum(array.max(summed, keepdims=True), -array.min(summed, keepdims=True))
    if not np.isfinite(largest).all():
        return _NOT_FINITE
    scales = (largest / 127).astype(array.dtype)
    scales[scales == 0] = 1
    if 2 * scales.nbytes > array.nbytes - array.size - scales.nbytes:
        return Reason("few-elements")
    whole = np.empty(array.shape, np.int8)
    for part in _parts(array):
        steps = array[part] / (scales[part] if axis == 0 else scales)
        whole[part] = np.clip(np.rint(steps.astype(np.float32)), -127, 127)
    node = helper.make_node("DequantizeLinear", [], [], axis=axis)
    return _Form(node, {"int8": whole, "scale": scales.reshape(() if axis is None else -1)})


def _parts(array: Array) -> Iterator[slice]:
    """Yield the parts of the first axis that are converted at once, which needs little memory."""
    rows = max(1, _BLOCK * len(array) // array.size)
    return (slice(start, start + rows) for start in range(0, len(array), rows))
