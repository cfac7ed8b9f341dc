"""A Scan whose body does nothing but run a Scan: how their values correspond."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from onnx import GraphProto, NodeProto, TypeProto

from passes.bodies.lifting import is_constant
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.ir.protos import copied
from passes.loops.form import Carried, Collected, LoopForm, Scanned
from passes.rule import NothingToDo, Refused, Site
from passes.rules.flatten_scan.grid_axes import Grid
from passes.types.value_types import dims_of, elem_type_of


@dataclass(frozen=True)
class Nest:
    """Both Scans, and what they do together.

    `carried` leads from the initial values of the outer Scan to its finals through the body of the
    inner one, whose names are also free outside of it; `scanned` and `collected` are those of the
    inner one, each with the tensor of all rows. `origins` maps the outputs of Identities in the
    outer body to their inputs.
    """

    outer: LoopForm
    inner: LoopForm
    carried: tuple[Carried, ...]
    scanned: tuple[tuple[Scanned, Grid], ...]
    collected: tuple[tuple[Collected, Grid], ...]
    origins: Mapping[str, str]

    @classmethod
    def of(cls, site: Site) -> Nest:
        """Take a nest apart.

        Raises:
            NothingToDo: the body holds no Scan.
            Refused: it does something else too, or the two Scans do not fit together.
        """
        outer = LoopForm.from_node(site.node, site.opset)
        inner = LoopForm.from_node(_uncovered(site, outer.body), site.opset)
        return _Matching(site, outer, inner, _origins(outer.body)).nest()


def _only_scan(site: Site, body: GraphProto) -> NodeProto:
    """The only Scan of a body that otherwise holds at most constants and Identities."""
    scans = [node for node in body.node if op_of(node) == "Scan"]
    if not scans:
        raise NothingToDo
    others = [node for node in body.node if not (is_constant(node) or _is_identity(node))]
    if len(others) > 1:
        others = [node for node in others if node is not scans[0]]
        raise site.refused(
            "other-work",
            "beside a Scan, the body runs " + ", ".join(sorted({op_of(node) for node in others})),
            *(name for node in others for name in node.output if name),
        )
    return scans[0]


def _uncovered(site: Site, body: GraphProto) -> NodeProto:
    """A copy of the only Scan of a body, whose own body shadows no outer value."""
    node = copied(_only_scan(site, body))
    around = scoping.defined(body)
    for _, inner in scoping.subgraphs(node):
        scoping.uncover(inner, lambda name: name in around or site.is_visible(name), site.fresh)
    return node


def _is_identity(node: NodeProto) -> bool:
    return op_of(node) == "Identity"


def _origins(body: GraphProto) -> dict[str, str]:
    """The inputs of Identities, by their outputs."""
    found: dict[str, str] = {}
    for node in filter(_is_identity, body.node):
        found[node.output[0]] = found.get(node.input[0], node.input[0])
    return found


@dataclass(frozen=True)
class _Matching:
    site: Site
    outer: LoopForm
    inner: LoopForm
    origins: dict[str, str]

    def nest(self) -> Nest:
        self._refuse_captures()
        return Nest(
            self.outer,
            self.inner,
            tuple(self._carried()),
            tuple(self._scanned()),
            tuple(self._collected()),
            self.origins,
        )

    def _origin(self, name: str) -> str:
        return self.origins.get(name, name)

    def _refuse_captures(self) -> None:
        """Check that the inner body reads nothing of a row but its elements."""
        varying = set(self.outer.body_inputs) - {*self.outer.constant_inputs}
        read = [name for name in self.inner.captured if self._origin(name) in varying]
        if read:
            what = f"the body of the inner Scan reads {read[0]!r}, which differs between rows"
            raise self.site.refused("reads-row", what, *read)

    def _carried(self) -> Iterator[Carried]:
        """The carried values of the outer Scan, each of which the inner one must carry on."""
        finals = {carried.final: carried for carried in self.inner.carried if carried.final}
        if len(self.inner.carried) != len(self.outer.carried):
            raise self._other_states(*(carried.body_input for carried in self.inner.carried))
        for carried in self.outer.carried:
            through = finals.pop(self._origin(carried.body_output), None)
            if through is None or self._origin(through.initial) != carried.body_input:
                raise self._other_states(carried.body_input)
            yield Carried(carried.initial, through.body_input, through.body_output, carried.final)

    def _other_states(self, *culprits: str) -> Refused:
        what = "the inner Scan does not carry on just the states with which a row begins"
        return self.site.refused("other-states", what, *culprits)

    def _scanned(self) -> Iterator[tuple[Scanned, Grid]]:
        """Each row that the inner Scan scans, which the outer one must scan too."""
        rows = {scanned.body_input: scanned for scanned in self.outer.scanned}
        unread = set(rows) - {self._origin(scanned.tensor) for scanned in self.inner.scanned}
        if unread:
            raise self._other_rows(f"does not scan {sorted(unread)[0]!r}", *sorted(unread))
        for scanned in self.inner.scanned:
            row = rows.get(self._origin(scanned.tensor))
            if row is None:
                raise self._other_rows(f"scans {scanned.tensor!r}, which is no row", scanned.tensor)
            self._refuse_turned(scanned.reversed, row.reversed, scanned.tensor)
            known = self.site.type_of(row.tensor)
            yield scanned, self._grid(row.tensor, known, row.axis, scanned.axis)

    def _other_rows(self, why: str, *culprits: str) -> Refused:
        return self.site.refused("other-rows", f"the inner Scan {why}", *culprits)

    def _collected(self) -> Iterator[tuple[Collected, Grid]]:
        """The outputs that the outer Scan collects, each of which the inner one must collect."""
        inner = {
            collected.tensor: collected for collected in self.inner.collected if collected.tensor
        }
        origins = [self._origin(collected.body_output) for collected in self.outer.collected]
        odd = [name for name in origins if name not in inner]
        odd += [
            collected.body_output
            for collected in self.inner.collected
            if collected.tensor not in origins
        ]
        if odd:
            what = f"the Scans do not collect the same: only one of them collects {odd[0]!r}"
            raise self.site.refused("other-outputs", what, *odd)
        for collected, name in zip(self.outer.collected, origins, strict=True):
            row = inner[name]
            self._refuse_turned(row.reversed, collected.reversed, name)
            yield row, self._written(collected, row)

    def _written(self, collected: Collected, row: Collected) -> Grid:
        """The tensor of what is collected over all rows, with the sizes of one row."""
        known = self.site.body_type_of("body", collected.body_output)
        dims = dims_of(known)
        if dims is None:
            raise self._unknown_rank(collected.body_output)
        across = collected.axis % (len(dims) + 1)
        whole = (*dims[:across], None, *dims[across:])
        along = _beside(across, row.axis % len(dims))
        return Grid(collected.tensor, across, along, whole, elem_type_of(known))

    def _grid(self, tensor: str, known: TypeProto | None, across: int, along: int) -> Grid:
        dims = dims_of(known)
        if dims is None:
            raise self._unknown_rank(tensor)
        across %= len(dims)
        beside = _beside(across, along % (len(dims) - 1))
        return Grid(tensor, across, beside, dims, elem_type_of(known))

    def _unknown_rank(self, name: str) -> Refused:
        return self.site.refused(
            "unknown-rank", f"the rank of {name!r} is neither declared nor inferred", name
        )

    def _refuse_turned(self, inner: bool, outer: bool, name: str) -> None:
        if inner != outer:
            raise self.site.refused(
                "directions", f"{name!r} is forward in one Scan and backward in the other", name
            )


def _beside(across: int, along: int) -> int:
    """An axis of a row, counted in the tensor of all rows."""
    return along if along < across else along + 1
