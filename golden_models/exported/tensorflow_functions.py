"""Functions for tf.function, each with a loop or a branch that stays one in ONNX."""

# ruff: noqa: SIM108 - tensorflow reads this text: it is to see every way of writing it
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf
from case import draw
from tensorflow import Tensor

Function = Callable[..., object]
#: Opset 9 has no Slice whose ends an iteration gives.
NEW = (11, 18)
Told = tuple[Function, Sequence[np.ndarray], Sequence[Sequence[int]], Sequence[int]]
#: Every function by name, with its inputs, their dynamic axes and the opsets.
FUNCTIONS: dict[str, Told] = {}
TABLE = draw(50, 4, 3)
SEQUENCE = draw(51, 4, 2, 3)
WEIGHTS = draw(52, 3, 8), draw(53, 2, 8)
COUNT = np.array(3, np.int32)
LIMIT = np.array(20, np.float32)


def case(
    *inputs: np.ndarray,
    table: np.ndarray = TABLE,
    free: Sequence[Sequence[int]] = ((0,),),
    opsets: Sequence[int] = (9, 13, 18),
) -> Callable[[Function], Function]:
    """Keep a function with the table and these inputs."""

    def keep(function: Function) -> Function:
        FUNCTIONS[function.__name__] = function, (table, *inputs), free, opsets
        return function

    return keep


@case()
def while_counted(x: Tensor) -> Tensor:
    """A while that counts."""
    return tf.while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 0.5 + 1), (0, x))[1]


@case()
def while_at_most(x: Tensor) -> Tensor:
    """A while of a fixed most trips, which all of them are run."""
    start = (0, x)
    return tf.while_loop(
        lambda i, x: True, lambda i, x: (i + 1, x * 0.5), start, maximum_iterations=4
    )


@case(LIMIT)
def while_limit(x: Tensor, limit: Tensor) -> Tensor:
    """A while that depends on the data."""
    return tf.while_loop(lambda x: tf.reduce_sum(x) < limit, lambda x: (x * 2 + 1,), (x,))[0]


