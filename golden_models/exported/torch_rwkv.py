"""The time mixing of RWKV-5 and RWKV-6 by torch's TorchScript exporter, with random weights: one
state for each head, a matrix, updated by a scripted loop over the tokens."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from case import Case
from torch import Tensor, nn
from torch_models import scripted, tensor

HEADS, WIDE = 2, 4
OPSETS = (11,)


def cases() -> Iterator[Case]:
    """One model of each version."""
    inputs = tensor(40, 2, 5, HEADS * WIDE), tensor(41, 2, HEADS, WIDE, WIDE)
    free = ((0, 1), (0,))
    for version in (5, 6):
        torch.manual_seed(version)
        mixing = TimeMixing(decays=version == 6)
        yield scripted(f"rwkv{version}", mixing, *inputs, opsets=OPSETS, free=free)


class TimeMixing(nn.Module):
    """`decays`: how fast a state decays depends on the token, as in version 6."""

    def __init__(self, *, decays: bool) -> None:
        super().__init__()
        size = HEADS * WIDE
        self.decays = decays
        self.mix = nn.Parameter(torch.rand(4, size))
        self.decay = nn.Parameter(torch.randn(HEADS, WIDE))
        self.bonus = nn.Parameter(torch.randn(HEADS, WIDE) / 4)
        self.receptance = nn.Linear(size, size, bias=False)
        self.key = nn.Linear(size, size, bias=False)
        self.value = nn.Linear(size, size, bias=False)
        self.rate = nn.Linear(size, size, bias=False)
        self.norm = nn.GroupNorm(HEADS, size)
        self.out = nn.Linear(size, size, bias=False)

    def forward(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """`x` [batch, time, size], `state` [batch, heads, wide, wide]: both, one step further."""
        batch, time, size = x.shape
        before = torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], 1)
        mixed = [x * share + before * (1 - share) for share in self.mix]
        layers = (self.receptance, self.key, self.value, self.rate)
        heads = [
            layer(one).view(batch, time, HEADS, WIDE)
            for layer, one in zip(layers, mixed, strict=True)
        ]
        receptance, key, value, rate = heads
        if self.decays:
            decay = torch.exp(-torch.exp(rate + self.decay))
            found, state = attend_6(receptance, key, value, decay, self.bonus, state)
        else:
            decay = torch.exp(-torch.exp(self.decay))
            found, state = attend_5(receptance, key, value, decay, self.bonus, state)
        rows = self.norm(found.reshape(batch * time, size)).view(batch, time, size)
        return self.out(rows), state


@torch.jit.script
def attend_5(
    receptance: Tensor, key: Tensor, value: Tensor, decay: Tensor, bonus: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    found = []
    for step in range(key.size(1)):
        pairs = key[:, step].unsqueeze(-1) @ value[:, step].unsqueeze(-2)
        read = bonus.unsqueeze(-1) * pairs + state
        found.append((receptance[:, step].unsqueeze(-2) @ read).squeeze(-2))
        state = state * decay.unsqueeze(-1) + pairs
    return torch.stack(found, 1), state


@torch.jit.script
def attend_6(
    receptance: Tensor, key: Tensor, value: Tensor, decay: Tensor, bonus: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    found = torch.zeros_like(value)
    for step in range(key.size(1)):
        pairs = key[:, step].unsqueeze(-1) * value[:, step].unsqueeze(-2)
        read = receptance[:, step].unsqueeze(-1) * (bonus.unsqueeze(-1) * pairs + state)
        found[:, step] = read.sum(-2)
        state = state * decay[:, step].unsqueeze(-1) + pairs
    return found, state
