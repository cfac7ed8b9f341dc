"""Declares the effect of a version step on an op, in the file of its family.

    identical("Add", 13, 14)
    identical("MaxPool", 8, because="storage_order is new and 0 is what the old version does")
    refusal("SomeOp", 15, "no-equivalent", "SomeOp-15 has no counterpart of ...")

    @adapter("Upsample", 9)
    def upsample_9(node, ctx):
        ...

A step is named by the op and by the version it leads to; where it starts from is the version
that was in force just before. The documents are those of `onnx.defs`.

The way down is declared beside it, by the same version, which is then the one that is left:

    refusal_down("Unique", 11, "no-equivalent", "no older op finds what is unique")
    expanded("Mish", 18)

    @adapter_down("Squeeze", 13)
    def squeeze_12(node, ctx):
        ...

A step that is identical on the way up is so on the way down, too, for a node that uses nothing
that came with the version: `converters.older` holds it against the document. What the documents'
signatures do not show is declared: `identical_down("Max", 8, unless=broadcasts)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from onnx import NodeProto

from passes.converters.writing.conversion import Conversion

#: From a node in the old version to nodes in the new one: those written with the Conversion, then
#: those returned. They define the node's outputs; each of them takes its own later steps. The node
#: itself is not changed.
Adapt = Callable[[NodeProto, Conversion], Sequence[NodeProto]]


@dataclass(frozen=True)
class Identical:
    """The node means the same in the new version; `because` gives the reason if it looks
    different."""

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

#: What a node says that the version before cannot say, in a sentence; empty where there is no such.
Unless = Callable[[NodeProto, Conversion], str]


@dataclass(frozen=True)
class IdenticalDown:
    """The node means the same in the version before, where it uses nothing that came with
    `version`, and `unless` has no objection."""

    op: str
    version: int
    because: str = ""
    unless: Unless | None = None


@dataclass(frozen=True)
class Expanded:
    """The op came with `version`: the node becomes the function body that its document gives."""

    op: str
    version: int


StepDown = IdenticalDown | Adapter | Expanded | Refusal

#: Every declared step up, by op and version; filled while the family files are imported.
STEPS: dict[tuple[str, int], Step] = {}
#: What is declared of the way down, by op and by the version that is left.
STEPS_DOWN: dict[tuple[str, int], StepDown] = {}


def identical(op: str, *versions: int, because: str = "") -> None:
    """Declare that a node of the version before is, unchanged, a node of each of `versions`.

    Give `because` (one line) where attributes, inputs or outputs changed all the same.
    """
    for version in versions:
        _declare(STEPS, Identical(op, version, because))


def adapter(op: str, version: int, *, exact: bool = True) -> Callable[[Adapt], Adapt]:
    """Declare the decorated function as the step of `op` to `version`.

    Its docstring says what changed; `docs/opset-steps.md` shows its first line.

    Args:
        op: an op of the standard domain.
        version: the version it writes; nodes it makes of other ops are in this opset too.
        exact: False where the result may differ in rounding.
    """
    return _adapter(STEPS, op, version, exact)


def by_rule(op: str, version: int, rule: str) -> None:
    """Declare that another rule does this step and all later ones."""
    _declare(STEPS, ByRule(op, version, rule))


def refusal(op: str, version: int, code: str, sentence: str) -> None:
    """Declare that no node of `op` can take this step; `code` is one that `opset` documents."""
    _declare(STEPS, Refusal(op, version, code, sentence))


def identical_down(
    op: str, *versions: int, because: str = "", unless: Unless | None = None
) -> None:
    """Declare that a node of each of `versions` is, unchanged, one of the version before.

    That follows from `identical`, but for what `unless` finds in a node, and where the way up
    needs an adapter. Attributes, inputs and types that came with the version are seen to anyway.
    """
    for version in versions:
        _declare(STEPS_DOWN, IdenticalDown(op, version, because, unless))


def adapter_down(op: str, version: int, *, exact: bool = True) -> Callable[[Adapt], Adapt]:
    """Declare the decorated function as the step of `op` from `version` to the one before.

    It writes nodes of the opset `ctx.version`, which is `version` - 1. Its docstring says what
    becomes of the node; `docs/opset-steps.md` shows its first line.
    """
    return _adapter(STEPS_DOWN, op, version, exact)


def expanded(op: str, *versions: int) -> None:
    """Declare that a node of each of `versions` becomes the function body of its document."""
    for version in versions:
        _declare(STEPS_DOWN, Expanded(op, version))


def refusal_down(op: str, version: int, code: str, sentence: str) -> None:
    """Declare that no node of `op` can leave `version` for the one before."""
    _declare(STEPS_DOWN, Refusal(op, version, code, sentence))


def _adapter(
    steps: dict[tuple[str, int], Any], op: str, version: int, exact: bool
) -> Callable[[Adapt], Adapt]:
    def add(adapt: Adapt) -> Adapt:
        _declare(steps, Adapter(op, version, adapt, exact))
        return adapt

    return add


def _declare(steps: dict[tuple[str, int], Any], step: Step | StepDown) -> None:
    key = (step.op, step.version)
    if key in steps:
        way = "up to" if steps is STEPS else "down from"
        raise ValueError(f"two entries for the step of {step.op} {way} version {step.version}")
    steps[key] = step
