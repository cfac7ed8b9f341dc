"""Recurrences that torch's exporters write out, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from case import Case
from torch import Tensor, nn
from torch.nn import functional
from torch_loops import operator
from torch_models import scripted, tensor

STEPS, WIDE, STATES = 4, 4, 3
OPSETS = (13,)


def cases() -> Iterator[Case]:
    """A cell with any batch, two cells in a row, a selective scan; cells whose first states, zeros,
    are folded into the first step."""
    x, state = tensor(70, 2, STEPS, WIDE), tensor(71, 2, WIDE)
    torch.manual_seed(0)
    batch = [(0,), (0,), (0,)]
    yield scripted(
        "traced_lstm_cell", Cell(), x, state, state * 2, opsets=OPSETS, free=batch, called="B"
    )
    yield scripted("traced_two_cells", TwoCells(), x, state, opsets=OPSETS, free=())
    yield scripted("traced_selective_scan", SelectiveScan(), x, opsets=OPSETS, free=())
    yield scripted("traced_liquid_cell", LiquidCell(), x, opsets=OPSETS, free=())
    yield scripted("traced_slstm", SLSTM(), x, opsets=OPSETS, free=())
    made = operator(lstm_from_zeros, x, layers=[nn.LSTMCell(WIDE, WIDE)])
    yield replace(made, name="traced_lstm_from_zeros")


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


def lstm_from_zeros(cell: nn.LSTMCell, x: Tensor) -> Tensor:
    """The states of a cell over the steps, from zeros."""
    h, c, rows = torch.zeros(2, WIDE), torch.zeros(2, WIDE), []
    for step in range(STEPS):
        h, c = cell(x[:, step], (h, c))
        rows.append(h)
    return torch.stack(rows, 1)


class LiquidCell(nn.Module):
    """A liquid time-constant cell (Hasani et al.), whose equation is solved in two substeps."""

    def __init__(self) -> None:
        super().__init__()
        self.leak, self.rest, self.capacity = (nn.Parameter(torch.rand(WIDE)) for _ in range(3))
        self.inner = nn.ParameterList([torch.rand(WIDE, WIDE) for _ in range(4)])
        self.outer = nn.ParameterList([torch.rand(WIDE, WIDE) for _ in range(4)])

    def forward(self, x: Tensor) -> Tensor:
        """The potentials of all steps."""
        capacity, leak = functional.softplus(self.capacity) * 2, functional.softplus(self.leak)
        potential, rows = torch.zeros(2, WIDE), []
        for step in range(STEPS):
            driven, conducted = _synapses(x[:, step], self.outer)
            for _ in range(2):
                current, conductance = _synapses(potential, self.inner)
                total = capacity * potential + leak * self.rest + current + driven
                potential = total / (capacity + leak + conductance + conducted)
            rows.append(potential)
        return torch.stack(rows, 1)


def _synapses(source: Tensor, parameters: nn.ParameterList) -> tuple[Tensor, Tensor]:
    """The current that flows into each neuron, and its conductance."""
    weight, middle, slope, reversal = parameters
    opened = functional.softplus(weight) * torch.sigmoid(slope * (source.unsqueeze(-1) - middle))
    return (opened * reversal).sum(1), opened.sum(1)


class SLSTM(nn.Module):
    """The sLSTM of xLSTM (Beck et al.): exponential gates, with a maximum and a sum as states."""

    def __init__(self) -> None:
        super().__init__()
        self.input = nn.Linear(WIDE, 4 * WIDE)
        self.state = nn.Linear(WIDE, 4 * WIDE, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """The states of all steps."""
        c, n, h, most = (torch.zeros(2, WIDE) for _ in range(4))
        rows = []
        for step in range(STEPS):
            z, i, f, o = (self.input(x[:, step]) + self.state(h)).chunk(4, -1)
            kept = functional.logsigmoid(f) + most
            most = torch.maximum(kept, i)
            i, f = torch.exp(i - most), torch.exp(kept - most)
            c, n = f * c + i * torch.tanh(z), f * n + i
            h = torch.sigmoid(o) * c / n
            rows.append(h)
        return torch.stack(rows, 1)
