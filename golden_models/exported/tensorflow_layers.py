"""Recurrent layers of keras: those that tf2onnx knows become LSTM or GRU, the others a Loop."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import tensorflow as tf
from case import Case, draw
from tensorflow import Tensor
from tensorflow_models import function

keras = tf.keras
layers = keras.layers
SEQUENCE = draw(51, 2, 4, 3)
#: The second row ends after two steps.
PADDED = SEQUENCE * np.array([[1, 1, 1, 1], [1, 1, 0, 0]], np.float32)[:, :, None]
OPSETS = (9, 13, 18)
#: At opset 9 nothing reverses an axis of unknown length, and masks come out wrong.
NEW = (11, 18)


def cases() -> Iterator[Case]:
    """Every layer."""
    both: dict[str, bool] = {"return_sequences": True, "return_state": True}
    yield _layer("keras_lstm", layers.LSTM(2, **both))
    yield _layer("keras_lstm_relu", layers.LSTM(2, activation="relu", **both))
    yield _layer("keras_lstm_backwards", layers.LSTM(2, go_backwards=True), opsets=NEW)
    yield _layer("keras_gru", layers.GRU(2, **both))
    yield _layer("keras_gru_reset_first", layers.GRU(2, reset_after=False, **both))
    yield _layer("keras_rnn", layers.SimpleRNN(2, **both))
    yield _layer("keras_both_ways", layers.Bidirectional(layers.LSTM(2, **both)))
    stacked = layers.RNN([layers.LSTMCell(2), layers.GRUCell(2)], return_sequences=True)
    yield _layer("keras_stacked", stacked)
    yield _layer("keras_own_cell", layers.RNN(OwnCell(), **both))
    yield _masked("keras_lstm_masked", layers.LSTM(2, **both))
    yield _masked("keras_gru_masked", layers.GRU(2, **both))
    yield _masked("keras_rnn_masked", layers.SimpleRNN(2, **both))
    yield _masked("keras_own_cell_masked", layers.RNN(OwnCell(), **both))
    images = draw(54, 1, 3, 4, 4, 1)
    convolved = layers.ConvLSTM2D(2, 3, padding="same", return_sequences=True)
    yield _layer("keras_convolved", convolved, images, free=(1,))


class OwnCell(layers.Layer):
    """A cell of two gates and one counter; nobody knows it."""

    def __init__(self) -> None:
        super().__init__()
        self.state_size = (2, 1)
        self.output_size = 2
        self.mix = layers.Dense(2)
        self.gate = layers.Dense(2)

    def build(self, shape: tuple[int | None, ...]) -> None:
        """Weights of both layers."""
        wide = (None, shape[-1] + 2)
        self.mix.build(wide)
        self.gate.build(wide)

    def call(self, x: Tensor, states: tuple[Tensor, Tensor]) -> object:
        """The state is mixed anew, less so as time goes on."""
        h, age = states
        together = tf.concat([x, h], 1)
        new = tf.tanh(self.mix(together)) / (1.0 + age)
        gate = tf.sigmoid(self.gate(together))
        h = gate * h + (1.0 - gate) * new
        return h, (h, age + 1.0)


def _layer(
    name: str,
    layer: layers.Layer,
    inputs: np.ndarray = SEQUENCE,
    free: tuple[int, ...] = (0, 1),
    opsets: tuple[int, ...] = OPSETS,
) -> Case:
    _weigh(layer, inputs)
    return function(name, layer, inputs, free=(free,), opsets=opsets)


def _masked(name: str, layer: layers.Layer) -> Case:
    """Steps of zeros are skipped."""
    _weigh(layer, PADDED)

    def call(x: Tensor) -> object:
        return layer(x, mask=tf.reduce_any(x != 0.0, axis=-1))

    return function(name, call, PADDED, free=((0, 1),), opsets=NEW)


def _weigh(layer: layers.Layer, inputs: np.ndarray) -> None:
    layer(inputs)
    weights = enumerate(layer.get_weights())
    layer.set_weights([draw(80 + seed, *value.shape) for seed, value in weights])
