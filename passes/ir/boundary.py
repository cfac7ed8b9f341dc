"""The boundary of a graph: what it captures becomes inputs and constants, and its outputs come from
nodes of its own.

onnxruntime returns uninitialised memory for an output of a body that is directly an input, an
initializer or an outer value, and for one value listed twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onnx import GraphProto, ModelProto, TensorProto, TypeProto, ValueInfoProto

from passes.ir import scope as scoping
from passes.ir.operators import plain_domain
from passes.ir.places import called_functions, import_contrib, imports_of
from passes.ir.protos import named
from passes.ir.versions import FREE_INITIALIZERS

#: An outer value: its tensor where it is fixed, else its type, None where that is unknown.
Outer = TensorProto | TypeProto | None


def close(graph: GraphProto, outer: Mapping[str, Outer]) -> None:
    """Declare outer values in a graph, in place: a tensor as an initializer, any other value as an
    input of its type, after the inputs that the graph has."""
    for name, value in outer.items():
        if isinstance(value, TensorProto):
            graph.initializer.append(named(value, name))
        else:
            graph.input.add(name=name, type=value)


def cut_out(model: ModelProto, graph: GraphProto, owner: scoping.Owner | None) -> ModelProto:
    """A closed graph of a model as a model: with the opsets of the main graph or function that
    owns it, and of what else the model calls, and the functions that it calls."""
    if model.ir_version < FREE_INITIALIZERS:
        scoping.list_initializers(graph)
    own = imports_of(model, owner)
    known = {plain_domain(entry.domain) for entry in own}
    others = [one for one in model.opset_import if plain_domain(one.domain) not in known]
    made = ModelProto(ir_version=model.ir_version, opset_import=[*own, *others])
    made.graph.CopyFrom(graph)
    import_contrib(made)
    made.functions.extend(called_functions(model, [made.graph]))
    return made


def own_outputs(
    body: GraphProto,
    fresh: Callable[[str], str],
    may: Callable[[ValueInfoProto], bool] = lambda value: True,
) -> None:
    """Give every output that has no node of its own an Identity, in place; `fresh` names its value,
    `may` tells whether an Identity can return it."""
    computed = {name for node in body.node for name in node.output}
    for value in body.output:
        if value.name in computed:
            computed.discard(value.name)
        elif may(value):
            return_copy(body, value, fresh(value.name))


def return_copy(body: GraphProto, output: ValueInfoProto, name: str) -> None:
    """Let an output of a body be a copy of what it was, under a name of its own."""
    body.node.add(op_type="Identity", input=[output.name], output=[name])
    output.name = name


def keep_outputs(body: GraphProto, mapping: Mapping[str, str]) -> None:
    """Return values that have other names now under their old ones: no other node may write an
    output."""
    for name in dict.fromkeys(scoping.output_names(body)):
        if name in mapping:
            body.node.add(op_type="Identity", input=[mapping[name]], output=[name])
