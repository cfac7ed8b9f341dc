"""Recurrences that tracing writes out, step by step, by torch's TorchScript exporter."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from case import Case
from torch import Tensor, nn
from torch.nn import functional
from torch_models import scripted, tensor

STEPS, WIDE, STATES = 4, 4, 3
OPSETS = (13,)


def cases() -> Iterator[Case]:
    """A cell with any batch, two cells in a row, a selective scan."""
    x, state = tensor(70, 2, STEPS, WIDE), tensor(71, 2, WIDE)
    torch.manual_seed(0)
    batch = [(0,), (0,), (0,)]
    yield scripted(
        "traced_lstm_cell", Cell(), x, state, state * 2, opsets=OPSETS, free=batch, called="B"
    )
    yield scripted("traced_two_cells", TwoCells(), x, state, opsets=OPSETS, free=())
    yield scripted("traced_selective_scan", SelectiveScan(), x, opsets=OPSETS, free=())


class Cell(nn.Module):
    """An LSTM cell over the steps, and a layer for what it gives in each."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(WIDE, WIDE)
        self.out = nn.Linear(WIDE, 3)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The rows, and the last states."""
        rows = []
        for step in range(STEPS):
            h, c = self.cell(x[:, step], (h, c))
            rows.append(self.out(h))
        return torch.stack(rows, 1), h, c


class TwoCells(nn.Module):
    """A GRU cell that reads the states of another one, which reads the steps last first."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.GRUCell(WIDE, WIDE), nn.GRUCell(WIDE, WIDE)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        """The states of the second cell, beside each other."""
        other, rows = h, []
        for step in reversed(range(STEPS)):
            h = self.first(x[:, step], h)
            other = self.second(h, other)
            rows.append(other)
        return torch.cat(rows, 1)


class SelectiveScan(nn.Module):
    """Mamba from a state of zeros: decays, inputs and outputs are computed of all steps before."""

    def __init__(self) -> None:
        super().__init__()
        self.pairs = nn.Linear(WIDE, 1 + 2 * STATES)
        self.logs = nn.Parameter(torch.rand(WIDE, STATES))

    def forward(self, x: Tensor) -> Tensor:
        """The outputs of all steps."""
        steps, keys, reads = self.pairs(x).split([1, STATES, STATES], -1)
        steps = functional.softplus(steps).unsqueeze(-1)
        decays = torch.exp(-steps * self.logs)
        added = steps * keys.unsqueeze(2) * x.unsqueeze(-1)
        state, rows = torch.zeros(2, WIDE, STATES), []
        for step in range(STEPS):
            state = decays[:, step] * state + added[:, step]
            rows.append(torch.einsum("bdn,bn->bd", state, reads[:, step]))
        return torch.stack(rows, 1)
