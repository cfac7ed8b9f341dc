"""Steps of ops that draw random numbers."""

from __future__ import annotations

from converters.steps import identical

for _op in (
    "Bernoulli",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
):
    identical(_op, 22)
