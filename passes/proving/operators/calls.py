"""Calls of operators as terms, bodies included: equal terms are equal calls."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto

from passes.ir.constants import constant_tensor
from passes.ir.model import Model
from passes.ir.operators import called_key, function_key, op_of, plain_domain
from passes.ir.places import subgraphs
from passes.ir.scope import free_names
from passes.proving.nodes import meaning
from passes.proving.symbolic_evaluator import Application
from passes.proving.terms.algebra import Algebra
from passes.proving.terms.arrays import Array, NotProvable
from passes.proving.terms.constants import digest
from passes.proving.terms.term import Interned, Term
from passes.types.value_types import dims_of, elem_type_of

#: The terms that stand for a value that a call reads.
Leaf = Callable[[Array], Sequence[Term]]
#: From how many nodes on that both models have alike, what they make is not looked into.
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
    node, evaluator = call.node, call.evaluator
    args = [term for array in call.inputs if array is not None for term in leaf(array)]
    given = [array is not None for array in call.inputs]
    body = Structure(
        evaluator.model,
        call.algebra.terms,
        call.opsets,
        evaluator.calls.newer,
        lambda name: leaf(call.value(name)),
    )
    return (*body.data(node), _trimmed(given)), [*args, *body.graphs(node)]


def common_reads(before: Model, after: Model, algebra: Algebra, newer: bool) -> frozenset[str]:
    """The values of the main graph of the original that many nodes of both models make alike, and a
    node of one model alone reads; none if few nodes are alike."""
    made = []
    for model in (before, after):
        opsets = {plain_domain(one.domain): one.version for one in model.proto.opset_import}
        made.append(Structure(model, algebra.terms, opsets, newer, _outer).main())
    calls = [{one for _, one in pairs} for _, pairs in made]
    both = calls[0] & calls[1]
    if len(both) < _MANY:
        return frozenset()
    read = {
        values[name]
        for values, pairs in made
        for node, one in pairs
        if one not in both
        for name in free_names(node)
        if name
    }
    return frozenset(
        name
        for name, one in made[0][0].items()
        if one in read and one.op == "part" and one.args[0] in both
    )


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

    def main(self) -> tuple[dict[str, Term], list[tuple[NodeProto, Term]]]:
        """The values of the main graph by name, and its nodes with their terms."""
        graph = self.model.proto.graph
        for value in graph.input:
            self.values[value.name] = self.terms.make("in", value.name)
        fed = {value.name for value in graph.input}
        self._constants([one for one in graph.initializer if one.name not in fed])
        return self.values, [(node, self._node(node)) for node in graph.node]

    def data(self, node: NodeProto) -> Key:
        """The operator, its meaning, and the outputs that are read: their number decides what some
        compute."""
        version, attributes = meaning(node, self.opsets, newer=self.newer)
        outputs = _trimmed([bool(name) for name in node.output])
        return plain_domain(node.domain), op_of(node), node.overload, version, attributes, outputs

    def graphs(self, node: NodeProto) -> list[Term]:
        """The bodies of a node."""
        inner = sorted(subgraphs(node), key=lambda one: one[0])
        return [
            replace(self, values=dict(self.values), level=self.level + 1)._graph(name, graph)
            for name, graph in inner
        ]

    def _constants(self, tensors: Iterable[TensorProto]) -> None:
        for tensor in tensors:
            self.values[tensor.name] = self._tensor(tensor)

    def _tensor(self, tensor: TensorProto) -> Term:
        return self.terms.make("tensor", digest(self.model.read(tensor)))

    def _graph(self, name: str, graph: GraphProto) -> Term:
        if graph.sparse_initializer:
            raise NotProvable("sparse", "a sparse initializer is not modelled")
        for place, value in enumerate(graph.input):
            self.values[value.name] = self.terms.make("in", (self.level, place))
        self._constants(graph.initializer)
        made = [self._node(node) for node in graph.node]
        outputs = [self._value(one.name) for one in graph.output]
        reached = {part for one in outputs for part in _computed(one)}
        unread = sorted({one for one in made if one not in reached}, key=lambda one: one.uid)
        kinds = tuple(map(_fixed, (*graph.input, *graph.output)))
        return self.terms.make("graph", (name, self.level, kinds), [*outputs, *unread])

    def _node(self, node: NodeProto) -> Term:
        if any(function_key(one) == called_key(node) for one in self.model.proto.functions):
            raise NotProvable("function", "a call of a function of the model is not described")
        tensor = constant_tensor(node)
        if tensor is not None:
            made = self.values[node.output[0]] = self._tensor(tensor)
            return made
        given = [bool(name) for name in node.input]
        args = [self._value(name) for name in node.input if name]
        data = (*self.data(node), _trimmed(given))
        made = self.terms.make("call", data, [*args, *self.graphs(node)])
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
