"""Why two nodes give different values: what is other in them, or in what they read."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from onnx import AttributeProto, NodeProto, defs, helper

from passes.bisection.pairing import Pair, Pairing, initial_states
from passes.bisection.trace import Instance, Run
from passes.ir.operators import called_key, op_of
from passes.types.dtypes import is_float
from passes.verify.compare.compare import compare
from passes.verify.executor import Outcome

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")
_NARROW = (("float16", np.float16), ("bfloat16", ml_dtypes.bfloat16))


def reasons(pair: Pair, pairing: Pairing) -> list[str]:
    """Return the differences between the two nodes of a pair, a sentence each; empty if none is
    seen."""
    before, after = pair.before.run, pair.after.run
    if before is None or after is None:
        return []
    found = [*_versions(before, after)]
    if op_of(before.node) != op_of(after.node):
        found = [f"it is {_a(after)}, in the original {_a(before)}"]
    if found and (states := (initial_states(before), initial_states(after)))[0] and states[1]:
        return [*_operands(*states, pairing, "initial state")] or found
    if op_of(before.node) == op_of(after.node):
        found = [*_operands(before.operands, after.operands, pairing), *found]
        found += _attributes(before.node, after.node)
    if any(one.entry for one in after.reads.values()):
        found += _around(before, after)
    if op_of(before.node) != op_of(after.node):
        wholes = [run.path for run in (before, after) if run.bodies]
        found += [f"{path} is compared as a whole, iterations and all" for path in wholes]
    elif before.trips != after.trips:
        found.append(f"it runs {after.trips} iterations, in the original {before.trips}")
    elif not found and after.trips:
        found.append("its body differs")
    return found


def _a(run: Run) -> str:
    op = op_of(run.node)
    vowel = op[0] in "AEIOU" and not op.startswith("Uni")
    return f"an {op}" if vowel else f"a {op}"


def _ordinal(place: int, what: str) -> str:
    return f"{_ORDINALS[place]} {what}" if place < len(_ORDINALS) else f"{what} {place}"


def _around(before: Run, after: Run) -> Iterator[str]:
    """Yield the differences between the loops around two nodes."""
    old, new = before.at.holder, after.at.holder
    if old is not None and new is not None and op_of(old.node) == op_of(new.node):
        for sentence in _attributes(old.node, new.node):
            yield f"{new.path}: {sentence}"


def _operands(
    old: Sequence[Instance | None],
    new: Sequence[Instance | None],
    pairing: Pairing,
    kind: str = "operand",
) -> Iterator[str]:
    for place, (left, right) in enumerate(itertools.zip_longest(old, new)):
        if left is None or right is None:
            given = left or right
            if given is not None:
                where = "here" if right is None else "in the original"
                yield f"its {_ordinal(place, kind)} {given.name} is left out {where}"
            continue
        key = pairing.key(right)
        if left.digest in (key, right.digest):
            continue
        what = f"its {_ordinal(place, kind)}"
        if left.constant and right.constant:
            yield f"{what} {right.name} {_constant(left, right)}"
        elif key is not None and (meant := pairing.value_before(key)).name != left.name:
            other = "" if meant.is_trivial else f", not {meant.name}"
            yield f"{what} is {right.name}, in the original {left.name}{other}"
        elif key is not None and meant.at is not None and meant.at.iterations:
            numbers = ", ".join(map(str, meant.at.iterations))
            yield f"{what} {right.name} is {left.name} of iteration {numbers} of the original"
        else:
            yield f"{what} {right.name} {_values(left, right)}"


def _values(left: Instance, right: Instance) -> str:
    differences = compare(
        Outcome({right.name: left.value}),
        Outcome({right.name: right.value}),
        sides=("in the original", "here"),
    ).differences
    return f"differs: {differences[0].sentence}" if differences else "differs in its bits"


def _constant(left: Instance, right: Instance) -> str:
    """Return a sentence on the difference between two constants."""
    old, new = left.value, right.value
    if not isinstance(old, np.ndarray) or not isinstance(new, np.ndarray):
        return _values(left, right)
    if old.dtype == new.dtype and old.shape == new.shape and is_float(old.dtype):
        for name, dtype in _NARROW:
            with np.errstate(all="ignore"):
                if np.array_equal(old.astype(dtype).astype(old.dtype), new, equal_nan=True):
                    return f"is rounded to {name}"
    return _values(left, right)


def _attributes(before: NodeProto, after: NodeProto) -> Iterator[str]:
    old, new = _plain(before), _plain(after)
    for name in dict.fromkeys((*old, *new)):
        if old.get(name) != new.get(name):
            yield f"its {name} is {_shown(new, name)}, in the original {_shown(old, name)}"


def _plain(node: NodeProto) -> dict[str, Any]:
    """The attributes but bodies, by name."""
    graphs = (AttributeProto.GRAPH, AttributeProto.GRAPHS)
    return {
        one.name: _comparable(helper.get_attribute_value(one))
        for one in node.attribute
        if one.type not in graphs
    }


def _comparable(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if hasattr(value, "SerializeToString"):
        return value.SerializeToString(deterministic=True)
    return value if isinstance(value, int | float | str) else list(map(_comparable, value))


def _shown(values: dict[str, Any], name: str) -> str:
    value = values.get(name)
    if value is None:
        return "left out"
    return "another tensor" if isinstance(value, bytes) else str(value)


def _versions(before: Run, after: Run) -> Iterator[str]:
    """Return whether the opsets give the operator another meaning."""
    domain, op, _ = called_key(after.node)
    try:
        old, new = (
            defs.get_schema(op, run.at.evaluator.versions.get(domain, 1), domain).since_version
            for run in (before, after)
        )
    except defs.SchemaError:
        return
    if old != new:
        yield f"it is {op}-{new}, in the original {op}-{old}"
