"""Every version step of the ops of the standard domain above opset 7.

The steps are declared in one file per family of ops; this module puts them together and answers
which steps a node takes on the way from one opset to another.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from onnx import defs

from converters import adapters
from converters.steps import STEPS, ByRule, Identical, Refusal, Step

#: The files that declare steps.
FAMILIES = tuple(
    import_module(f"{adapters.__name__}.{found.name}") for found in iter_modules(adapters.__path__)
)

#: Steps start here; what a version before it needs is not declared.
OLDEST_OPSET = 7


@cache
def versions_between(op: str, opset: int, target: int) -> tuple[int, ...] | None:
    """The versions above `opset`, up to `target`, in which onnx changed `op`; None if unknown.

    An op is unknown where onnx has no version of it at `opset`.
    """
    if not defs.has(op, opset):
        return None
    if target <= opset:  # where onnx may not know the op yet
        return ()
    found: list[int] = []
    version = defs.get_schema(op, target).since_version
    while version > opset:
        found.append(version)
        version = defs.get_schema(op, version - 1).since_version
    return tuple(reversed(found))


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
def changes(op: str, opset: int, target: int) -> bool:
    """Whether the `opset` rule has anything to do for nodes of `op`."""
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
