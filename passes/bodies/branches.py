"""The writer of Ifs with two branches."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import nullcontext
from dataclasses import dataclass

from onnx import GraphProto, NodeProto, TensorAnnotation, TypeProto, ValueInfoProto, helper

from passes.bodies.tidy import Tidy, without_copies
from passes.ir.draft import ITERATION_KEY
from passes.ir.purposes import Purpose
from passes.operators.exactness import Array
from passes.writing.author import Author


@dataclass(frozen=True)
class Results:
    """The outputs of a branch, with types and annotations of the values computed in it."""

    names: Sequence[str]
    value_info: Sequence[ValueInfoProto] = ()
    annotations: Sequence[TensorAnnotation] = ()


@dataclass(frozen=True)
class Branch:
    """The writer of a branch, with an author of its own.

    `label` goes into the names of its values, `name` is that of the graph, by default the label
    after the prefix. `extra`: the branch serves only the purpose of the If.
    """

    label: str
    write: Callable[[Author], Results]
    extra: bool = False
    name: str = ""


@dataclass(frozen=True)
class Cleaning:
    """The context in which `Tidy` cleans a branch: `outer` returns constants from outside,
    `type_of` the types that are certain; nodes that compute `doubts` stay even if unread."""

    outer: Callable[[str], Array | None]
    type_of: Callable[[str], TypeProto | None]
    doubts: AbstractSet[str] = frozenset()


def either(
    author: Author,
    condition: str,
    then: Branch,
    other: Branch,
    outputs: Sequence[str],
    types: Sequence[TypeProto | None],
    *,
    purpose: Purpose | None = None,
    cleaning: Cleaning | None = None,
    iteration: str = "",
    other_first: bool = False,
) -> None:
    """Write an If with these `outputs`, whose types both branches declare where they are known.

    `then` is written before the `other` branch, unless that comes first; with `cleaning`, copies,
    constants and unread nodes in them are removed. `purpose` is that of the If. `iteration` names
    the one that it holds: it stays even if it is unread, since it might fail.
    """
    node = NodeProto(op_type="If", input=[condition], output=outputs)
    branches = [("then_branch", then), ("else_branch", other)]
    for attribute, branch in reversed(branches) if other_first else branches:
        with author.serving(purpose) if purpose and branch.extra else nullcontext():
            inner = author.inside("/".join(filter(None, (author.prefix, branch.label))))
        results = branch.write(inner)
        graph = _graph(inner, branch.name or inner.prefix, results, types, cleaning)
        node.attribute.append(helper.make_attribute(attribute, graph))
    if iteration:
        node.metadata_props.add(key=ITERATION_KEY, value=iteration)
    with author.serving(purpose) if purpose else nullcontext():
        author.adopt([node])


def _graph(
    inner: Author,
    name: str,
    results: Results,
    types: Sequence[TypeProto | None],
    cleaning: Cleaning | None,
) -> GraphProto:
    """Return the graph that `inner` wrote; if it is cleaned, with an Identity for values that are
    only passed on."""
    outputs = list(results.names)
    if cleaning is None:
        nodes, constants = inner.read(outputs), inner.constants
    else:
        outputs = [inner.op("Identity", output) for output in outputs]
        nodes, constants = Tidy(
            inner,
            frozenset(outputs),
            cleaning.outer,
            cleaning.type_of,
            finals=False,
            doubts=cleaning.doubts,
        ).clean()
        nodes, outputs = without_copies(nodes, outputs)
    computed = {output for node in nodes for output in node.output}
    declared = zip(outputs, types, strict=True)
    graph = helper.make_graph(
        nodes,
        re.sub(r"\W", "_", name),  # onnx's text format cannot read others
        [],
        [ValueInfoProto(name=output, type=known) for output, known in declared],
        constants,
        value_info=[
            value for value in results.value_info if value.name in computed.difference(outputs)
        ],
    )
    kept = [annotation for annotation in results.annotations if annotation.tensor_name in computed]
    graph.quantization_annotation.extend(kept)
    return graph
