"""A loop's body, made ready to run over all iterations at once: time is the new leading axis."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import starmap

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TypeProto, helper

from passes.analysis.integers.integers import Integers
from passes.analysis.sizes.made_up_sizes import is_definite, symbol_of_rows
from passes.analysis.trip_count.trip_count import TripCount, is_guarded_by_if, least_size
from passes.ir import scope as scoping
from passes.ir.boundary import own_outputs
from passes.ir.constants import Constants
from passes.ir.draft import ONE_BY_ONE, runs_in_blocks
from passes.ir.graph_index import OUTPUT, GraphIndex
from passes.ir.live import Walk, dependents, live
from passes.ir.operators import FunctionKey, function_key, is_onnx_domain
from passes.ir.protos import copied
from passes.ir.site import Site
from passes.ir.versions import FREE_INITIALIZERS
from passes.loops.form import Kind, LoopForm, Scanned
from passes.rule import NothingToDo
from passes.types.value_types import dims_of, elem_type_of, shapes_below, tensor_type
from passes.vectorize import Axis, Rows, Vectorizer, prepare
from passes.writing.author import Author

#: The vectorization rules support ops as they are from this opset on.
OLDEST = 13
#: The assumed size of an axis of a row where it is unknown.
UNKNOWN_DIM = 8
#: By which factor it may exceed the least size that an If around the loop allows.
SPREAD = 8


@dataclass(frozen=True)
class TimeBody:
    """A loop whose body has typed values, and names that are unique inside and outside.

    `form` is the loop with that body, each of whose outputs is the output of a node of its own;
    `rows` has the body's types and constants. Nodes that are written outside must be renamed:
    see `moving`. `unknown`: the assumed size of axes of a row whose size is unknown.
    """

    site: Site
    form: LoopForm
    rows: Rows
    unknown: int = UNKNOWN_DIM

    @classmethod
    def of(cls, site: Site, *, one_by_one: bool = False) -> TimeBody:
        """Prepare a loop.

        Raises:
            Refused: `opset-too-old` before opset 13.
            NothingToDo: `run-in-blocks` wrote the loop, other than, where `one_by_one` are taken,
                for iterations that do not run at once.
        """
        if runs_in_blocks(site.node) and not (one_by_one and runs_in_blocks(site.node, ONE_BY_ONE)):
            raise NothingToDo
        site.need_opset(OLDEST, "is too old for the vectorization rules")
        node = copied(site.node)
        form = LoopForm.from_node(node, site.opset)
        _declare_types(site, form)
        scoping.drop_constant_inputs(form.body)
        own_outputs(form.body, lambda name: site.fresh(f"{name}/own"))
        rows = rows_of(site, form.body)
        form.body.CopyFrom(rows.graph)
        body = cls(site, LoopForm.from_node(node, site.opset), rows)
        if site.scope.outer is None:
            return body
        least = [least_size(site, *place) for place in body.open_sizes.values()]
        return replace(body, unknown=max([UNKNOWN_DIM, *(SPREAD * size for size in least)]))

    @cached_property
    def open_sizes(self) -> dict[str, tuple[str, int]]:
        """The symbols in the types that the loop reads, each with a tensor and an axis of that
        size."""
        read = [
            *scoping.captures(self.rows.graph),
            *(carried.initial for carried in self.form.carried),
        ]
        return {
            dim: (name, axis)
            for name in [*read, *(scanned.tensor for scanned in self.form.scanned)]
            for axis, dim in enumerate(dims_of(self.site.type_of(name)) or ())
            if isinstance(dim, str)
        }

    @cached_property
    def nodes(self) -> list[NodeProto]:
        """The nodes of the body."""
        return list(self.rows.graph.node)

    @cached_property
    def index(self) -> GraphIndex:
        """The definitions and readers of values of the body."""
        return GraphIndex(self.rows.graph)

    @cached_property
    def initializers(self) -> frozenset[str]:
        """The names of the body's initializers."""
        return frozenset(scoping.initializer_names(self.rows.graph))

    @cached_property
    def varying(self) -> frozenset[str]:
        """The values that may differ between iterations."""
        return dependents(self.nodes, scoping.input_names(self.rows.graph))

    @cached_property
    def unread(self) -> frozenset[int]:
        """The positions of nodes on which no used output of the loop depends."""
        form = self.form
        needed = {carried.body_output for carried in form.carried}
        needed |= {collected.body_output for collected in form.collected if collected.tensor}
        if form.condition is not None:
            needed.add(form.condition.body_output)
        _, read = live(self.nodes, needed, scoping.free_names)
        nodes = enumerate(self.nodes)
        return frozenset(position for position, node in nodes if read.isdisjoint(node.output))

    @cached_property
    def trip_count(self) -> TripCount:
        """The trip count, as far as it is known."""
        return TripCount(self.site, self.form)

    @property
    def trips(self) -> int | None:
        """The trip count, where types and constants determine it."""
        return self.trip_count.constant

    @cached_property
    def may_be_empty(self) -> bool:
        """True if the loop may run no iteration."""
        runs = self.form.kind is Kind.SCAN and self.trip_count.always_runs
        return not (self.trips or runs or self.entered)

    @cached_property
    def entered(self) -> bool:
        """True if only an If around the loop ensures that it runs an iteration."""
        return self.trips is None and is_guarded_by_if(self.site, self.form)

    def axis(self, size: str) -> Axis:
        """The time axis, whose length has the name `size`."""
        return Axis(size, self.trips, not self.may_be_empty, symbol=self._symbol)

    @property
    def _symbol(self) -> str | None:
        """The model's symbol for the scanned length."""
        return symbol_of_rows(self.trip_count.declared, self.rows.types)

    def vectorizer(self, author: Author, size: str, carrying: Collection[str]) -> Vectorizer:
        """A writer of nodes of the body with a leading time axis."""
        return Vectorizer(self.rows, self.axis(size), author, set(carrying), self.site.path)

    def needs(self, names: Iterable[str], stop: Collection[str] = ()) -> Walk:
        """Return the nodes on which values depend in one iteration, up to those in `stop`."""
        walk = Walk(self.nodes, {}, stop)
        walk.reach(names, ())
        return walk

    def readers(self) -> dict[str, list[int]]:
        """The positions of the nodes that read a value, each once."""
        found = self.index.readers.items()
        return {name: [reader for reader in places if reader != OUTPUT] for name, places in found}

    @cached_property
    def functions(self) -> frozenset[FunctionKey]:
        """The model-local functions, whose names may be those of operators."""
        return frozenset(map(function_key, self.site.model.proto.functions))

    def is_constant(self, name: str) -> bool:
        """Return whether a value is constant when the model is loaded."""
        if name in self.rows.constants or name in self.initializers:
            return True
        outer = name not in self.index.positions and name not in self.varying
        return outer and Constants(self.site.model, self.site.scope).tensor(name) is not None

    def row_rank(self, name: str) -> int | None:
        """The rank of a value in one iteration; None where it is unknown."""
        dims = dims_of(self.rows.types.get(name))
        return None if dims is None else len(dims)


