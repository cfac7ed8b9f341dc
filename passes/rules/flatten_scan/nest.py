"""A Scan whose body does nothing but run a Scan: which value of one is which of the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from onnx import GraphProto, NodeProto, TypeProto

from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.loops.form import Carried, Collected, LoopForm, Scanned
from passes.rule import NothingToDo, Refused, Site
from passes.rules.flatten_scan.grid_axes import Grid
from passes.rules.hoist.lifting import is_constant
from passes.types.value_types import dims_of, elem_type_of


@dataclass(frozen=True)
class Nest:
    """Both Scans, and what they do together.

    `carried` leads from the initial values of the outer one to its finals through the body of the
    inner one, no name in which means something outside of it too; `scanned` and `collected` are
    those of the inner one, each with the tensor that holds all rows. `origins` are the values that
    Identities of the outer body hand on, by the names that these give them.
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
    """The Scan beside which a body holds constants and Identities at most."""
    found = [node for node in body.node if is_scan(node)]
    if not found:
        raise NothingToDo
    others = [node for node in body.node if not (is_constant(node) or _is_identity(node))]
    if len(others) > 1:
        others = [node for node in others if node is not found[0]]
        raise Refused(
            "other-work",
            "beside a Scan, the body runs " + ", ".join(sorted({op_of(one) for one in others})),
            [site.path, *(name for one in others for name in one.output if name)],
        )
    return found[0]


def _uncovered(site: Site, body: GraphProto) -> NodeProto:
    """A copy of the only Scan of a body, whose own body hides no value around it."""
    node = NodeProto()
    node.CopyFrom(_only_scan(site, body))
    around = scoping.defined(body)

    def own(name: str) -> str:
        return site.fresh(name) if name in around or site.is_visible(name) else name

    for _, inner in scoping.subgraphs(node):
        scoping.rename_all(inner, own)
    return node


def is_scan(node: NodeProto) -> bool:
    """Whether a node is a Scan."""
    return op_of(node) == "Scan"


def _is_identity(node: NodeProto) -> bool:
    return op_of(node) == "Identity"


def _origins(body: GraphProto) -> dict[str, str]:
    """The value that an Identity hands on, by the name that it gives it."""
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
        """See that the inner body knows nothing of the row but its elements."""
        varying = set(self.outer.body_inputs) - {*self.outer.constant_inputs}
        read = [name for name in self.inner.captured if self._origin(name) in varying]
        if read:
            raise Refused(
                "reads-row",
                f"the body of the inner Scan reads {read[0]!r}, which every row has anew",
                [self.site.path, *read],
            )

    def _carried(self) -> Iterator[Carried]:
        """Each state of the outer Scan, which the inner one must carry on."""
        finals = {one.final: one for one in self.inner.carried if one.final}
        if len(self.inner.carried) != len(self.outer.carried):
            raise self._other_states(*(one.body_input for one in self.inner.carried))
        for one in self.outer.carried:
            through = finals.pop(self._origin(one.body_output), None)
            if through is None or self._origin(through.initial) != one.body_input:
                raise self._other_states(one.body_input)
            yield Carried(one.initial, through.body_input, through.body_output, one.final)

    def _other_states(self, *culprits: str) -> Refused:
        return Refused(
            "other-states",
            "the inner Scan does not carry on just the states with which a row begins",
            [self.site.path, *culprits],
        )

    def _scanned(self) -> Iterator[tuple[Scanned, Grid]]:
        """Each row that the inner Scan scans, which must be one that the outer one does."""
        rows = {one.body_input: one for one in self.outer.scanned}
        unread = set(rows) - {self._origin(one.tensor) for one in self.inner.scanned}
        if unread:
            raise self._other_rows(f"does not scan {sorted(unread)[0]!r}", *sorted(unread))
        for one in self.inner.scanned:
            row = rows.get(self._origin(one.tensor))
            if row is None:
                raise self._other_rows(f"scans {one.tensor!r}, which is no row", one.tensor)
            self._refuse_turned(one.reversed, row.reversed, one.tensor)
            known = self.site.type_of(row.tensor)
            yield one, self._grid(row.tensor, known, row.axis, one.axis)

    def _other_rows(self, why: str, *culprits: str) -> Refused:
        return Refused("other-rows", f"the inner Scan {why}", [self.site.path, *culprits])

    def _collected(self) -> Iterator[tuple[Collected, Grid]]:
        """Each output that the outer Scan collects, which must be what the inner one collects."""
        made = {one.tensor: one for one in self.inner.collected if one.tensor}
        told = [self._origin(one.body_output) for one in self.outer.collected]
        odd = [name for name in told if name not in made]
        odd += [one.body_output for one in self.inner.collected if one.tensor not in told]
        if odd:
            raise Refused(
                "other-outputs",
                f"what the Scans collect is not the same: {odd[0]!r} is only of one of them",
                [self.site.path, *odd],
            )
        for one, name in zip(self.outer.collected, told, strict=True):
            row = made[name]
            self._refuse_turned(row.reversed, one.reversed, name)
            yield row, self._written(one, row)

    def _written(self, one: Collected, row: Collected) -> Grid:
        """What is collected of all rows, whose sizes are told by one row."""
        known = self.site.body_type_of("body", one.body_output)
        dims = dims_of(known)
        if dims is None:
            raise self._unknown_rank(one.body_output)
        across = one.axis % (len(dims) + 1)
        whole = (*dims[:across], None, *dims[across:])
        along = _beside(across, row.axis % len(dims))
        return Grid(one.tensor, across, along, whole, elem_type_of(known))

    def _grid(self, tensor: str, known: TypeProto | None, across: int, along: int) -> Grid:
        dims = dims_of(known)
        if dims is None:
            raise self._unknown_rank(tensor)
        across %= len(dims)
        beside = _beside(across, along % (len(dims) - 1))
        return Grid(tensor, across, beside, dims, elem_type_of(known))

    def _unknown_rank(self, name: str) -> Refused:
        return Refused(
            "unknown-rank",
            f"the rank of {name!r} is neither declared nor inferred",
            [self.site.path, name],
        )

    def _refuse_turned(self, one: bool, other: bool, name: str) -> None:
        if one != other:
            raise Refused(
                "directions",
                f"{name!r} goes forward in one Scan and backward in the other",
                [self.site.path, name],
            )


def _beside(across: int, along: int) -> int:
    """An axis of a row, counted in the tensor of all rows."""
    return along if along < across else along + 1
