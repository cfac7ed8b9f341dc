"""The rule `hoist-constants`: constants of bodies become initializers of the main graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from onnx import GraphProto, NodeProto, TensorProto, TypeProto, ValueInfoProto

from passes.bodies.lifting import Lifting, constants_of
from passes.ir import scope as scoping
from passes.ir.attributes import has_references
from passes.ir.constant_pool import ConstantPool, Kept, pool_of
from passes.ir.constants import constant_tensor
from passes.ir.names import Names
from passes.ir.operators import is_onnx_domain, op_of
from passes.ir.protos import copied, named
from passes.ir.scope import Scope
from passes.rule import Claim, Edit, NothingToDo, Site, register
from passes.types.value_types import INFERRED, dims_of

#: In a node without bodies, only the names that it reads change.
_PROOF = "the constants are the same, byte by byte"


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Every node may read constants, hold some, or be one."""
    return True


@register("hoist-constants", considers=considers, optional=True)
def hoist_constants(site: Site) -> Edit:
    """Move the constants of bodies out of all control flow, and keep equal ones once.

    Before:

        y = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] x_t) => (float[2] t)
            <float[2] w = {2, 3}> {
            axis = Constant <value_ints = [0]> ()
            ...
        }> (h, x)

    After, in the main graph:

        <float[2] w = {2, 3}, int64[1] axis = {0}>
        y = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] x_t) => (float[2] t) {
            ...
        }> (h, x)

    Initializers and Constant nodes at every depth move; in a model-local function they become
    Constant nodes at its top, since it captures nothing. A constant with the same element type,
    shape and bytes as another one, of a body or of the main graph, is replaced by that one;
    external data is compared by its location, not read. Initializers that a caller may override
    are neither moved nor shared, quantized ones are moved with their annotation but not shared,
    and a sparse constant becomes a Constant node before the loop. A constant that a body
    returns leaves an Identity there. Types that inference derives from a constant in a body are
    written into the body. For onnxruntime, large weights stay that it would not find in the main
    graph (see sink-weights), and so do strings in a Loop that collects strings. Only the command
    `hoist` looks for equal constants that neither came from a body nor are read by one.
    """
    if site.scope.outer is not None:
        raise NothingToDo  # the node around it takes the constants of all its bodies
    pool = pool_of(site)
    if (tensor := constant_tensor(site.node)) is not None:
        return _as_initializer(site, pool, tensor)
    return _Hoisting(site, pool).edit()


def _as_initializer(site: Site, pool: ConstantPool, tensor: TensorProto) -> Edit:
    """Drop a Constant node of the main graph where an equal constant replaces it."""
    kept = pool.first_of(tensor.name, site.place.index)
    returned = scoping.output_names(site.scope.owner)
    if site.in_function or kept is None or kept.name == tensor.name or tensor.name in returned:
        raise NothingToDo
    if _is_as_read(site, tensor.name):
        raise NothingToDo
    return Edit((), (tensor,), note=f"equal to {kept.name}", claim=Claim(proof=_PROOF))


def _is_as_read(site: Site, name: str) -> bool:
    """Return whether a node without bodies reads a constant of the original model: left to
    `hoist`."""
    if scoping.holds_graphs(site.node) or site.options.all_constants:
        return False
    return name in site.options.own_constants


