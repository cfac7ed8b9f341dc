"""How a family file declares what happens to an op at a version step.

    identical("Add", 13, 14)
    identical("MaxPool", 8, because="storage_order is new and 0 is what the old version does")
    refusal("SomeOp", 15, "no-equivalent", "SomeOp-15 has no counterpart of ...")

    @adapter("Upsample", 9)
    def upsample_9(node, at):
        ...

A step is named by the op and by the version it leads to; where it starts from is the version
that was in force just before. The documents are those of `onnx.defs`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from onnx import NodeProto

from converters.conversion import Conversion

#: From a node in the old version to nodes in the new one. They define the node's outputs; each
#: of them takes its own later steps. The node itself is not changed.
Adapt = Callable[[NodeProto, Conversion], Sequence[NodeProto]]


@dataclass(frozen=True)
class Identical:
    """The node means the same in the new version; `because` says why, if it looks different."""

    op: str
    version: int
    because: str = ""


@dataclass(frozen=True)
class Adapter:
    """The node becomes other nodes. Not `exact` where arithmetic is regrouped."""

    op: str
    version: int
    adapt: Adapt
    exact: bool = True


@dataclass(frozen=True)
class ByRule:
    """The node is left to the rule of this name, which brings it to the target by itself."""

    op: str
    version: int
    rule: str


@dataclass(frozen=True)
class Refusal:
    """No node of this op takes this step."""

    op: str
    version: int
    code: str
    sentence: str


Step = Identical | Adapter | ByRule | Refusal

#: Every declared step, by op and version; filled while the family files are imported.
STEPS: dict[tuple[str, int], Step] = {}


def identical(op: str, *versions: int, because: str = "") -> None:
    """Declare that a node of the version before is, as it stands, a node of each of `versions`.

    Give `because` (one line) where attributes, inputs or outputs changed all the same.
    """
    for version in versions:
        _declare(Identical(op, version, because))


def adapter(op: str, version: int, *, exact: bool = True) -> Callable[[Adapt], Adapt]:
    """Declare the decorated function as the step of `op` to `version`.

    Its docstring says what changed; `docs/opset-steps.md` shows its first line.

    Args:
        op: an op of the standard domain.
        version: the version it writes; nodes it makes of other ops are in this opset too.
        exact: False where the result may differ in rounding.
    """

    def add(adapt: Adapt) -> Adapt:
        _declare(Adapter(op, version, adapt, exact))
        return adapt

    return add


def by_rule(op: str, version: int, rule: str) -> None:
    """Declare that another rule does this step and all later ones."""
    _declare(ByRule(op, version, rule))


def refusal(op: str, version: int, code: str, sentence: str) -> None:
    """Declare that no node of `op` can take this step; `code` is one that `opset` documents."""
    _declare(Refusal(op, version, code, sentence))


def _declare(step: Step) -> None:
    key = (step.op, step.version)
    if key in STEPS:
        raise ValueError(f"two entries for the step of {step.op} to version {step.version}")
    STEPS[key] = step
