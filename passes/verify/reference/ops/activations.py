"""The activation functions that RNN, GRU and LSTM may name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from passes.verify.executor import Array

Activation = Callable[[Array], Array]

#: With their defaults for alpha and beta, None where a function takes no such number.
_TABLE: dict[str, tuple[Callable[[Array, float, float], Array], float | None, float | None]] = {
    "affine": (lambda x, a, b: a * x + b, 1.0, 0.0),
    "elu": (lambda x, a, b: np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0))), 1.0, None),
    "hardsigmoid": (lambda x, a, b: np.clip(a * x + b, 0, 1), 0.2, 0.5),
    "leakyrelu": (lambda x, a, b: np.where(x >= 0, x, a * x), 0.01, None),
    "relu": (lambda x, a, b: np.maximum(x, 0), None, None),
    "scaledtanh": (lambda x, a, b: a * np.tanh(b * x), 1.0, 1.0),
    "sigmoid": (lambda x, a, b: 1 / (1 + np.exp(-x)), None, None),
    "softplus": (lambda x, a, b: np.logaddexp(x, 0), None, None),
    "softsign": (lambda x, a, b: x / (1 + np.abs(x)), None, None),
    "tanh": (lambda x, a, b: np.tanh(x), None, None),
    "thresholdedrelu": (lambda x, a, b: np.where(x > a, x, 0), 1.0, None),
}


def activations(
    names: Sequence[str], alphas: Sequence[float], betas: Sequence[float]
) -> list[Activation]:
    """The functions named, in order (operator documents RNN, GRU, LSTM; case is ignored).

    `alphas` and `betas` are handed out in order to the functions that take one. Raises
    ValueError for an unknown name.
    """
    left, right = iter(alphas), iter(betas)
    return [_one(name, left, right) for name in names]


def _one(name: str, alphas: Iterator[float], betas: Iterator[float]) -> Activation:
    if name.lower() not in _TABLE:
        raise ValueError(f"{name!r} is no activation function")
    function, alpha, beta = _TABLE[name.lower()]
    a = 0.0 if alpha is None else next(alphas, alpha)
    b = 0.0 if beta is None else next(betas, beta)
    return lambda x: np.asarray(function(x, a, b), x.dtype)
