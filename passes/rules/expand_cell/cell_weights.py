"""The weights of a cell: arrays where they are constant, else the names of what nodes compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from passes.ir.constants import Constants
from passes.rule import Site
from passes.writing import spelling
from passes.writing.author import Author
from passes.writing.writer import Array

#: A weight, or a part of one.
Weight = str | Array


def named(author: Author, weight: Weight) -> str:
    """The name of a weight, of which the author makes a constant where it is known: onnxruntime
    packs the constants of a body, and those of the graph around it, but no others."""
    return weight if isinstance(weight, str) else author.value(weight, "weight")


def of_way(site: Site, author: Author, name: str, ways: int, way: int) -> Weight:
    """The part of one direction, of an input with an axis of directions in front."""
    tensor = Constants(site.model, site.scope).tensor(name)
    if tensor is not None and tensor.data_location != TensorProto.EXTERNAL:
        known: Array = site.model.read(tensor)[way]
        return known
    if ways == 1:
        return spelling.squeeze(author, name, 0)
    return author.op("Gather", name, author.int(way), axis=0)


def made(
    author: Author, op: str, by_numpy: Callable[..., Array], *weights: Weight, **attributes: Any
) -> Weight:
    """The result of an operator on weights, computed beforehand where all are known."""
    arrays = [one for one in weights if not isinstance(one, str)]
    if len(arrays) == len(weights):
        return by_numpy(*arrays)
    return author.op(op, *(named(author, one) for one in weights), **attributes)


def parts_of(author: Author, weight: Weight, axis: int, letters: str) -> Sequence[Weight]:
    """Equal parts of a weight along an axis, one for each letter."""
    if isinstance(weight, str):
        return parts(author, weight, axis, letters)
    return np.split(weight, len(letters), axis)


def parts(author: Author, value: str, axis: int, letters: str) -> list[str]:
    """Equal parts of a value along an axis, one for each letter."""
    names = [author.fresh(letter) for letter in letters]
    spelling.split(author, value, axis, names)
    return names
