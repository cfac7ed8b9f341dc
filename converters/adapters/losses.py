"""Steps of losses."""

from __future__ import annotations

from converters.steps import identical

identical("NegativeLogLikelihoodLoss", 13, 22)
identical("SoftmaxCrossEntropyLoss", 13)
