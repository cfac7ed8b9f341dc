"""Loops of torch: what the script compiler makes of for and while, and of the loop operators."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

import torch
from case import Case
from onnx import ModelProto
from torch import Tensor, nn

from torch_models import results, scripted, tensor

SOME = (9, 11, 13, 15, 18)


def cases() -> Iterator[Case]:
    """Every torch model with a loop or a branch."""
    yield from ()
    yield from ()
