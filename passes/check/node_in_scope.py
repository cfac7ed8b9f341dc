"""A node that is checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from passes.ir.scope import Place, Scope


@dataclass(frozen=True)
class NodeInScope(Place):
    """A node with the opset it is written in and its bodies, of which it may have none."""

    opset: int
    bodies: Sequence[Scope]
