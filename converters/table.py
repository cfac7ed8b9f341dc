"""Every version step of the ops of the standard domain above opset 7, up and down.

The steps are declared in one file per family of ops; this module puts them together and answers
which steps a node takes on the way from one opset to another.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from onnx import defs

from passes.converters import adapters
from passes.converters.steps import (
    STEPS,
    STEPS_DOWN,
    ByRule,
    Identical,
    IdenticalDown,
    Refusal,
    Step,
    StepDown,
)
from passes.ir.versions import OLDEST_OPSET

#: The files that declare steps.
FAMILIES = tuple(
    import_module(f"{adapters.__name__}.{found.name}") for found in iter_modules(adapters.__path__)
)

#: Steps start here; what a version before it needs is not declared.


@cache
def versions_between(op: str, opset: int, target: int) -> tuple[int, ...] | None:
    """The versions above `opset`, up to `target`, in which onnx changed `op`; None if unknown.

    An op is unknown where onnx has no version of it at `opset`.
    """
    if not defs.has(op, opset):
        return None
    return tuple(reversed(versions_left(op, target, opset) or ())) if target > opset else ()


@cache
def steps(op: str, opset: int, target: int) -> tuple[Step, ...]:
    """The steps of an op of the standard domain from `opset` to `target`, oldest first.

    What is not declared, and an op that onnx does not know, is a refusal (`no-step`,
    `unknown-op`), so a node can never pass unseen.
    """
    versions = versions_between(op, opset, target)
    if versions is None:
        return (Refusal(op, opset, "unknown-op", f"onnx knows no {op} at opset {opset}"),)
    return tuple(STEPS.get((op, version)) or _missing(op, version) for version in versions)


@cache
def versions_left(op: str, opset: int, target: int) -> tuple[int, ...] | None:
    """The versions of `op` that are newer than `target`, from that at `opset` down; None if onnx
    has none at `opset`. The last one may have no version before it."""
    if not defs.has(op, opset):
        return None
    found: list[int] = []
    version = defs.get_schema(op, opset).since_version
    while version > target:
        found.append(version)
        if not defs.has(op, version - 1):
            break
        version = defs.get_schema(op, version - 1).since_version
    return tuple(found)


@cache
def steps_down(op: str, opset: int, target: int) -> tuple[StepDown, ...]:
    """The steps of an op of the standard domain from `opset` down to `target`, newest first.

    What is not declared is a refusal, as in `steps`.
    """
    versions = versions_left(op, opset, target)
    if versions is None:
        return (Refusal(op, opset, "unknown-op", f"onnx knows no {op} at opset {opset}"),)
    return tuple(step_down(op, version) for version in versions)


def step_down(op: str, version: int) -> StepDown:
    """The step of an op from one of its versions to the one before, or to none."""
    declared = STEPS_DOWN.get((op, version))
    if declared is not None:
        return declared
    if isinstance(STEPS.get((op, version)), Identical):
        return IdenticalDown(op, version)
    if not defs.has(op, version - 1):
        return Refusal(op, version, "no-equivalent", f"{op} came with opset {version}")
    return Refusal(op, version, "no-step", f"there is no step of {op} down from version {version}")


@cache
def known_versions() -> tuple[tuple[str, int], ...]:
    """Every op of the standard domain with each of its versions above `OLDEST_OPSET`."""
    return tuple(
        (schema.name, schema.since_version)
        for schema in defs.get_all_schemas_with_history()
        if schema.domain == "" and schema.since_version > OLDEST_OPSET
    )


@cache
def changes(op: str, opset: int, target: int) -> bool:
    """Return whether the `opset` rule has anything to do for nodes of `op`, whatever they use."""
    if target < opset:
        return not all(isinstance(step, IdenticalDown) for step in steps_down(op, opset, target))
    taken = steps(op, opset, target)
    return not all(isinstance(step, Identical) for step in taken) and not any(
        isinstance(step, ByRule) for step in taken
    )


def _missing(op: str, version: int) -> Refusal:
    if version <= OLDEST_OPSET:
        sentence = f"{op} changed in opset {version}; conversion starts at opset {OLDEST_OPSET}"
    else:
        sentence = f"there is no step of {op} to version {version} yet"
    return Refusal(op, version, "no-step", sentence)