@dataclass
class _Hoisting:
    """The constants of one outermost node; `made` are those that its Edit adds."""

    site: Site
    pool: ConstantPool
    made: dict[str, TensorProto] = field(default_factory=dict)
    nodes: list[NodeProto] = field(default_factory=list)
    moved: int = 0
    shared: int = 0

    def edit(self) -> Edit:
        same = self._same()
        # what an operator of another domain does with its graphs is unknown
        lifts = is_onnx_domain(self.site.node.domain)
        if not same and not (lifts and scoping.holds_graphs(self.site.node)):
            raise NothingToDo
        node = copied(self.site.node)
        scoping.rename_free(node, same)
        if lifts:
            write_types(self.site, node)
        lifting = Lifting(self, self.site.target, keep_packed=self.site.options.keep_packed_weights)
        lifting.take_from(node)
        if not same and not self.moved and node == self.site.node:
            raise NothingToDo
        return Edit(
            (*self.nodes, node),
            tuple(self.made.values()),
            note=self._note(same),
            covered=self._nodes_of(same),
            annotations=tuple(lifting.annotations),
            claim=Claim(proof="" if scoping.holds_graphs(self.site.node) else _PROOF),
        )

    def tensor(self, tensor: TensorProto, annotated: bool) -> str:
        """The name of a body's constant in the main graph."""
        self.moved += 1
        kept = None if annotated else self.pool.equal_to(Kept(tensor), self.site.place.index)
        if kept is None:
            kept = Kept(named(tensor, self._fresh(tensor.name)), made=True)
            if not annotated:
                self.pool.add(kept)
        else:
            self.shared += 1
        if kept.made:
            self.made[kept.name] = kept.tensor
        return kept.name

    def node(self, node: NodeProto) -> str:
        """Return the name of a sparse constant before the node; "" for a function attribute."""
        if has_references(node):
            return ""
        self.moved += 1
        for constant in self.nodes:
            if constant.attribute == node.attribute:
                return str(constant.output[0])
        copy = copied(node)
        copy.output[0] = self._fresh(node.output[0])
        self.nodes.append(copy)
        return str(copy.output[0])

    def _same(self) -> dict[str, str]:
        """For each constant that the node reads, the first equal one."""
        index = self.site.place.index
        found = {
            name: self.pool.first_of(name, index) for name in scoping.free_names(self.site.node)
        }
        same = {
            name: kept
            for name, kept in found.items()
            if kept and kept.name != name and not _is_as_read(self.site, name)
        }
        self.made |= {kept.name: kept.tensor for kept in same.values() if kept.made}
        return {name: kept.name for name, kept in same.items()}

    def _nodes_of(self, same: Mapping[str, str]) -> tuple[int, ...]:
        """In a function, the Constant nodes that nothing else reads; elsewhere they become
        initializers, and go as these do."""
        if not self.site.in_function:
            return ()
        graph, index = self.site.graph, self.site.place.index
        mine = [name for name in same if set(graph.readers.get(name, ())) == {index}]
        return tuple(sorted(graph.positions[name] for name in mine))

    def _fresh(self, name: str) -> str:
        prefix = self.site.node.name or op_of(self.site.node).lower()
        names: Names = self.site.names
        return names.fresh(f"{prefix}/{name}")

    def _note(self, same: Mapping[str, str]) -> str:
        parts = []
        if self.moved:
            shared = f", {self.shared} of them known" if self.shared else ""
            parts.append(f"{self.moved} constant{'s' * (self.moved != 1)} moved{shared}")
        if same:
            parts.append(f"{', '.join(same)} shared")
        return "; ".join(parts) or "unread constants dropped"


#: onnx's inference needs the values of axes, sizes and indices in the body itself.
_WHOLE = (TensorProto.INT64, TensorProto.INT32)


def write_types(site: Site, node: NodeProto) -> None:
    """Write down, in the bodies of `node`, the types of what nodes compute from their constants.

    `node` is a copy of the site's; nothing is written where its operators differ from the
    original's.
    """
    inner = site.scope.inner(site.place.index)
    read = site.scope.owner.node[site.place.index]
    if _ops_of(read) == _ops_of(node):
        for scope, (_, graph) in zip(inner, scoping.subgraphs(node), strict=True):
            _write(site, scope, graph, frozenset())


def _ops_of(node: NodeProto) -> list[str]:
    graphs = [graph for _, graph in scoping.subgraphs(node)]
    return [
        op_of(inner)
        for top in graphs
        for graph in scoping.graphs_below(top)
        for inner in graph.node
    ]


def _write(site: Site, scope: Scope, graph: GraphProto, outer: frozenset[str]) -> None:
    own = {name for name, kind in constants_of(graph).items() if _is_whole(kind)}
    known = (outer - scoping.defined(graph)) | own
    if own:
        _complete(site, scope, graph)
    declared = {value.name for value in (*graph.value_info, *graph.output)}
    for index, node in enumerate(graph.node):
        if scoping.holds_graphs(node):
            for below, (_, body) in zip(scope.inner(index), scoping.subgraphs(node), strict=True):
                _write(site, below, body, known)
        if known.isdisjoint(node.input):
            continue
        for name in node.output:
            found = site.types.within(scope, name) if name and name not in declared else None
            if found is not None and dims_of(found) is not None:
                graph.value_info.append(ValueInfoProto(name=name, type=_declared(found)))


def _complete(site: Site, scope: Scope, graph: GraphProto) -> None:
    """Declare what the body returns: where it never runs, its shape is otherwise unknown."""
    for value in graph.output:
        complete(value, site.types.within(scope, value.name))


def complete(value: ValueInfoProto, inferred: TypeProto | None) -> None:
    """Declare the inferred type of a value if it is more precise than the declared one."""
    declared, known = dims_of(value.type), dims_of(inferred)
    if inferred is not None and known is not None and (declared is None or None in declared):
        value.type.CopyFrom(_declared(inferred))


def _is_whole(constant: TensorProto | NodeProto) -> bool:
    return isinstance(constant, TensorProto) and constant.data_type in _WHOLE


def _declared(inferred: TypeProto) -> TypeProto:
    """A type without the names that inference made up."""
    copy = copied(inferred)
    for dim in copy.tensor_type.shape.dim:
        if dim.dim_param.startswith(INFERRED):
            dim.ClearField("dim_param")
    return copy
