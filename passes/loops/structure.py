"""The structure of loops and Ifs, up to the names of values and the values of weights."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, TypeProto
from onnx.numpy_helper import to_array

from passes.ir.constants import Constants, constant_tensor
from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.ir.places import Key, Place, Scope, holds_graphs, imports_of

#: Element types of sizes, axes and trip counts, whose values decide what rules do.
_EXACT = frozenset(
    {
        *(TensorProto.INT64, TensorProto.INT32, TensorProto.UINT64, TensorProto.UINT32),
        *(TensorProto.BOOL, TensorProto.STRING),
    }
)
#: Bytes of such a constant beyond which it is taken for data.
_SMALL = 1 << 12
#: Numbers that rules recognise: neutral elements and masks.
_RECOGNISED = (0.0, 1.0, -1.0, math.inf, -math.inf)


@dataclass(frozen=True)
class _Graph:
    """A number that equal graphs share, and the outer values that it reads."""

    number: int
    captured: tuple[str, ...]


@dataclass
class _Values:
    """The values of a graph, numbered as they come up."""

    numbers: dict[str, int] = field(default_factory=dict)
    captured: dict[str, int] = field(default_factory=dict)
    _count: int = 0

    def define(self, names: Iterable[str]) -> None:
        """Number values that are defined."""
        for name in names:
            self.numbers[name] = self._count
            self._count += 1

    def read(self, names: Iterable[str]) -> tuple[int, ...]:
        """Return the numbers of values that are read; those that are not defined are captured."""
        found = []
        for name in names:
            number = self.numbers.get(name) if name else -1
            if number is None:
                number = self.numbers[name] = self.captured[name] = self._count
                self._count += 1
            found.append(number)
        return tuple(found)


@dataclass(frozen=True)
class Structures:
    """Numbers for the structures of the nodes of one model; each graph is read once."""

    model: Model
    _numbers: dict[Hashable, int] = field(default_factory=dict, repr=False)
    _graphs: dict[Key, _Graph] = field(default_factory=dict, repr=False)

    def of(self, place: Place) -> int:
        """Return a number, the same for nodes that differ in names and in weights at most.

        These count: operators, attributes, opsets, which node reads which value, the types of
        captured values, up to the names of symbolic dims, the values of small integer constants,
        and of other constants the type, and which of 0, 1, -1 and infinity a single number is.
        """
        values = _Values()
        node = self._node(place.node, place.index, place.scope, values)
        constants, symbols = Constants(self.model, place.scope), dict[str, int]()
        around = []
        for name in values.captured:
            tensor = constants.tensor(name)
            known = _type(self.model.types.of(place.scope, name), symbols)
            around.append((known, None if tensor is None else _tensor(tensor)))
        imports = imports_of(self.model.proto, place.scope.outermost.owner)
        opsets = frozenset((entry.domain, entry.version) for entry in imports)
        return self._number((opsets, node, tuple(around)))

    def _number(self, structure: Hashable) -> int:
        return self._numbers.setdefault(structure, len(self._numbers))

    def _graph(self, scope: Scope) -> _Graph:
        found = self._graphs.get(scope.key)
        if found is None:
            assert isinstance(scope.owner, GraphProto)  # a body, and no function
            found = self._graphs[scope.key] = self._read(scope, scope.owner)
        return found

    def _read(self, scope: Scope, graph: GraphProto) -> _Graph:
        values, symbols = _Values(), dict[str, int]()
        inputs, outputs = graph.input[:], graph.output[:]
        tensors, sparse = graph.initializer[:], graph.sparse_initializer[:]
        values.define(value.name for value in inputs)
        values.define(tensor.name for tensor in tensors)
        values.define(one.values.name for one in sparse)
        nodes = []
        for index, node in enumerate(graph.node[:]):
            nodes.append(self._node(node, index, scope, values))
            values.define(node.output[:])
        returned = values.read([value.name for value in outputs])
        structure = (
            tuple(_type(value.type, symbols) for value in inputs),
            tuple(map(_tensor, tensors)),
            tuple((_tensor(one.values), tuple(one.dims)) for one in sparse),
            tuple(nodes),
            tuple(values.captured.values()),
            returned,
            tuple(_type(value.type, symbols) for value in outputs),
        )
        return _Graph(self._number(structure), tuple(values.captured))

    def _node(self, node: NodeProto, index: int, scope: Scope, values: _Values) -> Hashable:
        operator = (op_of(node), node.overload)
        ends = (values.read(node.input[:]), tuple(map(bool, node.output[:])))
        if not node.attribute:
            return operator, ends
        # that of `value` is an attribute, which is not copied
        spelled = op_of(node) == "Constant" and node.attribute[0].name != "value"
        tensor = constant_tensor(node) if spelled else None
        if tensor is not None:
            return operator, ends, _tensor(tensor)
        if not holds_graphs(node):
            return operator, ends, tuple(map(_attribute, node.attribute[:]))
        plain = (one for one in node.attribute[:] if one.type not in _GRAPHS)
        bodies = []
        for inner in scope.inner(index):
            graph = self._graph(inner)
            bodies.append((inner.key[-1], graph.number, values.read(graph.captured)))
        return operator, ends, tuple(map(_attribute, plain)), tuple(bodies)


_GRAPHS = (AttributeProto.GRAPH, AttributeProto.GRAPHS)


def _attribute(attribute: AttributeProto) -> Hashable:
    if attribute.type == AttributeProto.TENSOR:
        return attribute.name, _tensor(attribute.t)
    return attribute.SerializeToString(deterministic=True)


def _tensor(tensor: TensorProto) -> Hashable:
    """Return the part of a constant that counts."""
    kind, dims = tensor.data_type, tuple(tensor.dims[:])
    if tensor.data_location == TensorProto.EXTERNAL:
        return kind, dims
    if kind in _EXACT:
        if tensor.ByteSize() > _SMALL:
            return kind, dims
        numbers = (*tensor.int64_data[:], *tensor.int32_data[:], *tensor.uint64_data[:])
        return kind, dims, tensor.raw_data, numbers, tuple(tensor.string_data[:])
    if math.prod(dims) != 1:
        return kind, dims
    number = complex(to_array(tensor).item()).real
    return kind, dims, number if number in _RECOGNISED else None


def _type(known: TypeProto | None, symbols: dict[str, int]) -> Hashable:
    """Return a type, its symbolic dims numbered."""
    if known is None or known.WhichOneof("value") is None:
        return None
    if known.WhichOneof("value") != "tensor_type":
        return known.SerializeToString(deterministic=True)
    tensor = known.tensor_type
    if not tensor.HasField("shape"):
        return tensor.elem_type
    dims = tuple(
        ("symbol", symbols.setdefault(dim.dim_param, len(symbols)))
        if dim.dim_param
        else dim.dim_value
        if dim.HasField("dim_value")
        else None
        for dim in tensor.shape.dim
    )
    return tensor.elem_type, dims
