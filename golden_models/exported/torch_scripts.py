"""Functions for torch's script compiler, each with a loop or a branch that stays one in ONNX."""

from __future__ import annotations

import torch
from torch import Tensor
