"""The rule that writes RNN, GRU and LSTM in plain operators."""

from __future__ import annotations
