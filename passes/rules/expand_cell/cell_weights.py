"""The weights of a cell: arrays where they are constant, else the names of what nodes compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True)
class CellWeights:
    """Rearranges weights, beforehand where they are known."""

    site: Site
    author: Author
    ways: int

    def of_way(self, name: str, way: int) -> Weight:
        """The part of one direction, of an input with an axis of directions in front."""
        tensor = Constants(self.site.model, self.site.scope).tensor(name)
        if tensor is not None and tensor.data_location != TensorProto.EXTERNAL:
            known: Array = self.site.model.read(tensor)[way]
            return known
        if self.ways == 1:
            return spelling.squeeze(self.author, name, 0)
        return self.author.op("Gather", name, self.author.int(way), axis=0)

    def transposed(self, weight: Weight) -> Weight:
        """A matrix, transposed."""
        return self._made(
            np.transpose, lambda name: self.author.op("Transpose", name, perm=[1, 0]), weight
        )

    def added(self, weight: Weight, other: Weight) -> Weight:
        """The sum of two."""
        return self._made(np.add, lambda *names: self.author.op("Add", *names), weight, other)

    def joined(self, weight: Weight, other: Weight) -> Weight:
        """Two matrices beside each other."""
        return self._made(
            lambda *both: np.concatenate(both, 1),
            lambda *names: self.author.op("Concat", *names, axis=1),
            weight,
            other,
        )

    def parts(self, weight: Weight, axis: int, letters: str) -> Sequence[Weight]:
        """Equal parts along an axis, one for each letter."""
        if isinstance(weight, str):
            return parts(self.author, weight, axis, letters)
        return np.split(weight, len(letters), axis)

    def _made(
        self,
        by_numpy: Callable[..., Array],
        by_nodes: Callable[..., str],
        *weights: Weight,
    ) -> Weight:
        arrays = [one for one in weights if not isinstance(one, str)]
        if len(arrays) == len(weights):
            return by_numpy(*arrays)
        return by_nodes(*(named(self.author, one) for one in weights))


def parts(author: Author, value: str, axis: int, letters: str) -> list[str]:
    """Equal parts of a value along an axis, one for each letter."""
    names = [author.fresh(letter) for letter in letters]
    spelling.split(author, value, axis, names)
    return names
