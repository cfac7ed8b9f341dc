"""Calls of operators as terms, bodies included: equal terms are equal calls."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from onnx import FunctionProto, GraphProto, NodeProto, TensorProto, ValueInfoProto

from passes.ir.constants import constant_tensor
from passes.ir.model import Model
from passes.ir.operators import called_key, function_key, op_of, plain_domain
from passes.ir.places import subgraphs
from passes.ir.scope import free_names
from passes.proving.nodes import meaning, versions
from passes.proving.symbolic_evaluator import Application
from passes.proving.terms.arrays import Array, NotProvable
from passes.proving.terms.constants import digest
from passes.proving.terms.term import Interned, Term
from passes.types.value_types import dims_of, elem_type_of
from passes.verify.reference.library import call_attributes, specialise

#: The terms that stand for a value that a call reads.
Leaf = Callable[[Array], Sequence[Term]]
#: If both models have at least this many nodes in common, the values of these are symbols.
_MANY = 100
#: What tells a call from others.
Key = tuple[object, ...]


@dataclass
class Calls:
    """The calls that the original makes for certain, each with the values that it reads, which are
    kept so that no others get their ids, and those that it returns. `leaves` are the inputs and
    constants of both models. `newer`: no operator of the new model is of an older version, which
    may fail where the original answers, so that versions that mean the same are one. `symbols` are
    values of the original that are any floats, since both models make them alike."""

    newer: bool = True
    symbols: frozenset[str] = frozenset()
    leaves: dict[Hashable, Array] = field(default_factory=dict)
    known: dict[Key, tuple[Sequence[Array], list[Array]]] = field(default_factory=dict)

    def empty(self) -> Calls:
        """No calls so far."""
        return Calls(self.newer, self.symbols)

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
    evaluator = call.evaluator
    args = [term for array in call.inputs if array is not None for term in leaf(array)]
    structure = Structure(
        evaluator.model,
        call.algebra.terms,
        call.opsets,
        evaluator.calls.newer,
        lambda name: leaf(call.value(name)),
    )
    data, inner = structure.call(call.node)
    return data, [*args, *inner]


@dataclass(frozen=True)
class MainGraph:
    """The main graph of a model: its values by name, its nodes with their terms, its outputs."""

    values: Mapping[str, Term]
    nodes: Sequence[tuple[NodeProto, Term]]
    outputs: Sequence[str]

    @classmethod
    def of(cls, model: Model, terms: Interned, newer: bool) -> MainGraph:
        """The main graph of a model. Raises NotProvable if a part of it has no term."""
        opsets = {plain_domain(one.domain): one.version for one in model.proto.opset_import}
        structure = Structure(model, terms, opsets, newer, _outer)
        graph = model.proto.graph
        for value in graph.input:
            structure.values[value.name] = terms.make("in", value.name)
        fed = {value.name for value in graph.input}
        structure.constants([one for one in graph.initializer if one.name not in fed])
        nodes = [(node, structure.node(node)) for node in graph.node]
        return cls(structure.values, nodes, [one.name for one in graph.output])

    @cached_property
    def calls(self) -> set[Term]:
        """The terms of all nodes."""
        return {one for _, one in self.nodes}

    def is_part_of(self, other: MainGraph) -> bool:
        """Return whether all nodes of this graph are nodes of another one, and the outputs are
        equal."""
        same = (self.values[one] is other.values[one] for one in self.outputs)
        return self.calls <= other.calls and all(same)

    def shared_reads(self, other: MainGraph) -> frozenset[str]:
        """The values that nodes of both graphs compute, and a node of only one of them reads; empty
        if the graphs have few nodes in common."""
        both = self.calls & other.calls
        read = {
            main.values[name]
            for main in (self, other)
            for node, one in main.nodes
            if one not in both
            for name in free_names(node)
            if name
        }
        found = (
            name
            for name, one in self.values.items()
            if one in read and one.op == "part" and one.args[0] in both
        )
        return frozenset(found if len(both) >= _MANY else ())


def _outer(name: str) -> Sequence[Term]:
    raise NotProvable("model", f"{name!r} does not exist")


def _trimmed(given: list[bool]) -> tuple[bool, ...]:
    while given and not given[-1]:
        given.pop()
    return tuple(given)


@dataclass
class Structure:
    """The values of a graph as terms that are equal where equal calls make them: `values` by name,
    those of graphs around it included; any other is captured, and `captured` returns its terms.
    `level` is how deep the graph is nested in the call that is described."""

    model: Model
    terms: Interned
    opsets: Mapping[str, int]
    newer: bool
    captured: Callable[[str], Sequence[Term]]
    values: dict[str, Term] = field(default_factory=dict)
    level: int = 0

    def call(self, node: NodeProto) -> tuple[Key, list[Term]]:
        """The data of a call and its bodies, that of a function included.

        The data are the operator, its meaning, the operands that are given, and the outputs that
        are read: what some operators compute depends on the number of outputs.
        """
        given, outputs = (_trimmed(list(map(bool, names))) for names in (node.input, node.output))
        for function in self.model.proto.functions:
            if function_key(function) == called_key(node):
                return ("function", op_of(node), outputs, given), [self._function(node, function)]
        version, attributes = meaning(node, self.opsets, newer=self.newer)
        operator = plain_domain(node.domain), op_of(node), node.overload
        inner = sorted(subgraphs(node), key=lambda one: one[0])
        return (*operator, version, attributes, outputs, given), [
            replace(self, values=dict(self.values), level=self.level + 1)._graph(name, graph)
            for name, graph in inner
        ]

    def constants(self, tensors: Iterable[TensorProto]) -> None:
        """Add values that are constants."""
        for tensor in tensors:
            self.values[tensor.name] = self._tensor(tensor)

    def _tensor(self, tensor: TensorProto) -> Term:
        return self.terms.make("tensor", digest(self.model.read(tensor)))

    def _graph(self, name: str, graph: GraphProto) -> Term:
        if graph.sparse_initializer:
            raise NotProvable("sparse", "a sparse initializer is not modelled")
        for place, value in enumerate(graph.input):
            self.values[value.name] = self.terms.make("in", (self.level, place))
        self.constants(graph.initializer)
        kinds = tuple(map(_fixed, (*graph.input, *graph.output)))
        outputs = [one.name for one in graph.output]
        return self._body((name, self.level, kinds), graph.node, outputs)

    def _function(self, node: NodeProto, function: FunctionProto) -> Term:
        body, level = specialise(function, call_attributes(node, function)), self.level + 1
        values = {name: self.terms.make("in", (level, n)) for n, name in enumerate(body.input)}
        opsets = versions(body.opset_import)
        inner = replace(self, opsets=opsets, captured=_outer, values=values, level=level)
        return inner._body(level, body.node, body.output)

    def _body(self, data: Hashable, nodes: Iterable[NodeProto], names: Iterable[str]) -> Term:
        made = [self.node(node) for node in nodes]
        outputs = list(map(self._value, names))
        reached = {part for one in outputs for part in _computed(one)}
        unread = sorted({one for one in made if one not in reached}, key=lambda one: one.uid)
        return self.terms.make("graph", data, [*outputs, *unread])

    def node(self, node: NodeProto) -> Term:
        """The term of a node, whose outputs are values from here on."""
        tensor = constant_tensor(node)
        if tensor is not None:
            made = self.values[node.output[0]] = self._tensor(tensor)
            return made
        args = [self._value(name) for name in node.input if name]
        data, inner = self.call(node)
        made = self.terms.make("call", data, [*args, *inner])
        for place, name in enumerate(node.output):
            if name:
                self.values[name] = self.terms.make("part", (place,), [made])
        return made

    def _value(self, name: str) -> Term:
        known = self.values.get(name)
        if known is None:
            known = self.terms.make("captured", None, self.captured(name))
            self.values[name] = known
        return known


def _computed(term: Term) -> set[Term]:
    """The parts of a term that its own graph computes: bodies within it need not run."""
    found: set[Term] = set()
    pending = [term]
    while pending:
        one = pending.pop()
        if one not in found:
            found.add(one)
            pending += one.args if one.op not in ("captured", "graph") else ()
    return found


def _fixed(value: ValueInfoProto) -> object:
    """What a body declares of a value, without names of sizes: executors rely on it."""
    dims = dims_of(value.type)
    sizes = dims and tuple(dim if isinstance(dim, int) else None for dim in dims)
    return elem_type_of(value.type), sizes
