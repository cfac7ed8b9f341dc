"""Writes out the iterations of a loop, in a row; the body over the remaining ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from onnx import GraphProto, NodeProto, TensorAnnotation, TypeProto, ValueInfoProto, helper

from passes.analysis.bodies import body_facts
from passes.analysis.bodies.liveness import doubts_of
from passes.bodies.branches import Cleaning
from passes.bodies.element_sizes import element_dims, shape_of_none, sizes_of
from passes.bodies.iteration import SharedBody, write_iteration
from passes.bodies.tidy import Tidy, own, without_copies
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.ir.protos import named, replace_all
from passes.ir.purposes import GUARD_SIZES
from passes.ir.versions import HAS_CONSTANT_OF_SHAPE
from passes.loops.form import Collected, Kind, LoopForm, Scanned
from passes.operators.exactness import Array
from passes.rule import Edit, Site
from passes.types.value_types import dims_of, elem_type_of
from passes.writing import guards, spelling
from passes.writing.author import Author


def empty_rows(author: Author, site: Site, form: LoopForm, collected: Collected) -> str:
    """A collected output of no iterations, typed and shaped: 0 where a size is unknown.

    Raises:
        Refused: `unknown-shape` where the rank is unknown, `opset-too-old` where a size is known
            only at run time, and the opset cannot create a tensor of such a size.
    """
    known = site.body_type_of("body", collected.body_output)
    dims = element_dims(site, collected)
    if dims is None or not elem_type_of(known):
        what = f"no iteration runs, and the rank of {collected.body_output!r} is unknown"
        raise site.refused("unknown-shape", what, collected.body_output)
    if author.opset >= HAS_CONSTANT_OF_SHAPE:
        sizes = sizes_of(author, site, form, collected, dims)
        if any(sizes[axis] for axis, dim in enumerate(dims) if not isinstance(dim, int)):
            sizes = [size or author.ints(0) for size in sizes]
            none = shape_of_none(author, sizes, collected.axis)
            return spelling.zeros(author, none, elem_type_of(known))
    elif any(isinstance(dim, str) for dim in dims):
        lacks = f"cannot create rows of {collected.body_output!r} of shape {list(dims)}"
        site.need_opset(HAS_CONSTANT_OF_SHAPE, lacks, collected.body_output)
    shape = [dim if isinstance(dim, int) else 0 for dim in dims]
    shape.insert(collected.axis % (len(shape) + 1), 0)
    dtype = helper.tensor_dtype_to_np_dtype(elem_type_of(known))
    return author.value(np.zeros(shape, dtype), "empty")


@dataclass(frozen=True)
class Outputs:
    """What iterations return: states, and what they collect, by collected output; `go_on` is the
    condition of a Loop, where it is needed."""

    states: list[str]
    rows: list[str]
    go_on: str = ""

    @classmethod
    def of(cls, form: LoopForm, name: Callable[[str], str], go_on: str = "") -> Outputs:
        """Outputs whose names are made of those of the body."""
        states = [name(carried.body_output) for carried in form.carried]
        return cls(states, [name(collected.body_output) for collected in form.collected], go_on)

    @property
    def names(self) -> list[str]:
        """All of them, in the order of a loop."""
        return [*self.states, *self.rows, *filter(None, [self.go_on])]


def part_of_loop(node: NodeProto, part: str, marks: Mapping[str, str]) -> NodeProto:
    """The copy of a loop that runs a part of its iterations, named after it, and marked in its
    metadata."""
    if node.name:
        node.name += f"/{part}"
    for key, value in marks.items():
        node.metadata_props.add(key=key, value=value)
    return node


class Unrolling:
    """Writes `trips` iterations of a loop in place of its node.

    `distrusts_symbols`: only known sizes are equal, not those of one symbol. A Scan fails if a
    state changes its shape: unless all of these are known, symbols are distrusted, and each state
    is checked.
    """

    distrusts_symbols = False
    guards = GUARD_SIZES

    def __init__(self, site: Site, form: LoopForm, trips: int) -> None:
        self.site = site
        self.trips = trips
        self.author = Author.at(site)
        self.body = SharedBody.of(form.body, self.author, site.is_visible)
        self.form = replace(form, body=self.body.graph, constant_inputs=())
        self.initials = [carried.initial for carried in form.carried]
        self.value_info: list[ValueInfoProto] = []
        self.annotations: list[TensorAnnotation] = list(self.body.annotations)
        self.collected: list[list[str]] = [[] for _ in form.collected]
        self.doubts: set[str] = set()  # what may fail, by its names in the iterations
        self._doubts = doubts_of(site, form)
        graphs = scoping.graphs_below(self.form.body)
        self._shapes = any(op_of(node) == "Shape" for graph in graphs for node in graph.node)
        self._origin: dict[str, str] = {}  # names in the body of the values of iterations
        read = scoping.all_reads(self.form.body.node)
        self._counts = form.iteration in read.union(scoping.output_names(self.form.body))
        self._stable = body_facts.keeps_shape(site, form, symbols=False)
        self._guards = form.kind is Kind.SCAN and not self._valid_inputs
        known = body_facts.keeps_shape(site, form, symbols=not self.distrusts_symbols)
        self._typed = all(known.values())
        self.distrusts_symbols = self.distrusts_symbols or (
            self._guards and not all(self._stable.values())
        )
        self._symbols = frozenset(
            dim.dim_param
            for value in site.model.proto.graph.input
            for dim in value.type.tensor_type.shape.dim
        ) - {""}

    def edit(self, note: str) -> Edit:
        """Write the iterations, the final states and what was collected; clean what was written."""
        author, form = self.author, self.form
        author.adopt(self.body.nodes, self.body.constants)
        agree = self._lengths_agree()
        elements = [self._elements(scanned) for scanned in form.scanned]
        states = self.initials
        for index in range(self.trips):
            read = [element[index] for element in elements]
            done = self.iteration(author, f"it{index}", self._number(index), states, read)
            states = done.states
            self._keep(done.rows)
        for carried, state in zip(form.carried, states, strict=True):
            self._hand_on(state, carried.final, agree)
        for collected, rows in zip(form.collected, self.collected, strict=True):
            if collected.tensor:
                self._hand_on(self._stacked(collected, rows), collected.tensor, agree)
        return self._cleaned(note)

    def _cleaned(self, note: str, also: Collection[str] = ()) -> Edit:
        """Return an Edit of the written nodes, cleaned; `also` are names to keep besides the node's
        outputs."""
        keep = frozenset(filter(None, (*self.site.node.output, *also)))
        nodes, constants = Tidy(
            self.author,
            keep,
            self.site.constant,
            self._type_of,
            keeps_size_checks=self.distrusts_symbols,
            doubts=self.doubts,
        ).clean()
        described = self.value_info or self.annotations
        defined = {name for node in nodes for name in node.output} - keep if described else set()
        named = defined | {constant.name for constant in constants}
        annotations = [
            annotation for annotation in self.annotations if annotation.tensor_name in named
        ]
        scales = set(scoping.parameters_of(annotations)) - named
        return Edit(
            tuple(nodes),
            (*constants, *(tensor for tensor in self.author.constants if tensor.name in scales)),
            tuple(value for value in self.value_info if value.name in defined),
            note=note,
            annotations=tuple(annotations),
            extras=self.author.extras(nodes),
        )

    def iteration(
        self,
        author: Author,
        tag: str,
        number: str,
        states: Sequence[str],
        elements: Sequence[str] = (),
        *,
        lifted: bool = False,
    ) -> Outputs:
        """Write one iteration, whose `number` has the rank that the body declares; its rows are
        [.., 1, ..] if they are `lifted`."""
        form = self.form
        head = [number, spelling.true(self.author, form.condition_rank)] if form.condition else []
        inputs = dict(zip(form.body_inputs, [*head, *states, *elements], strict=True))
        written = write_iteration(author, self.body, inputs, tag, self._symbols)
        author.adopt(written.nodes)
        self.value_info += written.value_info
        self.annotations += written.annotations
        self.doubts.update(written.names[name] for name in self._doubts)
        if self._shapes:
            names = written.names.items()
            self._origin.update((new, old) for old, new in names if old not in inputs)
            read = [scanned.body_input for scanned in form.scanned]
            self._origin.update(zip(elements, read, strict=True))
        go_on, *results = written.outputs if form.condition else ("", *written.outputs)
        after = [
            self._kept_shape(author, position, new, old)
            for position, (new, old) in enumerate(zip(results, states, strict=False))
        ]
        rows = results[len(states) :]
        if lifted:
            rows = [
                spelling.unsqueeze(author, row, collected.axis)
                for collected, row in zip(form.collected, rows, strict=True)
            ]
        return Outputs(after, rows, go_on)

    def _keep(self, rows: Sequence[str]) -> None:
        for kept, row in zip(self.collected, rows, strict=True):
            kept.append(row)

    def _kept_shape(self, author: Author, position: int, new: str, old: str) -> str:
        """The state, or a failure where it changes its shape, as a Scan fails."""
        carried = self.form.carried[position]
        if self._stable[carried.body_input] or not self._guards or new == old:
            return new
        return guards.kept_state(author, self.site, carried, new, old)

    @property
    def cleaning(self) -> Cleaning:
        """Return the facts for the branches that contain iterations."""
        return Cleaning(self._known, self._type_of, self.doubts)

    @property
    def _valid_inputs(self) -> bool:
        return self.site.assumes("valid-inputs")

    def _number(self, index: int) -> str:
        """The number of an iteration, as its body reads it; "" where nothing uses it."""
        number = self.author.int(index) if self._counts else ""
        return number and spelling.of_rank(self.author, number, self.form.iteration_rank)

    def _lengths_agree(self) -> str:
        """A condition: that all scanned lengths are the trip count; "" where that is known."""
        author = self.author
        if self._valid_inputs:
            return ""
        with author.serving(self.guards):
            sizes = [
                spelling.scalar_size(author, scanned.tensor, scanned.axis)
                for scanned in self.form.scanned
                if self._length(scanned) != self.trips
            ]
            checks = [author.op("Equal", size, author.int(self.trips)) for size in sizes]
            return spelling.both(author, checks) if checks else ""

    def _length(self, scanned: Scanned) -> object:
        dims = dims_of(self.site.type_of(scanned.tensor))
        return None if dims is None else dims[scanned.axis]

    def _elements(self, scanned: Scanned) -> list[str]:
        """The slices of a scanned tensor, in the order in which they are read."""
        author, count = self.author, self.trips
        hints = [f"{scanned.body_input}/it{index}" for index in range(count)]
        if scanned.reversed:
            hints.reverse()
        parts = [scanned.tensor]
        if count > 1:
            parts = [author.names.fresh(f"{hint}/part") for hint in hints]
            spelling.split(author, scanned.tensor, scanned.axis, parts)
        read = [
            spelling.squeeze(author, part, scanned.axis, [author.names.fresh(hint)])
            for part, hint in zip(parts, hints, strict=False)
        ]
        return read[::-1] if scanned.reversed else read

    def _hand_on(self, value: str, name: str, agree: str) -> None:
        if not name:
            return
        if agree:
            elem_type = elem_type_of(self.site.type_of(name))
            with self.author.serving(self.guards):
                guards.guarded(self.author, value, agree, elem_type, [name])
        else:
            self.author.op("Identity", value, outputs=[name])

    def _stacked(self, collected: Collected, rows: Sequence[str]) -> str:
        if not rows:
            return empty_rows(self.author, self.site, self.form, collected)
        ordered = reversed(rows) if collected.reversed else rows
        lifted = [spelling.unsqueeze(self.author, row, collected.axis) for row in ordered]
        return spelling.joined(self.author, lifted, collected.axis)

    def _type_of(self, name: str) -> TypeProto | None:
        """The type of a value; None where it may differ between iterations."""
        if name not in self._origin:
            return self.site.type_of(name)
        if not self._typed:
            return None
        return self.site.body_type_of("body", self._origin[name])

    def _known(self, name: str) -> Array | None:
        """A constant, from outside or written here, as seen from a branch."""
        value = self.author.constant(name)
        return self.site.constant(name) if value is None else value


def remaining_body(
    loop: Unrolling, inner: Author, *, first: str = "", counted: bool = False
) -> GraphProto:
    """The body under names of its own, written by `inner`.

    `first`, an int64 scalar, is the number of the first iteration of a Loop, 0 where it is empty.
    `counted`: only the trip count ends the Loop, so the condition is handed on as it is.
    """
    form, body = loop.form, loop.body
    fed = body.graph.input
    head = (form.iteration, form.condition.body_input) if form.condition else ()
    values = [*map(helper.make_value_info, head, form.head_types), *fed[len(head) :]]
    taken = [inner.fresh(value.name) for value in values]
    sources = list(taken)
    if first:
        sources[0] = inner.op("Add", taken[0], first)
    mapping = dict(zip([value.name for value in values], sources, strict=True))
    written = write_iteration(inner, body, mapping, "rest")
    inner.adopt(written.nodes)
    results = [taken[1], *written.outputs[1:]] if counted else written.outputs
    declared = list(body.graph.output)
    if counted:
        declared[0] = values[1]
    names = [own(inner, result, value) for result, value in zip(results, declared, strict=True)]
    inputs = [named(value, name) for value, name in zip(values, taken, strict=True)]
    outputs = [named(value, name) for value, name in zip(declared, names, strict=True)]
    graph = inner.graph(f"{body.graph.name or 'body'}_rest", inputs, outputs)
    nodes, names = without_copies(graph.node, names)
    replace_all(graph.node, nodes)
    replace_all(graph.output, [named(*pair) for pair in zip(declared, names, strict=True)])
    graph.value_info.extend(value for value in written.value_info if value.name not in names)
    graph.quantization_annotation.extend(written.annotations)
    return graph
