"""The rule `declare-shapes`: bodies declare the shapes that are proven, and no made-up symbols."""

from __future__ import annotations

from collections.abc import Callable, Set
from functools import partial

from onnx import GraphProto, TypeProto, ValueInfoProto

from passes.analysis.bodies.body_types import are_shapes_proven, proven_types
from passes.analysis.trip_count.trip_count import declared_size
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.ir.protos import copied
from passes.loops.form import LoopForm
from passes.rule import LOOPS, ByOp, Edit, NothingToDo, Site, Slot, register
from passes.types.shape_inference import idle_symbols
from passes.types.value_types import INFERRED, Dim, dims_of, elem_type_of, is_known, tensor_type

_IDLE: Slot[Set[str]] = Slot()
_TypeOf = Callable[[str], TypeProto | None]
_HOLDERS = ByOp(lambda op, *opsets: op == "If" or LOOPS.of_op(op, *opsets))


@register("declare-shapes", considers=_HOLDERS, optional=True)
def declare_shapes(site: Site) -> Edit:
    """Declare in bodies the shapes that are proven, and no symbols that tell nothing.

    Before, where x is float[T,3]:

        y = Loop (n, "", x) <body = step (i, go, s) => (on, float[unk__7,3] t) {
            on = Identity (go)
            t = Neg (s)
        }>

    After:

        y = Loop (n, "", x) <body = step (i, go, float[T,3] s) => (bool on, float[T,3] t) {
            on = Identity (go)
            t = Neg (s)
        }>

    Exporters leave the types in bodies open, or make up a symbol for each dim of a value, such as
    `unk__7`. Runtimes that infer once, and not once more with the sizes that come in, then know no
    rank, or refuse a symbol that meets a number. The inputs, outputs and other values of a body
    get the rank and sizes that follow from outside. A carried value that may change a dim leaves it
    open. A number that is declared stays. Of the symbols, a Loop gets those of the inputs of the
    model, and loses one that a single value declares; an If and a Scan lose all, since their sizes
    are inferred from outside.

    Refuses:
    - `shape-may-change`: a Loop around the node may change the shapes of what it carries
    """
    if site.in_function:
        raise NothingToDo  # each call has its own shapes
    node = copied(site.node)
    is_loop = op_of(node) == "Loop"
    declaring = _Declaring(site, symbols=is_loop)
    inner = {scope.key[-1]: scope for scope in site.scope.inner(site.place.index)}
    known = _of_loop(site) if is_loop else None
    count = 0
    for part, graph in scoping.subgraphs(node):
        count += declaring.declare(graph, known or partial(site.types.within, inner[part]))
    if not count:
        raise NothingToDo
    if not are_shapes_proven(site):
        raise site.refused(
            "shape-may-change",
            "what is inferred is not proven: a Loop around it may change the shapes",
        )
    return Edit((node,), note=f"{count} value{'s' * (count != 1)} declared")


def _of_loop(site: Site) -> _TypeOf:
    """Return the types proven in the body of a Loop; sizes have the symbols that are declared
    outside."""
    types, sizes = proven_types(site, LoopForm.from_node(site.node, site.opset))

    def shown(dim: Dim) -> Dim:
        if isinstance(dim, int) or dim not in sizes:
            return dim if isinstance(dim, int) else None
        return declared_size(site, sizes[dim].tensor, sizes[dim].axis or 0)

    def type_of(name: str) -> TypeProto | None:
        found = types.get(name)
        dims = dims_of(found)
        if not elem_type_of(found) or dims is None:
            return found
        return tensor_type(elem_type_of(found), tuple(map(shown, dims)))

    return type_of


class _Declaring:
    """Writes types into bodies; with `symbols`, those of the inputs of the model, too."""

    def __init__(self, site: Site, *, symbols: bool) -> None:
        proto = site.model.proto
        self.symbols = symbols
        self.idle = site.memory.once(_IDLE, lambda: idle_symbols(proto))
        self.bound = {
            dim.dim_param
            for value in proto.graph.input
            for dim in value.type.tensor_type.shape.dim
            if dim.dim_param
        }

    def declare(self, graph: GraphProto, type_of: _TypeOf) -> int:
        """Declare the types of the values of a body, in place; return the number of new
        declarations."""
        fixed = scoping.initializer_names(graph)
        values = [*graph.input, *graph.output, *graph.value_info]
        return sum(
            self._declare(value, type_of(value.name)) for value in values if value.name not in fixed
        )

    def _declare(self, value: ValueInfoProto, found: TypeProto | None) -> bool:
        dims, inferred = dims_of(value.type), dims_of(found)
        if is_known(value.type) and not value.type.HasField("tensor_type"):
            return False
        kind = elem_type_of(value.type) or elem_type_of(found)
        rank = len((dims if dims is not None else inferred) or ())
        if not kind or (dims is None and inferred is None):
            return False
        if inferred is None or len(inferred) != rank:
            inferred = (None,) * rank
        sizes = map(self._merged, (None,) * rank if dims is None else dims, inferred)
        wanted = tensor_type(kind, tuple(sizes))
        if wanted == value.type:
            return False
        value.type.CopyFrom(wanted)
        return True

    def _merged(self, declared: Dim, found: Dim) -> Dim:
        if isinstance(declared, int) or isinstance(found, int):
            return declared if isinstance(declared, int) else found
        if not self.symbols or found in self.bound:
            return found if self.symbols else None
        if declared is None or declared in self.bound:
            return declared
        return None if declared in self.idle or declared.startswith(INFERRED) else declared
