"""Steps of losses."""

from __future__ import annotations

from passes.converters.steps import expanded, identical

identical("NegativeLogLikelihoodLoss", 13, 22)
identical("SoftmaxCrossEntropyLoss", 13)
expanded("NegativeLogLikelihoodLoss", 12)
expanded("SoftmaxCrossEntropyLoss", 12)