def _declare_types(site: Site, form: LoopForm) -> None:
    """Declare the inferred types of body inputs that declare no shape, or leave sizes open.

    The states of a Scan keep their shapes, whatever symbols its body declares for the next ones.
    """
    rows = {scanned.body_input: element_type(site, scanned) for scanned in form.scanned}
    if form.kind is Kind.SCAN:
        rows |= {one.body_input: measured_type(site, one.initial) for one in form.carried}
    for value in form.body.input:
        if _fixed_sizes(value.type) == len(dims_of(value.type) or (None,)):
            continue
        inferred, measured = site.body_type_of("body", value.name), rows.get(value.name)
        better = measured is not None and _fixed_sizes(measured) > _fixed_sizes(inferred)
        known = measured if better else inferred
        if known is not None:
            value.type.CopyFrom(known)
    if form.kind is Kind.SCAN:
        _rename_symbols(form.body, rows)
        for before, after in zip(
            form.body.input, form.body.output[: len(form.carried)], strict=False
        ):
            if dims_of(before.type) is not None:
                after.type.CopyFrom(before.type)


def _rename_symbols(body: GraphProto, rows: Mapping[str, TypeProto | None]) -> None:
    """Give the sizes of a Scan's body the symbols that they have outside of it, in place, where its
    exporter made up others; `rows` are the types of what the body reads."""
    outside: dict[str, set[str]] = {}
    for value in body.input:
        own, known = dims_of(value.type) or (), dims_of(rows.get(value.name)) or ()
        for symbol, dim in zip(own, known, strict=False):
            if isinstance(symbol, str) and isinstance(dim, str) and is_definite(dim):
                outside.setdefault(symbol, set()).add(dim)
    renamed = {symbol: dims.pop() for symbol, dims in outside.items() if len(dims) == 1}
    for graph in scoping.graphs_below(body):
        assert isinstance(graph, GraphProto)
        for value in (*graph.input, *graph.output, *graph.value_info):
            for shape in shapes_below(value.type):
                for size in shape.dim:
                    if size.dim_param in renamed:
                        size.dim_param = renamed[size.dim_param]


def _fixed_sizes(known: TypeProto | None) -> int:
    """Return the number of sizes of a type that are numbers; -1 without a shape."""
    dims = dims_of(known)
    return -1 if dims is None else sum(isinstance(dim, int) for dim in dims)


def rows_of(site: Site, body: GraphProto, functions: Sequence[FunctionProto] = ()) -> Rows:
    """A body of the site's node, made ready for vectorising, with what is known of the values that
    it captures. These functions are inlined; other ones stay calls."""
    lists = (site.model.proto.opset_import, *(function.opset_import for function in functions))
    entries = [entry for entries in lists for entry in entries if not is_onnx_domain(entry.domain)]
    versions = {entry.domain: entry.version for entry in reversed(entries)} | {"": site.target}
    model = ModelProto(
        # up to IR 3, inference does not look at initializers that are no inputs
        ir_version=max(site.model.proto.ir_version, FREE_INITIALIZERS),
        opset_import=starmap(helper.make_opsetid, versions.items()),
        functions=functions,
    )
    captured = {name: site.outer(name) for name in scoping.captures(body)}
    return prepare(body, captured, model, site.names, site.is_visible)


def measured_type(site: Site, name: str) -> TypeProto | None:
    """The type of an outer value, with the sizes that follow from how it is computed."""
    known = site.type_of(name)
    dims = dims_of(known)
    if dims is None:
        return known
    integers = Integers(site)
    sizes = [integers.size(name, axis) for axis in range(len(dims))]
    return tensor_type(
        elem_type_of(known),
        tuple(
            dim if size is None or size.number is None else size.number
            for dim, size in zip(dims, sizes, strict=True)
        ),
    )


def element_type(site: Site, scanned: Scanned) -> TypeProto | None:
    """The type of what one iteration reads of a scanned tensor."""
    known = measured_type(site, scanned.tensor)
    dims = dims_of(known)
    if dims is None or not -len(dims) <= scanned.axis < len(dims):
        return None
    axis = scanned.axis % len(dims)
    return tensor_type(elem_type_of(known), (*dims[:axis], *dims[axis + 1 :]))
