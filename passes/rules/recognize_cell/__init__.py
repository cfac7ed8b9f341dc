"""A Scan that is an LSTM or a GRU becomes that operator."""

from __future__ import annotations
