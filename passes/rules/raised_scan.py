"""Writes the Scan that a Loop becomes, and what goes in front of it and behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from onnx import GraphProto, NodeProto, TypeProto, helper

from passes import scope as scoping
from passes import spelling
from passes.author import Author
from passes.loop_form import Carried, Collected, Kind, LoopForm, Scanned
from passes.purposes import handles_no_trips
from passes.rule import Refused
from passes.rules.accumulated import rows_of
from passes.rules.branch_types import SHAPES_MAY_DIFFER
from passes.rules.collected_rows import Rows
from passes.rules.made_up_sizes import without_made_up
from passes.rules.raised_body import RaisedBody
from passes.rules.raising import Raising, check_carried
from passes.rules.readers import readers_around
from passes.rules.scan_feeds import ScanFeeds
from passes.rules.unread import doubts_of
from passes.rules.windows import Window
from passes.scan_axes import write_scan
from passes.value_types import dims_of, elem_type_of, tensor_type


@dataclass
class RaisedScan:
    """The Scan of one site; `write` leaves its nodes with the author."""

    raising: Raising
    author: Author
    body: RaisedBody = field(init=False)
    carried: list[Carried] = field(init=False)
    passed: list[Carried] = field(init=False)
    scanned: list[tuple[Window | None, str]] = field(init=False)
    rows: list[Rows] = field(init=False)
    graph: GraphProto = field(init=False)

    def __post_init__(self) -> None:
        raising = self.raising
        inner = self.author.inside(f"{self.author.prefix}/step")
        doubts = doubts_of(raising.site, raising.form, raising.types.dims)
        self.body = RaisedBody(raising.form, raising.integers, inner, doubts)
        self.scanned = [(group[0], self._take(group)) for group in raising.windows]
        self.rows = rows_of(raising, self.body)
        self._prune()
        self._close()

    def _take(self, group: Sequence[Window]) -> str:
        """Take the reads of the same slices out of the body: it gets the slice as an input."""
        bare = [name for one in group if not one.read.kept_axis for name in one.read.results]
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
        """Drop what nobody needs any more, and prove the rest."""
        raising, form = self.raising, self.raising.form
        results = [rows.result for rows in self.rows]
        self.carried = self.body.prune(results, raising.kept, raising.droppable)
        for one in self.carried:
            if one.body_input in raising.droppable:
                check_carried(raising.site, one, raising.types)
        stay = {one.body_input for one in self.carried}
        self.passed = [one for one in raising.kept if one.body_input not in stay]
        self.body.settle_condition()
        if not self.scanned or self.body.reads(form.iteration):
            self.scanned.append((None, form.iteration))
        if not self.carried and not self.rows:  # a Scan gives something, read or not
            window, name = self.scanned[0]
            self.rows.append(Rows(raising, name, "", self._slice_type(window)))

    def _close(self) -> None:
        """Give the body the inputs and outputs of a Scan."""
        inputs: list[tuple[str, TypeProto | None]] = [
            (one.body_input, self._type(one.body_input)) for one in self.carried
        ]
        inputs += [(name, self._slice_type(window)) for window, name in self.scanned]
        results = [one.body_output for one in self.carried] + [one.result for one in self.rows]
        types = [self._type(one.body_input) for one in self.carried]
        types += [one.element_type for one in self.rows]
        outputs = list(zip(results, types, strict=True))
        self.results = self.body.finish(inputs, outputs)
        self._declare([name for name, _ in inputs], results)

    def _declare(self, inputs: Sequence[str], results: Sequence[str]) -> None:
        """Let the body declare no size that onnxruntime would hold a Scan to, but not a Loop."""
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

    def _slice_type(self, window: Window | None) -> TypeProto:
        if window is None:
            return self.raising.form.head_types[0]
        known = self.raising.site.type_of(window.read.tensor)
        dims = list(dims_of(known) or ())
        del dims[window.read.axis]
        return tensor_type(elem_type_of(known), tuple(dims))

    # -- around the body

    def write(self) -> None:
        """Write the Scan; it stands in an If where possibly no iteration runs."""
        readers = readers_around(self.raising.site)
        for one in self.passed:
            if readers.get(one.final):
                self.author.op("Identity", one.initial, outputs=[one.final])
        finals = [(one, one.final or self.author.fresh("unused")) for one in self.carried]
        rows = [(one, one.name or self.author.fresh("unused")) for one in self.rows]
        if self.raising.non_empty:
            self._scan(self.author, [name for _, name in finals], [name for _, name in rows])
        else:
            self._refuse_known_length()
            self._scan_or_none(finals, rows)

    def _scan_or_none(
        self, finals: Sequence[tuple[Carried, str]], rows: Sequence[tuple[Rows, str]]
    ) -> None:
        """Write the Scan into an If, under these names; its other branch runs no iteration."""
        running = self.author.inside(f"{self.author.prefix}/some")
        names = [running.fresh(name) for _, name in (*finals, *rows)]
        self._scan(running, names[: len(finals)], names[len(finals) :])
        types = [self._type(one.body_input) for one, _ in finals]
        types += [one.type for one, _ in rows]
        trips = self.raising.trips
        with self.author.serving(handles_no_trips(if_empty=trips.at_least_one_if_non_empty)):
            idle = self.author.inside(f"{self.author.prefix}/none")
            untouched = [idle.op("Identity", one.initial) for one, _ in finals]
            untouched += [one.idle(idle) for one, _ in rows]
            self.author.op(
                "If",
                self.author.op("Greater", trips.scalar(self.author), self.author.int(0)),
                outputs=[name for _, name in (*finals, *rows)],
                then_branch=_branch(running, names, types),
                else_branch=_branch(idle, untouched, types),
            )

    def _refuse_known_length(self) -> None:
        """Before opset 11 an If has the sizes of one branch: none may tell how much it collects."""
        site = self.raising.site
        if site.target >= SHAPES_MAY_DIFFER or not self.rows:
            return
        for window, _ in self.scanned:
            size = window and (dims_of(site.type_of(window.read.tensor)) or ())[window.read.axis]
            if window and window.whole and isinstance(size, int):
                raise Refused(
                    "old-if",
                    f"{window.read.tensor!r} has {size} elements to scan or none, and the branches "
                    f"of an If give one shape before opset {SHAPES_MAY_DIFFER}",
                    [site.path, window.read.tensor],
                )
        for row in self.rows:
            begun = row.begins_with and (dims_of(site.type_of(row.begins_with)) or ())
            if begun and isinstance(begun[row.axis], int):
                raise Refused(
                    "old-if",
                    f"{row.begins_with!r} has {begun[row.axis]} elements, to which the loop adds "
                    f"or does not, and the branches of an If give one shape before opset "
                    f"{SHAPES_MAY_DIFFER}",
                    [site.path, row.begins_with],
                )

    def _scan(self, author: Author, finals: Sequence[str], rows: Sequence[str]) -> None:
        """Write the Scan, known to run, under these names."""
        windows = [window for window, _ in self.scanned]
        feeds = ScanFeeds(self.raising, windows, author)
        inputs = [feeds.tensor(window) for window in windows]
        raw = [
            author.fresh(f"{name}/rows") if one.finishes else name
            for one, name in zip(self.rows, rows, strict=True)
        ]
        write_scan(author, self._form(inputs, finals, raw), self._dressed)
        for one, name, final in zip(self.rows, raw, rows, strict=True):
            if one.finishes:
                one.finish(author, name, final)

    def _form(self, inputs: Sequence[str], finals: Sequence[str], rows: Sequence[str]) -> LoopForm:
        """The Scan that scans these tensors, and names what it gives so."""
        count = len(self.carried)
        return LoopForm(
            kind=Kind.SCAN,
            body=self.body.graph,
            carried=tuple(
                Carried(one.initial, one.body_input, result, final)
                for one, result, final in zip(self.carried, self.results, finals, strict=False)
            ),
            scanned=tuple(
                Scanned(tensor, name, window.read.axis, window.read.backwards)
                if window
                else Scanned(tensor, name)
                for tensor, (window, name) in zip(inputs, self.scanned, strict=True)
            ),
            collected=tuple(
                Collected(result, name, one.axis, one.reversed)
                for one, result, name in zip(self.rows, self.results[count:], rows, strict=True)
            ),
        )

    def _dressed(self, node: NodeProto) -> NodeProto:
        """The Scan with what people wrote on the Loop, no name of whose body hides an outer one:
        where onnxruntime takes the If around apart, it takes a hidden name for the one that hides
        it."""
        site = self.raising.site
        fresh = site.names.fresh
        _inherit(node, site.node)
        ((_, body),) = scoping.subgraphs(node)
        hidden = {name for name in scoping.defined(body) if site.is_visible(name)}
        if hidden:
            scoping.rename_all(body, lambda name: fresh(name) if name in hidden else name)
        return node


def _branch(writer: Author, names: Sequence[str], types: Sequence[TypeProto]) -> GraphProto:
    outputs = [helper.make_value_info(*one) for one in zip(names, types, strict=True)]
    return writer.graph(writer.prefix, [], outputs)


def _inherit(node: NodeProto, source: NodeProto) -> None:
    """The node that takes the place keeps what people wrote on the old one."""
    node.name = source.name
    node.doc_string = source.doc_string
    node.metadata_props.extend(source.metadata_props)
