"""A Scan whose body does nothing but run a Scan: how their values correspond."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import GraphProto, NodeProto, TypeProto

from passes.bodies.lifting import is_constant
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.ir.protos import copied
from passes.loops.form import Carried, Collected, LoopForm, Scanned
from passes.rule import NothingToDo, Refused, Site
from passes.rules.flatten_scan.grid_axes import Grid
from passes.types.value_types import dims_of, elem_type_of


class Nest:
    """Both Scans, and what they do together.

    `carried` leads from the initial values of the outer Scan to its finals through the body of the
    inner one, whose names are also free outside of it; `scanned` and `collected` are those of the
    inner one, each with the tensor of all rows. `origin` returns what Identities in the outer body
    copy to a name.

    Raises:
        NothingToDo: the body holds no Scan.
        Refused: it does something else too, or the two Scans do not fit together.
    """

    def __init__(self, site: Site) -> None:
        self.site = site
        self.outer = LoopForm.from_node(site.node, site.opset)
        self.inner = LoopForm.from_node(_only_scan(site, self.outer.body), site.opset)
        self.origin = self.outer.index.source
        self._refuse_captures()
        self.carried = tuple(self._carried())
        self.scanned = tuple(self._scanned())
        self.collected = tuple(self._collected())

    def _refuse_captures(self) -> None:
        """Check that the inner body reads nothing of a row but its elements."""
        varying = set(self.outer.body_inputs) - {*self.outer.constant_inputs}
        read = [name for name in self.inner.captured if self.origin(name) in varying]
        if read:
            what = f"the body of the inner Scan reads {read[0]!r}, which differs between rows"
            raise self.site.refused("reads-row", what, *read)

    def _carried(self) -> Iterator[Carried]:
        """The carried values of the outer Scan, each of which the inner one must carry on."""
        finals = {carried.final: carried for carried in self.inner.carried}
        if len(self.inner.carried) != len(self.outer.carried):
            raise self._other_states(*(carried.body_input for carried in self.inner.carried))
        for carried in self.outer.carried:
            through = finals.get(self.origin(carried.body_output))
            if through is None or self.origin(through.initial) != carried.body_input:
                raise self._other_states(carried.body_input)
            yield Carried(carried.initial, through.body_input, through.body_output, carried.final)

    def _other_states(self, *culprits: str) -> Refused:
        what = "the inner Scan does not carry on just the states with which a row begins"
        return self.site.refused("other-states", what, *culprits)

    def _scanned(self) -> Iterator[tuple[Scanned, Grid]]:
        """Each row that the inner Scan scans, which the outer one must scan too."""
        rows = {scanned.body_input: scanned for scanned in self.outer.scanned}
        unread = sorted({*rows} - {self.origin(scanned.tensor) for scanned in self.inner.scanned})
        if unread:
            raise self._other_rows(f"does not scan {unread[0]!r}", *unread)
        for scanned in self.inner.scanned:
            row = rows.get(self.origin(scanned.tensor))
            if row is None:
                raise self._other_rows(f"scans {scanned.tensor!r}, which is no row", scanned.tensor)
            self._refuse_turned(scanned.reversed, row.reversed, scanned.tensor)
            yield scanned, self._grid(row, scanned, self.site.type_of(row.tensor), row.tensor)

    def _other_rows(self, why: str, *culprits: str) -> Refused:
        return self.site.refused("other-rows", f"the inner Scan {why}", *culprits)

    def _collected(self) -> Iterator[tuple[Collected, Grid]]:
        """The outputs that the outer Scan collects, each of which the inner one must collect."""
        inner = {one.tensor: one for one in self.inner.collected}
        outer = [(one, self.origin(one.body_output)) for one in self.outer.collected]
        met = {name for _, name in outer}
        odd = [name for _, name in outer if name not in inner]
        odd += [one.body_output for one in self.inner.collected if one.tensor not in met]
        if odd:
            what = f"the Scans do not collect the same: only one of them collects {odd[0]!r}"
            raise self.site.refused("other-outputs", what, *odd)
        for collected, name in outer:
            row, output = inner[name], collected.body_output
            self._refuse_turned(row.reversed, collected.reversed, name)
            known = self.site.body_type_of("body", output)
            yield row, self._grid(collected, row, known, output)

    def _grid(
        self,
        outer: Scanned | Collected,
        inner: Scanned | Collected,
        known: TypeProto | None,
        name: str,
    ) -> Grid:
        """The tensor of all rows; `known` is the type of `name`: it, or a row that is collected."""
        dims = dims_of(known)
        if dims is None:
            what = f"the rank of {name!r} is neither declared nor inferred"
            raise self.site.refused("unknown-rank", what, name)
        if isinstance(outer, Collected):
            across = outer.axis % (len(dims) + 1)
            dims = (*dims[:across], None, *dims[across:])
        across, along = outer.axis % len(dims), inner.axis % (len(dims) - 1)
        return Grid(outer.tensor, across, along + (along >= across), dims, elem_type_of(known))

    def _refuse_turned(self, inner: bool, outer: bool, name: str) -> None:
        if inner != outer:
            raise self.site.refused(
                "directions", f"{name!r} is forward in one Scan and backward in the other", name
            )


def _only_scan(site: Site, body: GraphProto) -> NodeProto:
    """A copy of the only Scan of a body that otherwise holds at most constants and Identities; its
    own body shadows no outer value."""
    scans = [node for node in body.node if op_of(node) == "Scan"]
    if not scans:
        raise NothingToDo
    busy = [node for node in body.node if not is_constant(node) and op_of(node) != "Identity"]
    others = [node for node in busy if node is not scans[0]]
    if others:
        raise site.refused(
            "other-work",
            "beside a Scan, the body runs " + ", ".join(sorted({op_of(node) for node in others})),
            *(name for node in others for name in node.output if name),
        )
    scan = copied(scans[0])
    around = scoping.defined(body)
    for _, inner in scoping.subgraphs(scan):
        scoping.uncover(inner, lambda name: name in around or site.is_visible(name), site.fresh)
    return scan
