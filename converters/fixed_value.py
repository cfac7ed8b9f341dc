"""Values that conversions read: one initializer of a graph for all that are equal."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, numpy_helper

from passes.ir.scope import Owner
from passes.rule import Site


@dataclass(frozen=True, eq=False)
class FixedValue:
    """A value and a hint for its name; called with a site it gives the tensor of that graph."""

    array: npt.NDArray[Any]
    hint: str

    def __call__(self, site: Site) -> TensorProto:
        """One tensor for all equal values of a graph; equal means dtype, shape and bytes."""
        owner = site.scope.owner  # kept alive, so its id is its own
        known: dict[Hashable, tuple[Owner, TensorProto]] = site.memory.once("fixed values", dict)
        key = (id(owner), self._content)
        if key not in known:
            tensor = TensorProto()
            tensor.CopyFrom(self._tensor)
            tensor.name = site.fresh(self.hint)
            known[key] = (owner, tensor)
        return known[key][1]

    @cached_property
    def _content(self) -> Hashable:
        array = self.array
        objects = array.dtype.kind == "O"
        content = tuple(array.ravel()) if objects else array.tobytes()
        return array.dtype.name, array.shape, content

    @cached_property
    def _tensor(self) -> TensorProto:
        plain = np.ascontiguousarray(self.array).reshape(self.array.shape)
        return numpy_helper.from_array(plain)
