"""Linear recurrences of published architectures, scripted loops over the tokens, by torch's
TorchScript exporter: each written from the formulas of its paper, in the ways that people write
them (einsum, matmul, products that are summed; lists that are stacked, buffers that are filled)."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from case import Case
from torch import Tensor, nn
from torch.nn import functional
from torch_models import scripted, tensor

TIME, HEADS, WIDE, STATES = 40, 2, 8, 8
OPSETS = (13,)


def cases() -> Iterator[Case]:
    """One model of each architecture."""
    row, head = (1, TIME, WIDE), (1, TIME, HEADS, WIDE)
    x, state = tensor(50, *row), tensor(51, 1, WIDE)
    q, k, v, g = (tensor(number, *head) for number in range(52, 56))
    scores, gates = tensor(56, 1, TIME, HEADS), tensor(57, 1, TIME, HEADS)
    matrix = tensor(58, 1, HEADS, WIDE, WIDE)
    torch.manual_seed(0)
    yield _case("mamba1", SelectiveScan(), x)
    yield _case("mamba2", StateSpaceDual(), v, scores, tensor(59, *row), tensor(60, *row), matrix)
    yield _case("gated_linear_attention", gated_linear_attention, q, k, v, g, matrix)
    yield _case("retnet", Retention(), q, k, v)
    yield _case("delta_net", delta_net, q, k, v, scores, matrix)
    yield _case("gated_delta_net", GatedDelta(), q, k, v, scores, gates)
    yield _case("min_gru", MinGru(), x, state)
    yield _case("min_lstm", MinLstm(), x, state)
    yield _case("hgrn", Hgrn(), x)
    yield _case("hgrn2", hgrn2, q, g, v)
    yield _case("lru", Lru(), x)
    yield _case("s4d", Diagonal(), x)
    yield _case("mlstm", mlstm, q, k, v, scores, gates)
    yield _case("moving_average", moving_average, x, tensor(61, WIDE))
    yield _case("normalised_linear_attention", normalised_linear_attention, q, k, v)


def _case(name: str, model: object, *inputs: Tensor) -> Case:
    """Any number of tokens, in what has tokens."""
    free = [(1,) if x.dim() > 2 and x.size(1) == TIME else () for x in inputs]
    return scripted(f"recurrence_{name}", model, *inputs, opsets=OPSETS, free=free, called="T")


class SelectiveScan(nn.Module):
    """Mamba: steps, inputs and outputs of the states depend on the token."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = nn.Linear(WIDE, WIDE)
        self.pairs = nn.Linear(WIDE, 2 * STATES, bias=False)
        self.logs = nn.Parameter(torch.arange(1.0, STATES + 1).log().repeat(WIDE, 1))
        self.skip = nn.Parameter(torch.ones(WIDE))

    def forward(self, x: Tensor) -> Tensor:
        """`x` [batch, time, wide]."""
        steps = functional.softplus(self.steps(x))
        write, read = self.pairs(x).chunk(2, -1)
        return selective_scan(x, steps, -torch.exp(self.logs), write, read) + self.skip * x


@torch.jit.script
def selective_scan(x: Tensor, steps: Tensor, rates: Tensor, write: Tensor, read: Tensor) -> Tensor:
    decay = torch.exp(torch.einsum("btd,dn->btdn", steps, rates))
    added = torch.einsum("btd,btn,btd->btdn", steps, write, x)
    state = torch.zeros_like(added[:, 0])
    found = []
    for t in range(x.size(1)):
        state = decay[:, t] * state + added[:, t]
        found.append(torch.einsum("bdn,bn->bd", state, read[:, t]))
    return torch.stack(found, 1)


class StateSpaceDual(nn.Module):
    """Mamba-2: one decay a head, and what is read and written is shared by the heads."""

    def __init__(self) -> None:
        super().__init__()
        self.logs = nn.Parameter(torch.arange(1.0, HEADS + 1).log())
        self.bias = nn.Parameter(torch.rand(HEADS) - 2)
        self.skip = nn.Parameter(torch.ones(HEADS, 1))

    def forward(
        self, x: Tensor, steps: Tensor, write: Tensor, read: Tensor, state: Tensor
    ) -> tuple[Tensor, Tensor]:
        """`x` [batch, time, heads, wide], `steps` [batch, time, heads]."""
        steps = functional.softplus(steps + self.bias)
        found, state = state_space(x, steps, -torch.exp(self.logs), write, read, state)
        return found + self.skip * x, state


