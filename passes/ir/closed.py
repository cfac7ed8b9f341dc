"""A graph that reads nothing from outside: what it captures becomes inputs and constants."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import GraphProto, ModelProto, TensorProto, TypeProto

from passes.ir import scope as scoping
from passes.ir.calls import called_functions
from passes.ir.imports import import_contrib
from passes.ir.operators import plain_domain
from passes.ir.places import imports_of
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
