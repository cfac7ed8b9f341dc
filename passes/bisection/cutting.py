"""Cuts what makes a value out of a run: a small model that is given what agrees already."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from onnx import (
    FunctionProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)

from passes.bisection.trace import Instance, Run, Trace
from passes.ir import scope as scoping
from passes.ir.boundary import cut_out
from passes.ir.names import Names
from passes.ir.protos import copied
from passes.verify.executor import Value
from passes.verify.reference.value_types import type_of

#: Nodes of a part beyond which it is no part any more.
_MOST_NODES = 2_000


class CannotCutOut(Exception):
    """The computation of the value cannot be a model of its own."""


@dataclass
class Part:
    """The computation of a value: nodes as they ran, the constants that they read, and their
    inputs, by the digest of the value of the original."""

    runs: list[Run] = field(default_factory=list)
    constants: list[Instance] = field(default_factory=list)
    given: list[tuple[bytes, Instance]] = field(default_factory=list)


def part_of(run: Run, key: Callable[[Instance], bytes | None]) -> Part:
    """Return the computation of a node from values that agree, whose `key` is the agreeing value,
    and the computation of its other operands.

    Raises:
        CannotCutOut: it depends on what a loop carries, which differs.
    """
    part, waiting = Part(), [run]
    seen: set[int] = set()
    seen_values: set[int] = set()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        part.runs.append(one)
        if len(part.runs) > _MOST_NODES:
            raise CannotCutOut("too many nodes lie between")
        for operand in one.reads.values():
            if operand.serial in seen_values:
                continue
            seen_values.add(operand.serial)
            if operand.constant:
                part.constants.append(operand)
            elif (agreed := key(operand)) is not None:
                part.given.append((agreed, operand))
            elif operand.run is not None:
                waiting.append(operand.run)
            elif operand.is_trivial:  # the number of the iteration
                part.given.append((operand.digest, operand))
            else:
                raise CannotCutOut(f"{operand.name} differs, which a loop hands to its body")
    return part


def as_model(
    trace: Trace,
    part: Part,
    made: Instance,
    inputs: Sequence[tuple[str, bytes, Value]],
    output: str,
) -> ModelProto:
    """A part as a model with these inputs (name, digest, value), and `made` as its output."""
    model = trace.model
    bodies = [graph for run in part.runs for _, graph in scoping.subgraphs(run.node)]
    names = Names({*scoping.all_names(bodies), *(name for name, _, _ in inputs), output})
    by_digest = {key: name for name, key, _ in inputs}
    named = {instance.serial: by_digest[key] for key, instance in part.given}
    constants: list[TensorProto] = []
    for one in part.constants:
        if not isinstance(one.value, np.ndarray):
            raise CannotCutOut(f"the constant {one.name} is not held")
        named[one.serial] = names.fresh(one.name)
        constants.append(numpy_helper.from_array(one.value, named[one.serial]))
    nodes: list[NodeProto] = []
    order = {id(run): place for place, run in enumerate(trace.runs)}
    for run in sorted(part.runs, key=lambda run: order.get(id(run), len(order))):
        nodes.append(_renamed(run, made, named, names, output))
    graph = helper.make_graph(
        nodes,
        "part",
        [ValueInfoProto(name=name, type=type_of(value)) for name, _, value in inputs],
        [ValueInfoProto(name=output, type=type_of(made.value, shaped=False))],
        constants,
    )
    around = part.runs[0].at
    while not isinstance(around.evaluator.proto_, FunctionProto) and around.holder is not None:
        around = around.holder.at
    return cut_out(model, graph, around.evaluator.proto_)


def _renamed(
    run: Run, made: Instance, named: dict[int, str], names: Names, output: str
) -> NodeProto:
    """A node that reads and makes values by the names that they have in the part."""
    node = copied(run.node)
    scoping.rename_free(node, {name: named[one.serial] for name, one in run.reads.items()})
    for place, one in enumerate(run.makes):
        if one is not None:
            named[one.serial] = output if one is made else names.fresh(one.name)
            node.output[place] = named[one.serial]
    if not run.makes:  # it failed
        node.output[0] = output
    return node
