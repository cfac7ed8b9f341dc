"""Writes the Scan that a Loop becomes, and the nodes before and after it."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace

from onnx import GraphProto, NodeProto, TypeProto

from passes.analysis.bodies.liveness import doubts_of
from passes.analysis.sizes.made_up_sizes import without_made_up
from passes.bodies.raised_body import RaisedBody
from passes.bodies.time_body import element_type
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.ir.versions import HAS_RANGE, SHAPES_MAY_DIFFER, SLICE_HAS_INPUTS, ZERO_IS_A_SIZE
from passes.loops.form import Carried, Collected, Kind, LoopForm, Scanned
from passes.rules.raise_loop.accumulators import Accumulator, Joined
from passes.rules.raise_loop.collected_rows import ScanOutput
from passes.rules.raise_loop.places import OutputLayout, ReadRange, placed
from passes.rules.raise_loop.raising import Raising, check_carried
from passes.types.value_types import dims_of, tensor_type
from passes.writing import guards, spelling
from passes.writing.author import Author
from passes.writing.branches import Branch, Results, either
from passes.writing.purposes import GUARD_READS, handles_no_trips
from passes.writing.scan_axes import write_scan


@dataclass
class ScanFeeds:
    """Writes the tensors to scan, where at least one iteration runs.

    `windows` are what iterations read, None for the iteration number.
    """

    raising: Raising
    windows: Sequence[ReadRange | None]
    author: Author
    _count: str = ""
    _explicit: bool = False
    _sure: bool = False  # whether some input has as many elements as there are iterations

    def __post_init__(self) -> None:
        self._explicit = self.raising.non_empty and self._keeps_count()
        self._sure = any(window is None or not window.guarded for window in self.windows)

    def _keeps_count(self) -> bool:
        """Return whether the trip count must be read, so that its guard still takes effect.

        A Scan itself checks that whole tensors have the same size.
        """
        trips = self.raising.trips
        if not trips.guards or self.raising.assumes("valid-inputs"):
            return False
        whole = [window.extent for window in self.windows if window and window.whole]
        seen = {a - b for a in whole for b in whole}
        return not trips.only_equalities or not set(trips.zeros) <= seen

    def count(self) -> str:
        """The trip count, a scalar."""
        if not self._count:
            self._count = self.raising.trips.scalar(self.author)
        return self._count

    def vector(self) -> str:
        """The trip count, int64 [1]."""
        return spelling.unsqueeze(self.author, self.count(), 0)

    def tensor(self, window: ReadRange | None) -> str:
        """The tensor to scan: one element an iteration."""
        author = self.author
        if window is None:
            numbers = self._numbers()
            rank = self.raising.form.iteration_rank
            return spelling.unsqueeze(author, numbers, 1) if rank else numbers
        tensor = window.read.tensor
        if window.whole and not self._explicit:
            return tensor
        self._explicit = False
        if window.guarded and not self._sure:
            tensor = self._guarded(tensor, window)
            self._sure = True  # a Scan fails itself where another input is shorter
        return self._cut(tensor, window)

    def _numbers(self) -> str:
        """The iteration numbers."""
        author = self.author
        if author.opset < HAS_RANGE:
            return spelling.arange(author, self.vector())
        return author.op("Range", author.int(0), self.count(), author.int(1))

    def _guarded(self, tensor: str, window: ReadRange) -> str:
        author, behind = self.author, self.count()
        with author.serving(GUARD_READS):
            size = spelling.size_of_axis(author, tensor, window.read.axis)
            if window.first:
                behind = author.op("Add", behind, author.int(window.first))
            exceeds = author.op("Greater", behind, spelling.squeeze(author, size, 0))
            return guards.must(author, tensor, author.op("Not", exceeds))

    def _cut(self, tensor: str, window: ReadRange) -> str:
        author, first = self.author, window.first
        if author.opset < SLICE_HAS_INPUTS:
            index = spelling.arange(author, self.vector())
            index = author.op("Add", index, author.int(first)) if first else index
            return author.op("Gather", tensor, index, axis=window.read.axis)
        end = self.vector()
        end = author.op("Add", end, author.ints(first)) if first else end
        return author.op("Slice", tensor, author.ints(first), end, author.ints(window.read.axis))


def rows_of(raising: Raising, body: RaisedBody) -> list[ScanOutput]:
    """The collected outputs: those of the Loop, then its accumulators."""
    types = raising.types
    rows = []
    for collected, where in zip(raising.form.collected, raising.rows, strict=True):
        element = _type(raising, collected.body_output)
        rows.append(_placed(raising, collected.body_output, where, element))
    for accumulator in raising.accumulators:
        body.drop(accumulator.node)
        if types.elem_type(accumulator.element):
            rows += _accumulated(raising, body, accumulator)
    return rows


def _placed(raising: Raising, result: str, where: OutputLayout, element: TypeProto) -> ScanOutput:
    covered = where.covered
    return ScanOutput(raising, result, where.name, element, where.axis, where.reversed, covered)


def _type(raising: Raising, name: str) -> TypeProto:
    """The type of an element; its dims may be symbols of `BodyTypes.sizes`."""
    return tensor_type(raising.types.elem_type(name), raising.types.dims(name))


def _accumulated(raising: Raising, body: RaisedBody, accumulator: Accumulator) -> list[ScanOutput]:
    if accumulator.joins:
        return [_joined(raising, body, accumulator, join) for join in accumulator.joins]
    sequence = raising.site.type_of(accumulator.carried.initial)
    if sequence is not None and sequence.WhichOneof("value") == "sequence_type":
        return []  # nothing reads it
    if not accumulator.keeps_initial:
        return [_buffer(raising, body, accumulator)]
    rows = _elements(raising, body, accumulator, accumulator.axis, accumulator.stacks, None)
    begins_with = "" if _adds_nothing(raising, accumulator) else accumulator.carried.initial
    return [replace(rows, begins_with=begins_with, name=accumulator.carried.final)]


def _buffer(raising: Raising, body: RaisedBody, accumulator: Accumulator) -> ScanOutput:
    axis = accumulator.axis
    rows = _elements(raising, body, accumulator, axis, accumulator.stacks, None)
    if rows.joined:
        return replace(rows, name=accumulator.carried.final)
    where = placed(raising.site, accumulator.carried.final, axis, accumulator.backwards)
    return replace(
        rows,
        name=where.name,
        axis=where.axis,
        reversed=where.reversed,
        covered=where.covered,
    )


def _joined(
    raising: Raising, body: RaisedBody, accumulator: Accumulator, join: Joined
) -> ScanOutput:
    dims = raising.types.dims(accumulator.element) or ()
    axis = join.axis % (len(dims) + join.stacks)
    rows = _elements(raising, body, accumulator, axis, join.stacks, join)
    producer = raising.integers.producer(accumulator.carried.initial)
    if producer is None or op_of(producer) not in ("SequenceEmpty", "SequenceConstruct"):
        what = f"it is not proven that the sequence {accumulator.carried.initial!r} starts empty"
        raise raising.site.refused("sequence-initial", what, accumulator.carried.initial)
    begins_with = "" if op_of(producer) == "SequenceEmpty" else accumulator.carried.initial
    return replace(rows, begins_with=begins_with, name=join.output, covered=(join.position,))


def _elements(
    raising: Raising,
    body: RaisedBody,
    accumulator: Accumulator,
    axis: int,
    stacks: bool,
    join: Joined | None,
) -> ScanOutput:
    """Collect the elements; an axis of size 1 on which they are joined is removed before."""
    element = _type(raising, accumulator.element)
    base = ScanOutput(
        raising,
        accumulator.element,
        "",
        element,
        axis,
        accumulator.backwards,
        (),
        accumulator,
        join,
    )
    dims = dims_of(element) or ()
    if stacks:
        return base
    if dims[axis] == 1:
        inner = body.author.inside(body.author.prefix)
        result = spelling.squeeze(inner, accumulator.element, axis)
        body.author.adopt([], inner.constants)
        for node in inner.nodes:
            body.append(node)
        rest = tuple(dim for position, dim in enumerate(dims) if position != axis)
        narrow = tensor_type(element.tensor_type.elem_type, rest)
        return replace(base, result=result, element=narrow)
    fixed = all(isinstance(dim, int) and dim for dim in dims)
    if body.author.opset < ZERO_IS_A_SIZE and not fixed:
        raise raising.site.refused(
            "element-shape",
            f"{accumulator.element!r}, of shape {list(dims)}, may be empty, which "
            f"Reshape cannot express before opset {ZERO_IS_A_SIZE}",
            accumulator.element,
        )
    return replace(base, joined=True)


def _adds_nothing(raising: Raising, accumulator: Accumulator) -> bool:
    """Return whether an accumulator's initial value is empty, and otherwise of the elements'
    shape."""
    initial = dims_of(raising.site.type_of(accumulator.carried.initial))
    element = raising.types.dims(accumulator.element)
    if initial is None or element is None or len(initial) != len(element):
        return False
    if initial[accumulator.axis] != 0:
        return False
    pairs = [
        pair
        for axis, pair in enumerate(zip(initial, element, strict=True))
        if axis != accumulator.axis
    ]
    return all(before is not None and before == after for before, after in pairs)


@dataclass
class RaisedScan:
    """The Scan of one site; `write` leaves its nodes with the author."""

    raising: Raising
    author: Author
    body: RaisedBody = field(init=False)
    carried: list[Carried] = field(init=False)
    passed: list[Carried] = field(init=False)
    scanned: list[tuple[ReadRange | None, str]] = field(init=False)
    rows: list[ScanOutput] = field(init=False)
    graph: GraphProto = field(init=False)

    def __post_init__(self) -> None:
        raising = self.raising
        inner = self.author.inside(f"{self.author.prefix}/step")
        doubts = doubts_of(raising.site, raising.form, raising.types.dims)
        settled = (one.settled for one in raising.accumulators)
        self.body = RaisedBody(raising.form, raising.integers, inner, doubts.difference(*settled))
        self.scanned = [(group[0], self._take(group)) for group in raising.windows]
        self.rows = rows_of(raising, self.body)
        self._prune()
        self._close()

    def _take(self, group: Sequence[ReadRange]) -> str:
        """Replace reads of the same slices in the body by an input that is the slice."""
        bare = [
            name for window in group if not window.read.kept_axis for name in window.read.results
        ]
        name = bare[0] if bare else self.body.author.fresh(f"{group[0].read.tensor}/slice")
        for window in group:
            instead = self.body.author.inside(self.body.author.prefix)
            for result in window.read.results:
                if window.read.kept_axis:
                    spelling.unsqueeze(instead, name, window.read.axis, [result])
                elif result != name:
                    instead.op("Identity", name, outputs=[result])
            self.body.author.adopt([], instead.constants)
            for position in window.read.nodes:
                self.body.drop(position)
            self.body.drop(window.read.nodes[0], *instead.nodes)
        return name

    def _prune(self) -> None:
        """Drop what is no longer needed, and prove the rest."""
        raising, form = self.raising, self.raising.form
        results = [rows.result for rows in self.rows]
        self.carried = self.body.prune(results, raising.kept, raising.droppable)
        for carried in self.carried:
            if carried.body_input in raising.droppable:
                check_carried(raising.site, carried, raising.types)
        stay = {carried.body_input for carried in self.carried}
        self.passed = [carried for carried in raising.kept if carried.body_input not in stay]
        self.body.settle_condition()
        ends = {*results, *(carried.body_output for carried in self.carried)}
        used = [pair for pair in self.scanned if self._is_used(*pair, ends)]
        self.scanned = used or self.scanned[:1]
        if not self.scanned or self.body.reads(form.iteration):
            self.scanned.append((None, form.iteration))
        if not self.carried and not self.rows:  # a Scan needs an output, read or not
            window, name = self.scanned[0]
            self.rows.append(ScanOutput(raising, name, "", self._slice_type(window)))

    def _is_used(self, window: ReadRange | None, name: str, ends: Set[str]) -> bool:
        """Return whether a slice is read, or may be missing: each iteration then has to fail."""
        sure = window is not None and window.first == 0 and window.extent == self.raising.trips.size
        return not sure or name in ends or self.body.reads(name)

    def _close(self) -> None:
        """Give the body the inputs and outputs of a Scan."""
        inputs: list[tuple[str, TypeProto | None]] = [
            (carried.body_input, self._type(carried.body_input)) for carried in self.carried
        ]
        inputs += [(name, self._slice_type(window)) for window, name in self.scanned]
        results = [carried.body_output for carried in self.carried] + [
            row.result for row in self.rows
        ]
        types = [self._type(carried.body_input) for carried in self.carried]
        types += [row.element_type for row in self.rows]
        outputs = list(zip(results, types, strict=True))
        self.results = self.body.finish(inputs, outputs)
        self._declare([name for name, _ in inputs], results)

    def _declare(self, inputs: Sequence[str], results: Sequence[str]) -> None:
        """Let the body declare no size that onnxruntime enforces for a Scan, but not for a Loop."""
        graph, types = self.body.graph, self.raising.types
        for value, name in zip((*graph.input, *graph.output), (*inputs, *results), strict=True):
            value.type.CopyFrom(types.certainly(name, value.type))
        if types.certain is not None:
            del graph.value_info[:]

    def _type(self, name: str) -> TypeProto:
        types = self.raising.types
        dims = types.dims(name)
        shape = None if dims is None else without_made_up(dims)
        return types.certainly(name, tensor_type(types.elem_type(name), shape))

    def _slice_type(self, window: ReadRange | None) -> TypeProto:
        if window is None:
            return self.raising.form.head_types[0]
        read = Scanned(window.read.tensor, "", window.read.axis)
        known = element_type(self.raising.site, read)
        assert known is not None  # a read has a known axis
        return known

    # -- around the body

    def write(self) -> None:
        """Write the Scan, in an If where it is possible that no iteration runs."""
        readers = self.raising.site.graph.readers
        for carried in self.passed:
            if readers.get(carried.final):
                self.author.op("Identity", carried.initial, outputs=[carried.final])
        finals = [
            (carried, carried.final or self.author.fresh("unused")) for carried in self.carried
        ]
        rows = [(row, row.name or self.author.fresh("unused")) for row in self.rows]
        if self.raising.non_empty:
            self._scan(self.author, [name for _, name in finals], [name for _, name in rows])
        else:
            self._refuse_known_length()
            self._scan_or_none(finals, rows)

    def _scan_or_none(
        self, finals: Sequence[tuple[Carried, str]], rows: Sequence[tuple[ScanOutput, str]]
    ) -> None:
        """Write the Scan into an If, with these outputs; its other branch handles no iterations."""

        def some(inner: Author) -> Results:
            names = [inner.fresh(name) for name in outputs]
            self._scan(inner, names[: len(finals)], names[len(finals) :])
            return Results(names)

        def none(inner: Author) -> Results:
            untouched = [inner.op("Identity", carried.initial) for carried, _ in finals]
            return Results([*untouched, *(row.idle(inner) for row, _ in rows)])

        outputs = [name for _, name in (*finals, *rows)]
        types = [self._type(carried.body_input) for carried, _ in finals]
        types += [row.type for row, _ in rows]
        author, trips = self.author, self.raising.trips
        purpose = handles_no_trips(if_empty=trips.runs_if_non_empty)
        with author.serving(purpose):
            condition = trips.condition(author)
        branches = Branch("some", some), Branch("none", none, extra=True)
        either(author, condition, *branches, outputs, types, purpose=purpose)

    def _refuse_known_length(self) -> None:
        """Before opset 11 an If has the shape of one branch: refuse collected sizes that are
        known."""
        site = self.raising.site
        if site.target >= SHAPES_MAY_DIFFER or not self.rows:
            return
        for window, _ in self.scanned:
            size = window and (dims_of(site.type_of(window.read.tensor)) or ())[window.read.axis]
            if window and window.whole and isinstance(size, int):
                scanned = f"and {window.read.tensor!r} is scanned over {size} elements or none"
                lacks = f"has no If whose branches differ in shape, {scanned}"
                site.need_opset(SHAPES_MAY_DIFFER, lacks, window.read.tensor, code="old-if")
        for row in self.rows:
            begun = row.begins_with and (dims_of(site.type_of(row.begins_with)) or ())
            if begun and isinstance(begun[row.axis], int):
                kept = f"and {row.begins_with!r} keeps its {begun[row.axis]} elements"
                lacks = f"has no If whose branches differ in shape, {kept} if the loop does not run"
                site.need_opset(SHAPES_MAY_DIFFER, lacks, row.begins_with, code="old-if")

    def _scan(self, author: Author, finals: Sequence[str], rows: Sequence[str]) -> None:
        """Write the Scan, which is known to run, with these outputs."""
        windows = [window for window, _ in self.scanned]
        feeds = ScanFeeds(self.raising, windows, author)
        inputs = [feeds.tensor(window) for window in windows]
        raw = [
            author.fresh(f"{name}/rows") if row.finishes else name
            for row, name in zip(self.rows, rows, strict=True)
        ]
        write_scan(author, self._form(inputs, finals, raw), self._dressed)
        for row, name, final in zip(self.rows, raw, rows, strict=True):
            if row.finishes:
                row.finish(author, name, final)

    def _form(self, inputs: Sequence[str], finals: Sequence[str], rows: Sequence[str]) -> LoopForm:
        """The Scan over these tensors, with these outputs."""
        count = len(self.carried)
        return LoopForm(
            kind=Kind.SCAN,
            body=self.body.graph,
            carried=tuple(
                Carried(carried.initial, carried.body_input, result, final)
                for carried, result, final in zip(self.carried, self.results, finals, strict=False)
            ),
            scanned=tuple(
                Scanned(tensor, name, window.read.axis, window.read.backwards)
                if window
                else Scanned(tensor, name)
                for tensor, (window, name) in zip(inputs, self.scanned, strict=True)
            ),
            collected=tuple(
                Collected(result, name, row.axis, row.reversed)
                for row, result, name in zip(self.rows, self.results[count:], rows, strict=True)
            ),
        )

    def _dressed(self, node: NodeProto) -> NodeProto:
        """The Scan with the name and texts of the Loop. No name in its body shadows an outer one:
        when onnxruntime inlines the If around it, it confuses a shadowed name with the one that
        shadows it."""
        site = self.raising.site
        _inherit(node, site.node)
        ((_, body),) = scoping.subgraphs(node)
        hidden = {name for name in scoping.defined(body) if site.is_visible(name)}
        scoping.uncover(body, hidden.__contains__, site.fresh)
        return node


def _inherit(node: NodeProto, source: NodeProto) -> None:
    """Copy what people wrote on a node to the one that replaces it."""
    node.name = source.name
    node.doc_string = source.doc_string
    node.metadata_props.extend(source.metadata_props)
