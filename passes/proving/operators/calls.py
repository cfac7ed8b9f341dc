"""Calls of operators as terms, bodies included: equal terms are equal calls."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, ValueInfoProto, defs, helper, numpy_helper

from passes.converters.steps import Identical
from passes.converters.table import steps
from passes.ir.constants import constant_tensor
from passes.ir.operators import called_key, function_key, is_onnx_domain, op_of, plain_domain
from passes.ir.places import subgraphs
from passes.proving.operators.elementwise import exact
from passes.proving.symbolic_evaluator import Application, attributes_of
from passes.proving.terms.arrays import Array, NotProvable
from passes.proving.terms.term import Term
from passes.types.value_types import dims_of, elem_type_of

#: The terms that stand for a value that a call reads.
Leaf = Callable[[Array], Sequence[Term]]
#: What tells a call from others.
Key = tuple[object, ...]


@dataclass
class Calls:
    """The calls that the original makes for certain, each with the values that it reads, which are
    kept so that no others get their ids, and those that it returns. `leaves` are the inputs and
    constants of both models. `newer`: no operator of the new model is of an older version, which
    may fail where the original answers, so that versions that mean the same are one."""

    newer: bool = True
    leaves: dict[Hashable, Array] = field(default_factory=dict)
    known: dict[Key, tuple[Sequence[Array], list[Array]]] = field(default_factory=dict)

    def find(self, call: Application) -> tuple[Key | None, Sequence[Array], list[Array] | None]:
        """The key of a call, the values that it reads, and those that the equal call of the
        original returns."""
        read: list[Array] = []

        def leaf(array: Array) -> Sequence[Term]:
            read.append(array)
            return [call.algebra.terms.make("value", id(array))]

        try:
            data, args = called(call, leaf)
        except NotProvable:
            return None, read, None
        key = (*data, *(one.uid for one in args))
        found = self.known.get(key)
        return key, read, found and found[1]


def called(call: Application, leaf: Leaf) -> tuple[Key, list[Term]]:
    """The data and the arguments of a call as a term.

    Raises:
        NotProvable: a body calls a function of the model, or has a form that is not modelled.
    """
    node = call.node
    args = [term for array in call.inputs if array is not None for term in leaf(array)]
    given = [array is not None for array in call.inputs]
    body = _Body(call, leaf, {}, 0)
    return (*_data(node, call), _trimmed(given)), [*args, *body.graphs(node)]


def _data(node: NodeProto, call: Application) -> Key:
    """The operator, its meaning, and the outputs that are read: their number decides what some
    compute."""
    version, attributes = meaning(node, call.opsets, newer=call.evaluator.calls.newer)
    outputs = _trimmed([bool(name) for name in node.output])
    return plain_domain(node.domain), op_of(node), node.overload, version, attributes, outputs


def _trimmed(given: list[bool]) -> tuple[bool, ...]:
    while given and not given[-1]:
        given.pop()
    return tuple(given)


@dataclass
class _Body:
    """The values of a body as terms: `values` by name, those of bodies around it included; any
    other is captured of the graph in which the call is. `level` is how deep it is nested."""

    call: Application
    leaf: Leaf
    values: dict[str, Term]
    level: int

    def graphs(self, node: NodeProto) -> list[Term]:
        """The bodies of a node."""
        inner = sorted(subgraphs(node), key=lambda one: one[0])
        return [
            _Body(self.call, self.leaf, dict(self.values), self.level + 1)._graph(name, graph)
            for name, graph in inner
        ]

    def _graph(self, name: str, graph: GraphProto) -> Term:
        make, read = self.call.algebra.terms.make, self.call.evaluator.model.read
        if graph.sparse_initializer:
            raise self.call.cannot("sparse", "a sparse initializer is not modelled")
        for place, value in enumerate(graph.input):
            self.values[value.name] = make("in", (self.level, place))
        for tensor in graph.initializer:
            self.values[tensor.name] = make("tensor", _exact(read(tensor)))
        made = [self._node(node) for node in graph.node]
        outputs = [self._value(one.name) for one in graph.output]
        reached = {part for one in outputs for part in _parts(one)}
        unread = sorted({one for one in made if one not in reached}, key=lambda one: one.uid)
        kinds = tuple(map(_fixed, (*graph.input, *graph.output)))
        return make("graph", (name, self.level, kinds), [*outputs, *unread])

    def _node(self, node: NodeProto) -> Term:
        model, make = self.call.evaluator.model, self.call.algebra.terms.make
        if any(function_key(one) == called_key(node) for one in model.proto.functions):
            raise self.call.cannot("function", "a body calls a function of the model")
        tensor = constant_tensor(node)
        if tensor is not None:
            made = make("tensor", _exact(model.read(tensor)))
            self.values[node.output[0]] = made
            return made
        given = [bool(name) for name in node.input]
        args = [self._value(name) for name in node.input if name]
        data = (*_data(node, self.call), _trimmed(given))
        made = make("call", data, [*args, *self.graphs(node)])
        for place, name in enumerate(node.output):
            if name:
                self.values[name] = make("part", (place,), [made])
        return made

    def _value(self, name: str) -> Term:
        known = self.values.get(name)
        if known is None:
            captured = self.leaf(self.call.value(name))
            known = self.values[name] = self.call.algebra.terms.make("captured", None, captured)
        return known


def _parts(term: Term) -> set[Term]:
    found: set[Term] = set()
    pending = [term]
    while pending:
        one = pending.pop()
        if one not in found:
            found.add(one)
            pending += one.args if one.op != "captured" else ()
    return found


def _fixed(value: ValueInfoProto) -> object:
    """What a body declares of a value, without names of sizes: executors rely on it."""
    dims = dims_of(value.type)
    sizes = dims and tuple(dim if isinstance(dim, int) else None for dim in dims)
    return elem_type_of(value.type), sizes


def meaning(
    node: NodeProto, opsets: Mapping[str, int], *, newer: bool = True
) -> tuple[int, tuple[object, ...]]:
    """The version of a node, or the newest one in which it means the same, and its attributes
    there, without bodies."""
    if not is_onnx_domain(node.domain):
        given = helper.get_attribute_value
        plain = [one for one in node.attribute if not (one.HasField("g") or one.graphs)]
        return opsets.get(node.domain, 0), _described({one.name: given(one) for one in plain})
    version = defs.get_schema(op_of(node), opsets[""], "").since_version
    for step in steps(op_of(node), opsets[""], defs.onnx_opset_version()) if newer else ():
        if not isinstance(step, Identical):
            break
        version = step.version
    return version, _described(attributes_of(node, version))


def _described(attributes: Mapping[str, Any]) -> tuple[object, ...]:
    """Attributes as a part of a term."""
    return tuple((n, _exact(v)) for n, v in sorted(attributes.items()) if v is not None)


def _exact(value: Any) -> object:
    if hasattr(value, "SerializeToString"):
        value = numpy_helper.to_array(value)
    if isinstance(value, np.ndarray):
        items = value.tolist() if value.dtype == object else value.tobytes()
        return ("tensor", str(value.dtype), value.shape, repr(items))
    return exact(tuple(value) if isinstance(value, list) else value)