@case(LIMIT, COUNT)
def while_limit_at_most(x: Tensor, limit: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """A while that data may end early."""
    return tf.while_loop(
        lambda i, x: tf.reduce_max(x) < limit,
        lambda i, x: (i + 1, x * 1.5 + 1),
        (0, x),
        maximum_iterations=count,
    )


@case(COUNT)
def for_given(x: Tensor, n: Tensor) -> Tensor:
    """A loop whose length is an input."""
    for i in tf.range(n):
        x = x * 0.5 + tf.cast(i, tf.float32)
    return x


@case()
def for_rows(x: Tensor) -> Tensor:
    """A loop over the rows, added up."""
    total = tf.zeros(3)
    for row in x:
        total = total * 0.5 + row
    return total


@case(opsets=NEW)
def for_step(x: Tensor) -> Tensor:
    """Every other row, from the second."""
    total = tf.zeros(3)
    for i in tf.range(1, tf.shape(x)[0], 2):
        total += x[i]
    return total


@case(opsets=NEW)
def reversed_read(x: Tensor) -> Tensor:
    """Rows read from the last to the first."""
    h = tf.zeros(3)
    for i in tf.range(tf.shape(x)[0] - 1, -1, -1):
        h = tf.tanh(h + x[i])
    return h


@case(opsets=NEW)
def neighbours(x: Tensor) -> Tensor:
    """Two rows read in each iteration."""
    total = tf.zeros(3)
    for i in tf.range(tf.shape(x)[0] - 1):
        total += x[i] * x[i + 1]
    return total


@case(np.array(0.2, np.float32), opsets=NEW)
def break_early(x: Tensor, limit: Tensor) -> Tensor:
    """A for that a value may end."""
    total = tf.zeros(3)
    for i in tf.range(tf.shape(x)[0]):
        total += x[i]
        if tf.reduce_sum(total) > limit:
            break
    return total


@case()
def continued(x: Tensor) -> Tensor:
    """A for that skips some rows."""
    total = tf.zeros(3)
    for row in x:
        if tf.reduce_sum(row) < 0.0:
            continue
        total += row
    return total


@case(opsets=NEW)
def nested(x: Tensor) -> Tensor:
    """A loop in a loop."""
    total = tf.zeros([])
    for i in tf.range(tf.shape(x)[0]):
        for j in tf.range(tf.shape(x)[1]):
            total += x[i, j] * tf.cast(i - j, tf.float32)
    return total


@case(LIMIT)
def nested_whiles(x: Tensor, limit: Tensor) -> tuple[Tensor, Tensor]:
    """A while over data in a counted one."""
    steps = tf.constant(0)
    for _ in tf.range(3):
        while tf.reduce_sum(x) < limit:
            x = x * 2.0 + 1.0
            steps += 1
        x = x * 0.25
    return x, steps


@case()
def mapped(x: Tensor) -> Tensor:
    """A function of each row."""
    return tf.map_fn(lambda row: tf.nn.softmax(row) * 2.0, x)


@case(COUNT[None] + np.arange(4, dtype=np.int32), free=((0,), (0,)))
def mapped_pairs(x: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
    """Two inputs, and two outputs of other types."""
    kinds = tf.TensorSpec([3], tf.float32), tf.TensorSpec([], tf.int32)
    return tf.map_fn(
        lambda pair: (pair[0] * tf.cast(pair[1], tf.float32), pair[1] * 2),
        (x, n),
        fn_output_signature=kinds,
    )


@case(table=SEQUENCE, free=((0, 1),), opsets=NEW)
def mapped_twice(x: Tensor) -> Tensor:
    """A map in a map."""
    return tf.map_fn(lambda rows: tf.map_fn(lambda row: tf.cumsum(row) + 1.0, rows), x)


@case()
def folded(x: Tensor) -> Tensor:
    """A fold from the first row."""
    return tf.foldl(lambda total, row: total * 0.5 + row, x)


@case()
def folded_from_right(x: Tensor) -> Tensor:
    """A fold from the last row, and a given start."""
    return tf.foldr(lambda total, row: tf.tanh(total + row), x, initializer=tf.ones(3))


@case()
def scanned(x: Tensor) -> Tensor:
    """Every state of a fold."""
    return tf.scan(lambda total, row: tf.tanh(total * 0.5 + row), x, initializer=tf.zeros(3))


@case()
def scanned_pair(x: Tensor) -> tuple[Tensor, Tensor]:
    """Two states, both collected."""
    return tf.scan(
        lambda state, row: (state[0] + row, state[1] * 0.5 + tf.reduce_sum(row)),
        x,
        initializer=(tf.zeros(3), tf.zeros([])),
    )


@case(opsets=NEW)
def array_filled(x: Tensor) -> Tensor:
    """A TensorArray that is filled row by row."""
    rows = tf.shape(x)[0]
    found = tf.TensorArray(tf.float32, rows)
    for i in tf.range(rows):
        found = found.write(i, x[i] * 2.0 + tf.cast(i, tf.float32))
    return found.stack()


@case(opsets=NEW)
def array_joined(x: Tensor) -> Tensor:
    """A TensorArray of pairs of rows, joined."""
    rows = tf.shape(x)[0]
    found = tf.TensorArray(tf.float32, rows, element_shape=[2, 3])
    for i in tf.range(rows):
        found = found.write(i, tf.stack([x[i], -x[i]]))
    return tf.reshape(found.stack(), [-1, 3])


@case(opsets=NEW)
def grown(x: Tensor) -> Tensor:
    """A carried value that gets longer."""
    out = x[:1]
    for i in tf.range(tf.shape(x)[0]):
        tf.autograph.experimental.set_loop_options(
            shape_invariants=[(out, tf.TensorShape([None, 3]))]
        )
        out = tf.concat([out, out[-1:] + x[i : i + 1]], 0)
    return out


@case(opsets=NEW)
def buffer_filled(x: Tensor) -> Tensor:
    """A buffer that is updated row by row."""
    out = tf.zeros_like(x)
    for i in tf.range(tf.shape(x)[0]):
        out = tf.tensor_scatter_nd_update(out, [[i]], [x[i] * 2.0])
    return out


@case()
def branch(x: Tensor) -> Tensor:
    """A branch."""
    return tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2, lambda: tf.nn.softmax(x))


@case()
def branches(x: Tensor) -> Tensor:
    """Branches in branches."""
    if tf.reduce_sum(x) > 0.0:
        if tf.reduce_max(x) > 1.0:
            y = x * 2.0
        else:
            y = x + 1.0
    else:
        y = -x
    return y


@case(np.array(2, np.int32))
def chosen(x: Tensor, kind: Tensor) -> Tensor:
    """The first of several branches whose condition holds."""
    pairs = [(kind < 1, lambda: x + 1.0), (kind < 3, lambda: tf.nn.softmax(x))]
    return tf.case(pairs, default=lambda: x * x)


@case()
def branch_in_loop(x: Tensor) -> Tensor:
    """A branch in each iteration."""
    h = tf.zeros(3)
    for row in x:
        if tf.reduce_sum(h) < 0.0:
            h = h - row
        else:
            h = h * 0.5 + row
    return h


@case(COUNT)
def loop_in_branch(x: Tensor, n: Tensor) -> Tensor:
    """A loop that is only there on one side of a branch."""
    if tf.reduce_sum(x) > -100.0:
        for _ in tf.range(n):
            x = x * 0.5
    return x


@case(*WEIGHTS, table=SEQUENCE, free=((0, 1),))
def recurrence(x: Tensor, w: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    """A plain cell written out by hand; its states are collected."""
    time = tf.shape(x)[0]
    found = tf.TensorArray(tf.float32, time)
    h = tf.zeros([tf.shape(x)[1], 2])
    for t in tf.range(time):
        h = tf.tanh(tf.gather(x, t) @ w[:, :2] + h @ u[:, :2])
        found = found.write(t, h)
    return found.stack(), h


@case(*WEIGHTS, table=SEQUENCE, free=((0, 1),), opsets=NEW)
def cell(x: Tensor, w: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    """An LSTM written out by hand."""
    time = tf.shape(x)[0]
    found = tf.TensorArray(tf.float32, time)
    h = tf.zeros([tf.shape(x)[1], 2])
    c = tf.zeros([tf.shape(x)[1], 2])
    for t in tf.range(time):
        i, f, g, o = tf.split(x[t] @ w + h @ u, 4, 1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
        found = found.write(t, h)
    return found.stack(), c


@case(np.array([4, 2], np.int32), *WEIGHTS, table=SEQUENCE, free=((0, 1), (0,)), opsets=NEW)
def ragged(x: Tensor, lengths: Tensor, w: Tensor, u: Tensor) -> Tensor:
    """Rows of other lengths: what has ended keeps its state."""
    h = tf.zeros([tf.shape(x)[1], 2])
    for t in tf.range(tf.shape(x)[0]):
        new = tf.tanh(x[t] @ w[:, :2] + h @ u[:, :2])
        h = tf.where((t < lengths)[:, None], new, h)
    return h


@case()
def attended(x: Tensor) -> Tensor:
    """Every step weighs all rows by the state."""
    h = tf.reduce_mean(x, 0)
    for row in x:
        weights = tf.nn.softmax(tf.linalg.matvec(x, h))
        h = tf.tanh(row + tf.linalg.matvec(x, weights, transpose_a=True))
    return h


@case(np.array([0, 1], np.int32), free=((0,), (0,)))
def decoded(x: Tensor, first: Tensor) -> Tensor:
    """The largest entry of a step says which row the next one reads."""
    found = tf.TensorArray(tf.int32, 5)
    token, h = first, tf.zeros([tf.shape(first)[0], 3])
    for step in tf.range(5):
        h = tf.tanh(tf.gather(x, token) + h)
        token = tf.argmax(h @ tf.transpose(x), 1, tf.int32)
        found = found.write(step, token)
    return tf.transpose(found.stack())


@case(table=abs(TABLE[0]) + 1.0)
def rooted(x: Tensor) -> tuple[Tensor, Tensor]:
    """Newton's method until it is near."""
    return tf.while_loop(
        lambda y, i: tf.reduce_max(abs(y * y - x)) > 1e-3,
        lambda y, i: (0.5 * (y + x / y), i + 1),
        (x, 0),
        maximum_iterations=50,
    )


@case(COUNT * 9)
def collatz(x: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
    """Whole numbers that go up and down."""
    steps = tf.constant(0)
    while n > 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return x * tf.cast(steps, tf.float32), n
