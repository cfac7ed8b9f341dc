"""A branch of an If, from what an author wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet

from onnx import GraphProto, NodeProto, TensorAnnotation, TypeProto, ValueInfoProto, helper

from passes.analysis.integers.folding import Array
from passes.writing.author import Author
from passes.writing.body_outputs import without_copies
from passes.writing.branch_types import declared
from passes.writing.draft import ITERATION_KEY
from passes.writing.tidy import Tidy


def branch_graph(
    inner: Author,
    name: str,
    given: Sequence[str],
    types: Iterable[TypeProto | None],
    *,
    outer: Callable[[str], Array | None],
    type_of: Callable[[str], TypeProto | None],
    value_info: Iterable[ValueInfoProto] = (),
    annotations: Iterable[TensorAnnotation] = (),
    doubts: AbstractSet[str] = frozenset(),
) -> GraphProto:
    """What `inner` wrote, cleaned, and an Identity for each value that the branch only hands on.

    `outer` knows constants of the surroundings, `type_of` the types that are certain; what
    computes `doubts` stays though nobody reads it.
    """
    outputs = [inner.op("Identity", one) for one in given]
    tidy = Tidy(inner, frozenset(outputs), outer, type_of, finals=False, doubts=doubts)
    nodes, constants = tidy.clean()
    nodes, outputs = without_copies(nodes, outputs)
    made = {one for node in nodes for one in node.output}
    graph = helper.make_graph(
        nodes,
        name,
        [],
        [declared(one, known) for one, known in zip(outputs, types, strict=True)],
        constants,
        value_info=[one for one in value_info if one.name in made.difference(outputs)],
    )
    kept = [one for one in annotations if one.tensor_name in made]
    graph.quantization_annotation.extend(kept)
    return graph


def branching(
    condition: str, outputs: Sequence[str], then: GraphProto, other: GraphProto, tag: str
) -> NodeProto:
    """An If that holds an iteration: it stays though nobody reads it, for it might fail."""
    node = helper.make_node("If", [condition], outputs)
    node.attribute.append(helper.make_attribute("then_branch", then))
    node.attribute.append(helper.make_attribute("else_branch", other))
    node.metadata_props.add(key=ITERATION_KEY, value=tag)
    return node
