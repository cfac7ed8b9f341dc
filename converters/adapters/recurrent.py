"""Steps of GRU, LSTM and RNN."""

from __future__ import annotations

from converters.steps import identical

for _op in ("GRU", "LSTM", "RNN"):
    identical(_op, 14, because="layout is new, and 0, time first, is what version 7 does")
    identical(_op, 22)
