"""Loops of torch: what its exporters make of scripted for and while, and of its loop operators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from case import Case
from onnx import ModelProto
from torch import Tensor, nn
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch_models import Function, results, scripted, tensor
from torch_scripts import SCRIPTS

#: What the exporter refuses below opset 11.
TOO_OLD = {
    "list_stacked", "list_concatenated", "grown", "buffer_filled", "softmax_steps", "cell",
    "unbound",
}  # fmt: skip
#: The opset of the dynamo exporter; at newer ones it makes the same nodes.
NEW = (18,)


def cases() -> Iterator[Case]:
    """Every torch model with a loop or a branch."""
    for name, (function, inputs) in SCRIPTS.items():
        opsets = (11, 13, 18) if name in TOO_OLD else (9, 11, 13, 18)
        yield scripted(f"script_{name}", function, *inputs, opsets=opsets)
    x = tensor(30, 4, 3)
    for function in (_while_counted, _while_limited, _while_reading):
        yield operator(function, x)
    for function in (_scanned, _scanned_backwards, _scanned_columns):
        yield operator(function, x)
    yield operator(_scanned_recurrence, tensor(31, 5, 2, 3), tensor(32, 3, 3))
    for function in (_branch, _branches):
        yield operator(function, x)


def operator(
    function: Callable[..., object],
    *inputs: Tensor,
    free: Sequence[Mapping[int, str]] = (),
    layers: Sequence[nn.Module] = (),
) -> Case:
    """A function of torch's loop operators, or of layers, for the dynamo exporter; `free` names the
    dynamic axes of each input."""
    module = Function(function, *layers).eval()
    dims = {name: torch.export.Dim(name) for axes in free for name in axes.values()}
    shapes = [{axis: dims[name] for axis, name in axes.items()} for axes in free]

    def export(opset: int) -> ModelProto:
        names = [f"x{number}" for number in range(len(inputs))]
        program = torch.onnx.export(
            module,
            inputs,
            dynamo=True,
            opset_version=opset,
            input_names=names,
            verbose=False,
            dynamic_shapes=(tuple(shapes),) if shapes else None,
        )
        return program.model_proto

    name = f"operator{function.__name__}"
    return Case(name, export, [arg.numpy() for arg in inputs], results(module, inputs), NEW)


def _while_counted(x: Tensor) -> object:
    start = torch.zeros((), dtype=torch.int64), x
    return while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 0.5 + 1), start)


def _while_limited(x: Tensor) -> object:
    return while_loop(lambda x: x.sum() < 20, lambda x: (x * 2 + 1,), (x,))


def _while_reading(x: Tensor) -> object:
    def add(i: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
        return i + 1, total + x.index_select(0, i.unsqueeze(0)).squeeze(0)

    start = torch.zeros((), dtype=torch.int64), torch.zeros(3)
    return while_loop(lambda i, total: i < 4, add, start)


def _scanned(x: Tensor) -> object:
    return scan(lambda total, row: (total + row, total * row), torch.zeros(3), x)


def _scanned_backwards(x: Tensor) -> object:
    def step(total: Tensor, row: Tensor) -> tuple[Tensor, Tensor]:
        return (total + row).tanh(), total.clone()

    return scan(step, torch.zeros(3), x, reverse=True)


def _scanned_columns(x: Tensor) -> object:
    return scan(lambda total, row: (total + row, total * row), torch.zeros(4), x, dim=1)


def _scanned_recurrence(x: Tensor, weight: Tensor) -> object:
    def step(state: Tensor, row: Tensor) -> tuple[Tensor, Tensor]:
        mixed = state @ weight
        return (mixed + row).tanh(), mixed.clone()

    return scan(step, torch.zeros(2, 3), x)


def _branch(x: Tensor) -> object:
    return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: -x, (x,))


def _branches(x: Tensor) -> object:
    def inner(x: Tensor) -> Tensor:
        return torch.cond(x.max() > 1, lambda x: x + 1, lambda x: x - 1, (x,))

    return torch.cond(x.sum() > 0, inner, lambda x: x.softmax(0), (x,))
