"""Cuts a site out as a model of its own: captured values become inputs."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TensorShapeProto,
    TypeProto,
    ValueInfoProto,
    helper,
)

from passes.analysis.integers.affine import Affine
from passes.analysis.integers.integers import Integers
from passes.engine.rounds import Rewritten, Round
from passes.ir import scope as scoping
from passes.ir.attributes import has_references
from passes.ir.boundary import cut_out
from passes.ir.constants import Constants
from passes.ir.names import Names
from passes.ir.protos import copied
from passes.ir.scope import Owner, Place, Scope
from passes.rule import Site
from passes.types.value_types import INFERRED, Dim, dims_of, is_known, shapes_below, tensor_type


class CannotCut(Exception):
    """The site cannot be a model of its own: it refers to attributes of the function around it."""


@dataclass(frozen=True)
class Region:
    """Both sides of an Edit as models with the same inputs and outputs.

    `guessed`: inference knows no shape of some input, so what is drawn for it need not fit.
    """

    before: ModelProto
    after: ModelProto
    guessed: bool = False

    def identity(self) -> bytes:
        """Equal for regions that differ in the names of values, nodes and symbolic dims at most."""
        return b"".join(_digest_up_to_names(side) for side in (self.before, self.after))


def cut(
    round_: Round,
    rewritten: Rewritten,
    seen: Sequence[Mapping[str, object]] = (),
    moved: Callable[[TensorProto], TensorProto] = lambda tensor: tensor,
) -> Region:
    """Cut a rewritten site out of the model before and after.

    `seen` are values that the captured names really had; they also give the types that
    inference could not. `moved` gives constants as the region is to hold them.

    Raises:
        CannotCut: a node refers to an attribute of its function.
    """
    place, edit = rewritten.place, rewritten.edit
    context = _context_renamed(rewritten)
    before_it = [*context, *rewritten.replaced]
    after_it = [*context, *edit.nodes]
    if any(_refers_to_attributes(node) for node in (*before_it, *edit.nodes)):
        raise CannotCut("it refers to attributes of the function around it")
    reads = rewritten.reads
    fixed = {name: tensor for name in reads if (tensor := _fixed(round_, place.scope, name))}
    inputs = [_input(round_, place.scope, name, seen) for name in reads if name not in fixed]
    _declare_sizes(inputs, round_, place)
    outputs = [_output(round_, place.scope, name) for name in rewritten.writes]
    top = place.scope.outermost
    ends = (inputs, outputs)
    before = _model(round_.model.proto, top, before_it, map(moved, fixed.values()), *ends)
    constants = {one.name: one for one in (*fixed.values(), *edit.initializers)}
    constants |= _fixed_of(round_, rewritten, {*reads, *constants})
    after = _model(round_.proto, top, after_it, map(moved, constants.values()), *ends)
    known = [round_.model.types.of(place.scope, one.name) for one in inputs]
    guessed = not all(one is not None and _has_shape(one) for one in known)
    return Region(before, after, guessed)


def _context_renamed(rewritten: Rewritten) -> list[NodeProto]:
    """Return the nodes before the site, some of them in graphs around it: their bodies get new
    names if they and the region, joined in one graph, define the same ones."""
    nodes = [*rewritten.context, *rewritten.replaced, *rewritten.edit.nodes]
    taken = {name for node in nodes for name in node.output}.union(rewritten.reads)
    return [_renamed(node, nodes, taken) for node in rewritten.context]


def _renamed(node: NodeProto, nodes: Sequence[NodeProto], taken: set[str]) -> NodeProto:
    """A node, its bodies in new names where they define some that are taken in their region."""
    bodies = [graph for _, graph in scoping.subgraphs(node)]
    inner = [graph for body in bodies for graph in scoping.graphs_below(body)]
    if all(taken.isdisjoint(scoping.defined(graph)) for graph in inner):
        return node
    copy = copied(node)
    names = Names({*taken, *scoping.all_names([helper.make_graph(nodes, "", [], [])])})
    for _, graph in scoping.subgraphs(copy):
        scoping.rename_all(graph, names.fresh)
    return copy


def _has_shape(known: TypeProto) -> bool:
    """Return whether the rank is known, if the value is a tensor."""
    if known.WhichOneof("value") != "tensor_type":
        return is_known(known)
    return bool(known.tensor_type.HasField("shape"))


def _fixed_of(round_: Round, rewritten: Rewritten, known: set[str]) -> dict[str, TensorProto]:
    """The constants around the site that only the Edit reads, not the nodes that go."""
    scope = rewritten.place.scope
    names = (name for node in rewritten.edit.nodes for name in scoping.free_names(node))
    found = {name: _fixed(round_, scope, name) for name in names if name not in known}
    return {name: tensor for name, tensor in found.items() if tensor is not None}


def _refers_to_attributes(node: NodeProto) -> bool:
    return has_references(node) or any(map(_refers_to_attributes, scoping.inner_nodes(node)))


def _fixed(round_: Round, scope: Scope, name: str) -> TensorProto | None:
    """Return the tensor of a name that no caller can change, external data by reference."""
    return Constants(round_.model, scope).tensor(name)


def _input(
    round_: Round, scope: Scope, name: str, seen: Sequence[Mapping[str, object]]
) -> ValueInfoProto:
    known = round_.model.types.of(scope, name)
    value = ValueInfoProto(name=name)
    if known is not None and is_known(known):
        value.type.CopyFrom(known)
        if _has_shape(known):
            return value
    sample = next((one[name] for one in seen if isinstance(one.get(name), np.ndarray)), None)
    if isinstance(sample, np.ndarray):
        elem_type = helper.np_dtype_to_tensor_dtype(sample.dtype)
        value.type.CopyFrom(tensor_type(elem_type, (None,) * sample.ndim))
    return value


def _declare_sizes(inputs: Sequence[ValueInfoProto], round_: Round, place: Place) -> None:
    """Give dims that inference left open, or made up a symbol for, the size that the model around
    the region computes: a number, or the symbol of an input's dim that is the same size.

    Exporters write a zero state as `Expand(0, Concat(Shape(x)[:1], [4]))`; drawn with other
    sizes, such a state does not fit the loop that reads it.
    """
    tensors = [one for one in inputs if dims_of(one.type)]
    if not any(_is_open(dim) for one in tensors for dim in dims_of(one.type) or ()):
        return
    integers = Integers(Site.at(round_.model, place))
    known: dict[Affine, Dim] = {}
    open_: list[tuple[TensorShapeProto.Dimension, Affine]] = []
    for value in tensors:
        for axis, dim in enumerate(dims_of(value.type) or ()):
            size = integers.size(value.name, axis)
            if size is None:
                continue
            if not _is_open(dim):
                known.setdefault(size, dim)
                continue
            open_.append((value.type.tensor_type.shape.dim[axis], size))
    for entry, size in open_:
        dim = size.number if size.number is not None else known.get(size)
        if isinstance(dim, int) and dim >= 0:
            entry.dim_value = dim
        elif isinstance(dim, str):
            entry.dim_param = dim
        else:
            known[size] = entry.dim_param or None


def _is_open(dim: Dim) -> bool:
    return dim is None or (isinstance(dim, str) and dim.startswith(INFERRED))


def _output(round_: Round, scope: Scope, name: str) -> ValueInfoProto:
    return ValueInfoProto(name=name, type=round_.model.types.of(scope, name))


def _model(
    model: ModelProto,
    top: Scope,
    nodes: Sequence[NodeProto],
    constants: Iterable[TensorProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto],
) -> ModelProto:
    """One side as a model. Its inputs are not those that its nodes capture (`passes.ir.boundary`):
    both sides have the same ones, whether or not each reads them all."""
    graph = helper.make_graph(nodes, "region", inputs, outputs, list(constants))
    position = int(top.key[0])
    return cut_out(model, graph, model.functions[position - 1] if position else None)


def _digest_up_to_names(model: ModelProto) -> bytes:
    """SHA-256, equal for models that differ in the names of values, nodes and symbolic dims at
    most."""
    copy = copied(model)
    _anonymize(copy)
    return hashlib.sha256(copy.SerializeToString(deterministic=True)).digest()


def _anonymize(model: ModelProto) -> None:
    """Number all values and nodes, so that only structure, types and constants are left."""
    counter = itertools.count()
    graph = model.graph
    # no file has such names: a body may define a v1 of its own

    def fresh(_: str) -> str:
        return f"\0{next(counter)}"

    mapping = {name: fresh(name) for name in _in_order(graph)}
    for node in graph.node:
        scoping.rename_free(node, mapping)
        for position, name in enumerate(node.output):
            node.output[position] = mapping.get(name, name)
        for _, inner in scoping.subgraphs(node):
            scoping.rename_all(inner, fresh)
    ends: list[ValueInfoProto] = [*graph.input, *graph.output]
    for value in ends:
        value.name = mapping[value.name]
    for tensor in graph.initializer:
        tensor.name = mapping[tensor.name]
    symbols: dict[str, str] = {}
    for owner in scoping.graphs_below(graph):
        _drop_labels(owner)
        if isinstance(owner, GraphProto):
            for value in (*owner.input, *owner.output, *owner.value_info):
                _number_symbols(value.type, symbols)


def _number_symbols(kind: TypeProto, symbols: dict[str, str]) -> None:
    """Number the symbolic dims of a type; those that inference made up stay recognizable, as the
    reference executor takes them for unknown."""
    for dim in (dim for shape in shapes_below(kind) for dim in shape.dim):
        symbol = str(dim.dim_param)  # bytes, where it is no UTF-8
        if symbol:
            made_up = INFERRED if symbol.startswith(INFERRED) else ""
            dim.dim_param = symbols.setdefault(symbol, f"{made_up}\0{len(symbols)}")


def _drop_labels(owner: Owner) -> None:
    """Names, docs and metadata of a graph and its nodes: an Edit names them after its site."""
    labelled: list[GraphProto | NodeProto] = [*owner.node]
    if isinstance(owner, GraphProto):
        labelled.append(owner)
    for labelled_item in labelled:
        labelled_item.ClearField("name")
        labelled_item.ClearField("doc_string")
        labelled_item.ClearField("metadata_props")


def _in_order(graph: GraphProto) -> list[str]:
    """The names of a region in an order that does not depend on them."""
    names = scoping.input_names(graph) + [tensor.name for tensor in graph.initializer]
    names += [name for node in graph.node for name in node.output if name]
    names += [value.name for value in graph.output]
    return list(dict.fromkeys(names))
