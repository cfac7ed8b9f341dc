"""Inputs for a generated model, drawn by what they mean; another way than verification's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TypeProto, helper

from tests.instruments.generate.model import Generated
from tests.instruments.generate.values import BOOL, FLOATS, STRING

#: Sizes of the symbolic dims: ordinary ones, large ones, ones, and one of them 0. W is wide enough
#: to cut from it whatever a state holds.
SIZES: tuple[Mapping[str, int], ...] = (
    {"B": 2, "T": 3, "S": 4, "N": 2, "W": 5},
    {"B": 3, "T": 5, "S": 2, "N": 3, "W": 6},
    {"B": 1, "T": 1, "S": 1, "N": 1, "W": 4},
    {"B": 2, "T": 0, "S": 3, "N": 2, "W": 5},
    {"B": 0, "T": 2, "S": 0, "N": 0, "W": 4},
)
_BFLOAT16 = 16
Feed = npt.NDArray[Any] | list[npt.NDArray[Any]]


def draw(
    generated: Generated, number: int, seed: int = 0, *, positive: bool = False
) -> dict[str, Feed]:
    """The inputs of case `number`; the first few go through `SIZES`.

    `positive`: no length and no number of trips is 0.
    """
    rng = np.random.default_rng([seed, number])
    least = int(positive)
    sizes = SIZES[number % len(SIZES)]
    graph = generated.model.graph
    constant = {tensor.name for tensor in graph.initializer}
    return {
        value.name: _value(rng, value.type, generated.roles.get(value.name, ""), sizes, least)
        for value in graph.input
        if value.name not in constant
    }


def _value(
    rng: np.random.Generator, said: TypeProto, role: str, sizes: Mapping[str, int], least: int
) -> Feed:
    tensor = said.tensor_type
    shape = [
        dim.dim_value if dim.HasField("dim_value") else sizes[dim.dim_param]
        for dim in tensor.shape.dim
    ]
    if role.startswith("lengths"):
        time = role.split()[1]
        longest = sizes[time] if time in sizes else int(time)
        return rng.integers(min(least, longest), longest + 1, shape)
    if role == "count":
        return np.full(shape, rng.integers(least if least else -1, 5))
    if role.startswith("exactly"):
        return np.full(shape, int(role.split()[1]))
    return _data(rng, tensor.elem_type, shape)


def _data(rng: np.random.Generator, elem: int, shape: list[int]) -> npt.NDArray[Any]:
    numbers = rng.integers(-6, 7, shape)
    if elem == STRING:
        return np.array([f"s{one}" for one in numbers.flat], object).reshape(shape)
    if elem == BOOL:
        return np.asarray(numbers > 0)
    kind = helper.tensor_dtype_to_np_dtype(elem)
    if elem in FLOATS or elem == _BFLOAT16:
        return np.asarray(numbers / 4).astype(kind)
    return np.asarray(np.abs(numbers) if kind.kind == "u" else numbers).astype(kind)
