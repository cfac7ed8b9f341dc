"""The numbers and strings that two models mention: where a model changes what it does."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, numpy_helper

from passes.ir import scope
from passes.ir.constants import constant_tensor
from passes.ir.operators import op_of

#: Constants of at most so many elements are numbers that a model compares or counts with.
_FEW_ELEMENTS = 4
#: What is drawn of both, and what is compared of the rewritten model alone.
_MOST, _MOST_SUSPECT = 32, 8
_MOST_READ = 4096


@dataclass(frozen=True)
class Mentioned:
    """Constants of both models, to draw from, and those that the rewritten model mentions, to
    compare both models on: first those that the original lacks."""

    numbers: tuple[float, ...] = ()
    strings: tuple[str, ...] = ()
    suspect_numbers: tuple[float, ...] = ()
    suspect_strings: tuple[str, ...] = ()

    @staticmethod
    def of(before: ModelProto, after: ModelProto) -> Mentioned:
        numbers = dict.fromkeys(_numbers(before)), dict.fromkeys(_numbers(after))
        strings = dict.fromkeys(_strings(before)), dict.fromkeys(_strings(after))
        new_numbers = [number for number in numbers[1] if number not in numbers[0]]
        new_strings = [string for string in strings[1] if string not in strings[0]]
        half = _MOST // 2
        return Mentioned(
            tuple(dict.fromkeys([*itertools.islice(numbers[0], half), *new_numbers, *numbers[0]]))[
                :_MOST
            ],
            tuple(dict.fromkeys([*new_strings[:half], *strings[0]]))[:_MOST],
            tuple(dict.fromkeys([*new_numbers, *numbers[1]]))[:_MOST_SUSPECT],
            tuple(dict.fromkeys([*new_strings, *strings[1]]))[:_MOST_SUSPECT],
        )


NOTHING = Mentioned()


def _numbers(model: ModelProto) -> Iterator[float]:
    tensors = (tensor for tensor in _tensors(model) if 0 < np.prod(tensor.dims) <= _FEW_ELEMENTS)
    for tensor in itertools.islice(tensors, _MOST_READ):
        values = numpy_helper.to_array(tensor)
        if values.dtype.kind not in "bcOSU":
            numbers = map(float, values.astype(np.float64).ravel())
            yield from (number for number in numbers if np.isfinite(number))


def _strings(model: ModelProto) -> Iterator[str]:
    """The strings of tensors and of attributes that list some, such as stop words."""
    for tensor in _tensors(model):
        if tensor.data_type == TensorProto.STRING:
            for item in numpy_helper.to_array(tensor).ravel()[:_MOST]:
                yield item.decode("utf-8", "replace") if isinstance(item, bytes) else str(item)
    for node in _nodes(model):
        for attribute in node.attribute:
            if attribute.type == AttributeProto.STRINGS:
                yield from (item.decode("utf-8", "replace") for item in attribute.strings[:_MOST])


def _tensors(model: ModelProto) -> Iterator[TensorProto]:
    """Initializers and tensors of Constants, at any depth, that the model holds itself."""
    for graph in _graphs(model):
        held = list(graph.initializer) if isinstance(graph, GraphProto) else []
        constants = (constant_tensor(node) for node in graph.node if op_of(node) == "Constant")
        for tensor in (*held, *constants):
            if tensor is not None and tensor.data_location != TensorProto.EXTERNAL:
                yield tensor


def _nodes(model: ModelProto) -> Iterator[NodeProto]:
    for graph in _graphs(model):
        yield from graph.node


def _graphs(model: ModelProto) -> Iterator[scope.Owner]:
    for _, top in scope.owners(model):
        yield from scope.graphs_below(top)
