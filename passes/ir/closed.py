"""A graph that reads nothing from outside: what it captures becomes inputs and constants."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import GraphProto, TensorProto, TypeProto

from passes.ir.protos import named

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
