"""Graphs of tensorflow 1: dynamic_rnn with cells of all kinds, which tf2onnx makes Scans of."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import tensorflow as tf
from case import Case, draw
from tensorflow import Tensor
from tensorflow.python.ops import rnn
from tensorflow_models import graph

SEQUENCE = draw(51, 2, 4, 3)
LENGTHS = np.array([4, 2], np.int32)
FREE = (0, 1), (0,)
OPSETS = (8, 9, 18)
#: Where a Scan has a batch; onnx's checker objects to the constants of its body.
OLD = (8,)


def cases() -> Iterator[Case]:
    """Every graph."""
    plain, gated = _run(_plain), _run(_gated)
    yield graph("v1_cell", plain, SEQUENCE, free=FREE, opsets=OPSETS)
    yield graph("v1_gated", gated, SEQUENCE, free=FREE, opsets=OPSETS)
    for name, made in (
        ("v1_cell_ragged", plain),
        ("v1_gated_ragged", gated),
        ("v1_two_states", _run(_long_short)),
        ("v1_attending", _attending),
    ):
        yield graph(name, made, SEQUENCE, LENGTHS, free=FREE, opsets=OPSETS, rejected=OLD)
    some = (*OLD, 11, 18)
    lengths = SEQUENCE, LENGTHS
    yield graph("v1_both_ways", _both_ways, *lengths, free=FREE, opsets=some, rejected=OLD)
    yield graph("v1_while", _while, SEQUENCE[0])
    yield graph("v1_while_limit", _while_limit, SEQUENCE[0])
    yield graph("v1_array", _array, SEQUENCE[0])
    yield graph("v1_map", _map, SEQUENCE[0])
    yield graph("v1_scan", _scan, SEQUENCE[0])
    yield graph("v1_branch", _branch, SEQUENCE[0])


class Cell:
    """What dynamic_rnn asks of a cell: its sizes, a first state, a step."""

    def __init__(self, step: Callable[..., object], sizes: object) -> None:
        self.step = step
        self.state_size = sizes
        self.output_size = 2

    def zero_state(self, batch: Tensor, dtype: tf.DType) -> object:
        """Zeros of each size."""
        return tf.nest.map_structure(lambda size: tf.zeros([batch, size], dtype), self.state_size)

    def __call__(self, x: Tensor, state: object, scope: object = None) -> object:
        """An output and the next state."""
        return self.step(x, state)


def _dense(seed: int, *values: Tensor, size: int = 2) -> Tensor:
    """A layer of fixed weights over values side by side."""
    together = tf.concat(values, 1)
    weight = draw(seed, int(together.shape[1]), size)
    return together @ tf.constant(weight) + tf.constant(draw(seed + 1, size))


def _plain(x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    h = tf.tanh(_dense(60, x, h))
    return h, h


def _gated(x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """A GRU whose output is not its state."""
    update, reset = tf.split(tf.sigmoid(_dense(62, x, h, size=4)), 2, 1)
    new = tf.nn.relu(_dense(64, x, reset * h))
    h = update * h + (1 - update) * new
    return h * 2.0, h


def _long_short(x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    c, h = state
    i, f, g, o = tf.split(_dense(66, x, h, size=8), 4, 1)
    c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i) * tf.nn.elu(g)
    h = tf.sigmoid(o) * tf.tanh(c)
    return h, (c, h)


def _run(step: Callable[..., object]) -> Callable[..., object]:
    cell = Cell(step, (2, 2) if step is _long_short else 2)
    return lambda x, lengths=None: rnn.dynamic_rnn(cell, x, lengths, dtype=tf.float32)


def _both_ways(x: Tensor, lengths: Tensor) -> object:
    forward, backward = Cell(_plain, 2), Cell(_gated, 2)
    return rnn.bidirectional_dynamic_rnn(forward, backward, x, lengths, dtype=tf.float32)


def _attending(x: Tensor, lengths: Tensor) -> object:
    """Each step weighs all steps of its own row by the state."""
    keys = tf.tanh(x[:, :, :2])

    def step(now: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        weights = tf.nn.softmax(tf.reduce_sum(keys * tf.expand_dims(h, 1), 2))
        h = tf.tanh(_dense(70, now, h, tf.reduce_sum(x * tf.expand_dims(weights, 2), 1)))
        return h, h

    return rnn.dynamic_rnn(Cell(step, 2), x, lengths, dtype=tf.float32)


def _while(x: Tensor) -> object:
    return tf.while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 0.5 + 1), (0, x))[1]


def _while_limit(x: Tensor) -> object:
    return tf.while_loop(lambda x: tf.reduce_sum(x) < 20, lambda x: (x * 2 + 1,), (x,))


def _array(x: Tensor) -> object:
    rows = tf.shape(x)[0]
    source = tf.TensorArray(tf.float32, rows).unstack(x)
    found = tf.TensorArray(tf.float32, rows)

    def step(i: Tensor, h: Tensor, found: tf.TensorArray) -> object:
        h = tf.tanh(h + source.read(i))
        return i + 1, h, found.write(i, h * 2.0)

    start = tf.constant(0), tf.zeros(3), found
    _, h, found = tf.while_loop(lambda i, *_: i < rows, step, start)
    return found.stack(), h


def _map(x: Tensor) -> object:
    return tf.map_fn(lambda row: tf.nn.softmax(row), x)


def _scan(x: Tensor) -> object:
    return tf.scan(lambda total, row: tf.tanh(total + row), x, initializer=tf.zeros(3))


def _branch(x: Tensor) -> object:
    return tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2, lambda: tf.nn.softmax(x))