@torch.jit.script
def state_space(
    x: Tensor, steps: Tensor, rates: Tensor, write: Tensor, read: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    found = []
    for t in range(x.size(1)):
        decay = torch.exp(steps[:, t] * rates)
        added = torch.einsum("bh,bhp,bn->bhpn", steps[:, t], x[:, t], write[:, t])
        state = state * decay[:, :, None, None] + added
        found.append(torch.einsum("bhpn,bn->bhp", state, read[:, t]))
    return torch.stack(found, 1), state


@torch.jit.script
def gated_linear_attention(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    found = torch.zeros_like(v)
    logs = torch.nn.functional.logsigmoid(g) / 16
    q = q * q.size(-1) ** -0.5
    for t in range(q.size(1)):
        added = k[:, t].unsqueeze(-1) * v[:, t].unsqueeze(-2)
        state = state * logs[:, t].exp().unsqueeze(-1) + added
        found[:, t] = (q[:, t].unsqueeze(-1) * state).sum(-2)
    return found, state


class Retention(nn.Module):
    """RetNet: a constant decay for each head."""

    def __init__(self) -> None:
        super().__init__()
        self.decay = nn.Parameter(1 - 2 ** (-5 - torch.arange(HEADS, dtype=torch.float32)))
        self.norm = nn.GroupNorm(HEADS, HEADS * WIDE, affine=False)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """[batch, time, heads, wide] each."""
        found = retention(q, k, v, self.decay.view(1, HEADS, 1, 1))
        return self.norm(found.reshape(-1, HEADS * WIDE)).view(found.shape)


@torch.jit.script
def retention(q: Tensor, k: Tensor, v: Tensor, decay: Tensor) -> Tensor:
    state = torch.zeros([q.size(0), q.size(2), q.size(3), v.size(3)])
    found = []
    for t in range(q.size(1)):
        state = decay * state + k[:, t].unsqueeze(-1) @ v[:, t].unsqueeze(-2)
        found.append((q[:, t].unsqueeze(-2) @ state).squeeze(-2))
    return torch.stack(found, 1)


@torch.jit.script
def delta_net(
    q: Tensor, k: Tensor, v: Tensor, strength: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    found = torch.zeros_like(v)
    k = torch.nn.functional.normalize(k, dim=-1)
    beta = torch.sigmoid(strength)
    for t in range(q.size(1)):
        old = (state * k[:, t].unsqueeze(-1)).sum(-2)
        new = (v[:, t] - old) * beta[:, t].unsqueeze(-1)
        state = state + k[:, t].unsqueeze(-1) * new.unsqueeze(-2)
        found[:, t] = torch.einsum("bhd,bhdm->bhm", q[:, t], state)
    return found, state


class GatedDelta(nn.Module):
    """Gated DeltaNet: its decays are those of Mamba-2."""

    def __init__(self) -> None:
        super().__init__()
        self.logs = nn.Parameter(torch.rand(HEADS))

    def forward(self, q: Tensor, k: Tensor, v: Tensor, strength: Tensor, gates: Tensor) -> Tensor:
        """[batch, time, heads, wide] the first three, the others [batch, time, heads]."""
        q, k = functional.normalize(q, dim=-1), functional.normalize(k, dim=-1)
        logs = -torch.exp(self.logs) * functional.softplus(gates)
        return gated_delta(q, k, v, torch.sigmoid(strength), logs)


@torch.jit.script
def gated_delta(q: Tensor, k: Tensor, v: Tensor, beta: Tensor, logs: Tensor) -> Tensor:
    state = torch.zeros([q.size(0), q.size(2), q.size(3), v.size(3)])
    found = []
    for t in range(q.size(1)):
        state = state * logs[:, t, :, None, None].exp()
        old = torch.einsum("bhd,bhdm->bhm", k[:, t], state)
        new = (v[:, t] - old) * beta[:, t, :, None]
        state = state + torch.einsum("bhd,bhm->bhdm", k[:, t], new)
        found.append(torch.einsum("bhd,bhdm->bhm", q[:, t], state))
    return torch.stack(found, 1)


class MinGru(nn.Module):
    """A GRU whose gate and candidate do not depend on the state."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(WIDE, WIDE)
        self.candidate = nn.Linear(WIDE, WIDE)

    def forward(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """`x` [batch, time, wide], `state` [batch, wide]."""
        gate, candidate = self.gate, self.candidate
        return min_gru(x, state, gate.weight, gate.bias, candidate.weight, candidate.bias)


@torch.jit.script
def min_gru(
    x: Tensor, h: Tensor, w_gate: Tensor, b_gate: Tensor, w_new: Tensor, b_new: Tensor
) -> tuple[Tensor, Tensor]:
    found = []
    for t in range(x.size(1)):
        z = torch.sigmoid(torch.nn.functional.linear(x[:, t], w_gate, b_gate))
        h = (1 - z) * h + z * torch.nn.functional.linear(x[:, t], w_new, b_new)
        found.append(h)
    return torch.stack(found, 1), h


class MinLstm(nn.Module):
    """An LSTM of the same kind: its two gates add up to 1."""

    def __init__(self) -> None:
        super().__init__()
        self.gates = nn.Linear(WIDE, 3 * WIDE)

    def forward(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """`x` [batch, time, wide], `state` [batch, wide]."""
        return min_lstm(self.gates(x), state)


@torch.jit.script
def min_lstm(x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    found = []
    for t in range(x.size(1)):
        f, i, new = x[:, t].chunk(3, -1)
        f, i = torch.sigmoid(f), torch.sigmoid(i)
        total = f + i
        h = f / total * h + i / total * new
        found.append(h)
    return torch.stack(found, 1), h


class Hgrn(nn.Module):
    """HGRN: a forget gate with a lower bound, and a gate for the output."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Linear(WIDE, 3 * WIDE)
        self.bound = nn.Parameter(torch.rand(WIDE))

    def forward(self, x: Tensor) -> Tensor:
        """`x` [batch, time, wide]."""
        new, forget, out = self.layers(x).chunk(3, -1)
        forget = self.bound + (1 - self.bound) * torch.sigmoid(forget)
        return hgrn(functional.silu(new), forget) * torch.sigmoid(out)


@torch.jit.script
def hgrn(new: Tensor, forget: Tensor) -> Tensor:
    found = torch.zeros_like(new)
    h = torch.zeros_like(new[:, 0])
    for t in range(new.size(1)):
        h = forget[:, t] * h + (1 - forget[:, t]) * new[:, t]
        found[:, t] = h
    return found


@torch.jit.script
def hgrn2(q: Tensor, forget: Tensor, v: Tensor) -> Tensor:
    """Its key is what the forget gate leaves over."""
    f = torch.sigmoid(forget + 3)
    state = torch.zeros([q.size(0), q.size(2), q.size(3), v.size(3)])
    found = []
    for t in range(q.size(1)):
        state = f[:, t].unsqueeze(-1) * state + torch.einsum("bhd,bhm->bhdm", 1 - f[:, t], v[:, t])
        found.append(torch.einsum("bhd,bhdm->bhm", q[:, t], state))
    return torch.stack(found, 1)


class Lru(nn.Module):
    """The linear recurrent unit: complex states, as real and imaginary parts."""

    def __init__(self) -> None:
        super().__init__()
        self.log = nn.Parameter(torch.linspace(-3, 0, STATES))
        self.angle = nn.Parameter(torch.linspace(0, 3, STATES))
        self.into = nn.Linear(WIDE, 2 * STATES, bias=False)
        self.out = nn.Linear(2 * STATES, WIDE, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """`x` [batch, time, wide]."""
        size = torch.exp(-torch.exp(self.log))
        real, imaginary = size * torch.cos(self.angle), size * torch.sin(self.angle)
        added = self.into(x) * torch.sqrt(1 - size * size).repeat(2)
        return self.out(lru(added, real, imaginary))


@torch.jit.script
def lru(added: Tensor, real: Tensor, imaginary: Tensor) -> Tensor:
    re = torch.zeros([added.size(0), real.size(0)])
    im = torch.zeros_like(re)
    found = []
    for t in range(added.size(1)):
        x, y = added[:, t].chunk(2, -1)
        re, im = real * re - imaginary * im + x, real * im + imaginary * re + y
        found.append(torch.cat([re, im], -1))
    return torch.stack(found, 1)


class Diagonal(nn.Module):
    """S4D: diagonal states for each channel, real and imaginary parts along one axis."""

    def __init__(self) -> None:
        super().__init__()
        self.step = nn.Parameter(torch.rand(WIDE, 1) / 10 + 0.05)
        self.angle = nn.Parameter(torch.arange(STATES // 2) * torch.pi)
        self.read = nn.Parameter(torch.randn(2, WIDE, STATES // 2))

    def forward(self, x: Tensor) -> Tensor:
        """`x` [batch, time, wide]."""
        size = torch.exp(-0.5 * self.step)
        turned = self.step * self.angle
        factor = torch.stack([size * torch.cos(turned), size * torch.sin(turned)])
        return diagonal(x, factor, self.read)


@torch.jit.script
def diagonal(x: Tensor, factor: Tensor, read: Tensor) -> Tensor:
    state = torch.zeros([2, x.size(0), factor.size(1), factor.size(2)])
    found = []
    for t in range(x.size(1)):
        re = factor[0] * state[0] - factor[1] * state[1] + x[:, t, :, None]
        im = factor[0] * state[1] + factor[1] * state[0]
        state = torch.stack([re, im])
        found.append(2 * (read[0] * re - read[1] * im).sum(-1))
    return torch.stack(found, 1)


@torch.jit.script
def mlstm(q: Tensor, k: Tensor, v: Tensor, i: Tensor, f: Tensor) -> Tensor:
    """The matrix memory of xLSTM: a maximum keeps the exponents in range."""
    memory = torch.zeros([q.size(0), q.size(2), v.size(3), q.size(3)])
    normal = torch.zeros([q.size(0), q.size(2), q.size(3)])
    most = torch.zeros([q.size(0), q.size(2)])
    logs = torch.nn.functional.logsigmoid(f + 3)
    k = k * k.size(-1) ** -0.5
    found = []
    for t in range(q.size(1)):
        top = torch.maximum(logs[:, t] + most, i[:, t])
        old = torch.exp(logs[:, t] + most - top).unsqueeze(-1)
        new = torch.exp(i[:, t] - top).unsqueeze(-1)
        most = top
        memory = old.unsqueeze(-1) * memory + new.unsqueeze(-1) * (
            v[:, t].unsqueeze(-1) @ k[:, t].unsqueeze(-2)
        )
        normal = old * normal + new * k[:, t]
        read = (memory @ q[:, t].unsqueeze(-1)).squeeze(-1)
        weight = (normal * q[:, t]).sum(-1, keepdim=True).abs()
        found.append(read / torch.maximum(weight, torch.exp(-most).unsqueeze(-1)))
    return torch.stack(found, 1)


@torch.jit.script
def moving_average(x: Tensor, rate: Tensor) -> Tensor:
    a = torch.sigmoid(rate)
    h = x[:, 0]
    found = [h]
    for t in range(1, x.size(1)):
        h = a * h + (1 - a) * x[:, t]
        found.append(h)
    return torch.stack(found, 1)


@torch.jit.script
def normalised_linear_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Features that are positive, the sum of the weights as a state, and the root of the mean
    square of each head."""
    q, k = torch.nn.functional.elu(q) + 1, torch.nn.functional.elu(k) + 1
    state = torch.zeros([q.size(0), q.size(2), q.size(3), v.size(3)])
    weights = torch.zeros([q.size(0), q.size(2), q.size(3)])
    found = []
    for t in range(q.size(1)):
        state = state + torch.einsum("bhd,bhm->bhdm", k[:, t], v[:, t])
        weights = weights + k[:, t]
        total = torch.einsum("bhd,bhd->bh", q[:, t], weights).unsqueeze(-1)
        read = torch.einsum("bhd,bhdm->bhm", q[:, t], state) / (total + 1e-6)
        found.append(read * torch.rsqrt(read.pow(2).mean(-1, keepdim=True) + 1e-6))
    return torch.stack(found, 1)
