"""Models of tensorflow by way of tf2onnx: loops and branches of functions, layers, old graphs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from case import Case
from onnx import ModelProto

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import tensorflow as tf
import tf2onnx

OPSETS = (9, 13, 18)
Free = Sequence[Sequence[int]]


def cases() -> Iterator[Case]:
    """Every tensorflow model."""
    from tensorflow_functions import FUNCTIONS
    from tensorflow_graphs import cases as graphs
    from tensorflow_layers import cases as layers

    for name, (made, inputs, free, opsets) in FUNCTIONS.items():
        yield function(name, made, *inputs, free=free, opsets=opsets)
    yield from layers()
    yield from graphs()


def function(
    name: str,
    made: Callable[..., object],
    *inputs: np.ndarray,
    free: Free = ((0,),),
    opsets: Sequence[int] = OPSETS,
) -> Case:
    """A function that tensorflow traces; `free` are the dynamic axes of each input."""
    kinds = [
        tf.TensorSpec(_shape(value, axes), value.dtype, name=f"x{number}")
        for number, (value, axes) in enumerate(zip(inputs, _filled(free, inputs), strict=True))
    ]
    traced = tf.function(made, input_signature=kinds)
    outputs = [value.numpy() for value in tf.nest.flatten(traced(*map(tf.constant, inputs)))]

    def export(opset: int) -> ModelProto:
        tf2onnx.utils.INTERNAL_NAME = 1
        model, _ = tf2onnx.convert.from_function(traced, kinds, opset=opset)
        return model

    return Case(name, export, inputs, outputs, opsets)


def graph(
    name: str,
    made: Callable[..., object],
    *inputs: np.ndarray,
    free: Free = ((0,),),
    opsets: Sequence[int] = OPSETS,
    rejected: Sequence[int] = (),
) -> Case:
    """A graph as tensorflow 1 made it, of Enter, Switch, Merge, ...: tf2onnx finds its Scans."""
    tf.compat.v1.disable_control_flow_v2()
    with tf.Graph().as_default() as drawn:
        places = [
            tf.compat.v1.placeholder(value.dtype, _shape(value, axes), f"x{number}")
            for number, (value, axes) in enumerate(zip(inputs, _filled(free, inputs), strict=True))
        ]
        found = tf.nest.flatten(made(*places))
        ends = [tf.identity(value, f"y{number}") for number, value in enumerate(found)]
        with tf.compat.v1.Session() as session:
            outputs = session.run(ends, dict(zip(places, inputs, strict=True)))
    tf.compat.v1.enable_control_flow_v2()
    names = [place.name for place in places], [end.name for end in ends]

    def export(opset: int) -> ModelProto:
        tf2onnx.utils.INTERNAL_NAME = 1
        model, _ = tf2onnx.convert.from_graph_def(drawn.as_graph_def(), None, *names, opset=opset)
        return model

    return Case(name, export, inputs, outputs, opsets, rejected)


def _filled(free: Free, inputs: Sequence[np.ndarray]) -> list[Sequence[int]]:
    return [*free, *[()] * len(inputs)][: len(inputs)]


def _shape(value: np.ndarray, free: Sequence[int]) -> list[int | None]:
    return [None if axis in free else size for axis, size in enumerate(value.shape)]
