"""Functions for torch's script compiler, each with a loop or a branch that stays one in ONNX."""

# ruff: noqa: SIM108 - the compiler reads this text: it is to see every way of writing it
from __future__ import annotations

from collections.abc import Callable

import torch
from case import draw
from torch import Tensor

Compile = Callable[[Callable[..., object]], torch.jit.ScriptFunction]
#: Every function by name, with its inputs.
SCRIPTS: dict[str, tuple[torch.jit.ScriptFunction, tuple[Tensor, ...]]] = {}
TABLE = torch.from_numpy(draw(30, 4, 3))
SEQUENCE = torch.from_numpy(draw(31, 4, 2, 3))
WEIGHTS = torch.from_numpy(draw(32, 3, 8)), torch.from_numpy(draw(33, 2, 8))


def case(*inputs: Tensor, table: Tensor = TABLE) -> Compile:
    """Compile a function, and keep it with the table and these inputs."""

    def keep(function: Callable[..., object]) -> torch.jit.ScriptFunction:
        compiled = torch.jit.script(function)
        SCRIPTS[function.__name__] = compiled, (table, *inputs)
        return compiled

    return keep


@case()
def for_sum(x: Tensor) -> Tensor:
    """Each row read by the iteration, and added up."""
    total = torch.zeros_like(x[0])
    for i in range(x.size(0)):
        total = total + x[i]
    return total


@case()
def for_fixed(x: Tensor) -> Tensor:
    """A loop whose length is in the code."""
    for i in range(4):
        x = x * 0.5 + float(i)
    return x


@case(torch.tensor(3))
def for_given(x: Tensor, n: Tensor) -> Tensor:
    """A loop whose length is an input."""
    for i in range(int(n)):
        x = x + i
    return x


@case()
def for_step(x: Tensor) -> Tensor:
    """Every other row, from the second."""
    total = torch.zeros_like(x[0])
    for i in range(1, x.size(0), 2):
        total += x[i]
    return total


@case()
def reversed_read(x: Tensor) -> Tensor:
    """Rows read from the last to the first."""
    h = torch.zeros_like(x[0])
    for i in range(x.size(0)):
        h = torch.tanh(h + x[x.size(0) - 1 - i])
    return h


@case()
def neighbours(x: Tensor) -> Tensor:
    """Two rows read in each iteration."""
    total = torch.zeros_like(x[0])
    for i in range(x.size(0) - 1):
        total = total + x[i] * x[i + 1]
    return total


@case()
def list_stacked(x: Tensor) -> Tensor:
    """Each state appended to a list that is stacked at the end."""
    found: list[Tensor] = []
    h = torch.zeros_like(x[0])
    for i in range(x.size(0)):
        h = torch.tanh(h * 0.5 + x[i])
        found.append(h)
    return torch.stack(found)


@case()
def list_concatenated(x: Tensor) -> Tensor:
    """A list grown by addition, and joined."""
    found: list[Tensor] = []
    for i in range(x.size(0)):
        found += [x[i : i + 1] * 2.0]
    return torch.cat(found)


@case()
def grown(x: Tensor) -> Tensor:
    """A carried value that gets longer."""
    out = x[:1]
    for i in range(x.size(0)):
        out = torch.cat([out, out[-1:] + x[i : i + 1]])
    return out


@case()
def buffer_filled(x: Tensor) -> Tensor:
    """A buffer that is filled row by row."""
    out = torch.zeros_like(x)
    for i in range(x.size(0)):
        out[i] = x[i] * 2.0 + 1.0
    return out


@case()
def while_counter(x: Tensor) -> Tensor:
    """A while that counts."""
    i = 0
    while i < 5:
        x = x + float(i)
        i += 1
    return x


@case(torch.tensor(20.0))
def while_limit(x: Tensor, limit: Tensor) -> Tensor:
    """A while that depends on the data."""
    while bool(x.sum() < limit):
        x = x * 2.0 + 1.0
    return x


@case()
def while_both(x: Tensor) -> tuple[Tensor, Tensor]:
    """A while with two conditions."""
    steps = torch.zeros(1, dtype=torch.int64)
    while bool(x.abs().max() > 0.1) and bool(steps[0] < 20):
        x = x * 0.5
        steps = steps + 1
    return x, steps


@case(torch.tensor(0.2))
def break_early(x: Tensor, limit: Tensor) -> Tensor:
    """A for that a value may end."""
    total = torch.zeros_like(x[0])
    for i in range(x.size(0)):
        total = total + x[i]
        if bool(total.sum() > limit):
            break
    return total


@case()
def continued(x: Tensor) -> Tensor:
    """A for that skips some rows."""
    total = torch.zeros_like(x[0])
    for i in range(x.size(0)):
        if bool(x[i].sum() < 0.0):
            continue
        total = total + x[i]
    return total


@case()
def branches(x: Tensor) -> Tensor:
    """Branches in branches."""
    if bool(x.sum() > 0.0):
        if bool(x.max() > 1.0):
            y = x * 2.0
        else:
            y = x + 1.0
    else:
        y = -x
    return y


@case()
def branch_in_loop(x: Tensor) -> Tensor:
    """A branch in each iteration."""
    h = torch.zeros_like(x[0])
    for i in range(x.size(0)):
        if i % 2 == 0:
            h = h + x[i]
        else:
            h = h - x[i]
    return h


@case(torch.tensor(3))
def loop_in_branch(x: Tensor, n: Tensor) -> Tensor:
    """A loop that is only there on one side of a branch."""
    if bool(x.sum() > 0.0):
        for _i in range(int(n)):
            x = x * 0.5
    return x


@case()
def nested_loops(x: Tensor) -> Tensor:
    """A loop in a loop."""
    total = torch.zeros(1)
    for i in range(x.size(0)):
        for j in range(x.size(1)):
            total = total + x[i, j] * float(i - j)
    return total


@case()
def softmax_steps(x: Tensor) -> Tensor:
    """Operators that newer opsets changed, in a body."""
    found: list[Tensor] = []
    for i in range(x.size(0)):
        row = torch.softmax(x[i], 0)
        top, _where = row.topk(2)
        found.append(torch.clamp(top, 0.1, 0.9))
    return torch.stack(found, 1)


@case(*WEIGHTS, table=SEQUENCE)
def cell(x: Tensor, w: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    """An LSTM written out by hand."""
    h = torch.zeros(x.size(1), u.size(0))
    c = torch.zeros(x.size(1), u.size(0))
    found: list[Tensor] = []
    for t in range(x.size(0)):
        i, f, g, o = (x[t].mm(w) + h.mm(u)).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        found.append(h)
    return torch.stack(found), c


@case()
def unbound(x: Tensor) -> Tensor:
    """A loop over the rows as a list."""
    total = torch.zeros_like(x[0])
    for row in x.unbind(0):
        total = total * 0.5 + row
    return total


@case()
def scalars(x: Tensor) -> tuple[Tensor, int]:
    """Whole numbers that are carried."""
    a, b = 1, 1
    for _i in range(x.size(0)):
        a, b = b, a + b
    return x * a, b
