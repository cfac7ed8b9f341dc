"""Finds where two models differ in another executor, which shows no values but outputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from onnx import ModelProto, ValueInfoProto

from passes.bisection.pairing import Pair, Pairing
from passes.bisection.trace import Instance, Run
from passes.ir import scope as scoping
from passes.ir.protos import copied
from passes.verify.compare.compare import compare
from passes.verify.compare.tolerance import NEAR_ELSEWHERE
from passes.verify.executor import Ended, Executor, Feeds, Outcome, Value
from passes.verify.reference.value_types import type_of
from passes.verify.requirements import Models


def first_elsewhere(
    executor: Executor, sides: Models, pairing: Pairing, feeds: Feeds
) -> Pair | None:
    """The first values of both main graphs that agree in the reference executor and differ in
    another one, with what they are there; None where that is not seen.

    Each is looked at as one more output: all before the first one are taken to agree.
    """
    pairs = _agreeing(pairing)

    def seen(pair: Pair) -> tuple[Value, Value]:
        return (
            _value(executor, sides.before, sides.base_dir, pair.before, feeds),
            _value(executor, sides.after, sides.base_dir_after, pair.after, feeds),
        )

    def differs(pair: Pair) -> bool:
        old, new = seen(pair)
        return not compare(Outcome({"": old}), Outcome({"": new}), NEAR_ELSEWHERE).agree

    low, high = 0, len(pairs)
    try:
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if differs(pairs[middle]) else (middle + 1, high)
        if low == len(pairs):
            return None
        found = pairs[low]
        for one, value in zip((found.before, found.after), seen(found), strict=True):
            one.stored, one.held = value, True
    except Ended:
        return None
    return found


def _agreeing(pairing: Pairing) -> Sequence[Pair]:
    """The values of the main graphs that agree in the reference executor, in order."""
    for pair in pairing.pairs():
        pairing.accept(pair)
    mains = {one.digest: one for one in pairing.before.instances if _is_main(one)}
    found, last = [], None
    for run in pairing.after.runs:
        for made in run.makes:
            if made is not None and _is_main(made) and made.agreed in mains:
                found.append(Pair(mains[made.agreed], made, "operator", last))
        last = run if run.at.holder is None else last
    return found


def _is_main(one: Instance) -> bool:
    run: Run | None = one.run
    return run is not None and run.at.holder is None and not one.constant


def _value(
    executor: Executor, model: ModelProto, base_dir: Path | None, one: Instance, feeds: Feeds
) -> Value:
    """Return a value of the main graph in an executor."""
    if one.name not in scoping.output_names(model.graph):
        model = copied(model)
        kind = type_of(one.value, shaped=False)
        model.graph.output.append(ValueInfoProto(name=one.name, type=kind))
    return executor.run(model, feeds, base_dir=base_dir).outputs[one.name]
