"""The constants of a main graph or function, found by content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from onnx import FunctionProto, TensorProto, numpy_helper

from passes.ir import scope as scoping
from passes.ir.constants import constant_tensor
from passes.ir.external_data import ExternalTensor
from passes.ir.scope import Owner
from passes.ir.site import Site, Slot
from passes.ir.versions import FREE_INITIALIZERS

_IN_FRONT = -1  # the place of initializers among the nodes
_SAMPLE = 64  # bytes that distinguish most weights of one shape


@dataclass(frozen=True)
class Kept:
    """A constant outside of all bodies; `position` is that of its node. `made`: by this round."""

    tensor: TensorProto
    position: int = _IN_FRONT
    made: bool = False

    @property
    def name(self) -> str:
        return self.tensor.name

    @cached_property
    def kind(self) -> tuple[Any, ...]:
        """A key that equal constants have in common, cheap to compute."""
        tensor = self.tensor
        sample = _content(tensor)[:_SAMPLE]
        return (tensor.data_type, tuple(tensor.dims), tensor.data_location, sample)

    @cached_property
    def digest(self) -> bytes:
        """Equal for equal contents; external data is not read, its location stands for it."""
        return hashlib.blake2b(_content(self.tensor)).digest()


@dataclass
class ConstantPool:
    """Constants by content: element type, shape and bytes, external ones by reference."""

    hidden: set[str]
    _alike: dict[tuple[Any, ...], list[Kept]] = field(default_factory=dict)
    _equal: dict[tuple[Any, ...], dict[bytes, list[Kept]]] = field(default_factory=dict)
    _by_name: dict[str, Kept] = field(default_factory=dict)

    @classmethod
    def of(cls, site: Site, owner: Owner) -> ConstantPool:
        """The constants of `owner` that may be shared."""
        graphs = list(scoping.graphs_below(owner))[1:]
        hidden = {name for graph in graphs for name in scoping.defined(graph)}
        pool = cls(hidden)
        for kept in _constants(site, owner):
            pool.add(kept)
        return pool

    def add(self, kept: Kept) -> None:
        """Put a constant into the pool."""
        self._by_name[kept.name] = kept
        self._alike.setdefault(kept.kind, []).append(kept)
        if kept.kind in self._equal:
            self._equal[kept.kind].setdefault(kept.digest, []).append(kept)

    def equal_to(self, constant: Kept, before: int) -> Kept | None:
        """The first constant with the same content that stands before a position.

        Except those whose name means something else in a body.
        """
        if constant.kind not in self._alike:
            return None
        if constant.kind not in self._equal:
            equal = self._equal[constant.kind] = {}
            for kept in self._alike[constant.kind]:
                equal.setdefault(kept.digest, []).append(kept)
        found = self._equal[constant.kind].get(constant.digest, ())
        there = (kept for kept in found if kept.position < before and kept.name not in self.hidden)
        return next(there, None)

    def first_of(self, name: str, before: int) -> Kept | None:
        """The constant that replaces all those equal to `name`; None where `name` is not a
        constant, or is the only one."""
        kept = self._by_name.get(name)
        if kept is None or len(self._alike[kept.kind]) == 1:
            return None
        return self.equal_to(kept, before)


def _constants(site: Site, owner: Owner) -> Iterator[Kept]:
    model = site.model.proto
    untouchable: set[str] = set()
    if not isinstance(owner, FunctionProto):
        # a shared constant has one scale; and constants that are trained change
        untouchable.update(annotation.tensor_name for annotation in owner.quantization_annotation)
        if model.ir_version >= FREE_INITIALIZERS:
            untouchable.update(scoping.input_names(owner))
        dense = [] if model.training_info else list(owner.initializer)
        yield from (Kept(tensor) for tensor in dense if tensor.name not in untouchable)
    for position, node in enumerate(owner.node):
        tensor = constant_tensor(node)
        if tensor is not None and tensor.name not in untouchable:
            yield Kept(tensor, position)


def _content(tensor: TensorProto) -> bytes:
    """The bytes that a tensor holds, in one encoding; for external data, its location."""
    if tensor.data_location == TensorProto.EXTERNAL:
        return repr(ExternalTensor.of(tensor)).encode()
    if tensor.HasField("raw_data"):
        return tensor.raw_data
    if tensor.data_type == TensorProto.STRING:
        return repr(list(tensor.string_data)).encode()
    return np.asarray(numpy_helper.to_array(tensor)).tobytes()


_POOLS: Slot[ConstantPool] = Slot()


def pool_of(site: Site) -> ConstantPool:
    """The pool of the graph or function in which the site stands, made once a round."""
    owner = site.scope.owner
    return site.memory.once(_POOLS, lambda: ConstantPool.of(site, owner), owner)
