"""Facts about a Scan-8 site, gathered once for every way of upgrading it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from onnx import GraphProto, TypeProto, ValueInfoProto

from passes.analysis.integers.integers import Integers
from passes.ir import scope as scoping
from passes.ir.boundary import own_outputs
from passes.ir.protos import copied
from passes.loops.form import LoopForm
from passes.rule import Site
from passes.types.value_types import Dim, Dims, dims_of, elem_type_of, tensor_type
from passes.writing import spelling
from passes.writing.author import Author


@dataclass(frozen=True)
class RowType:
    """Element type and dims of a value in one row: no batch axis, no time axis."""

    elem_type: int
    dims: Dims

    def type(self, *leading: Dim) -> TypeProto:
        """The type, with more axes in front."""
        return tensor_type(self.elem_type, (*leading, *self.dims))

    def value_info(self, name: str, *leading: Dim) -> ValueInfoProto:
        """The value called `name`, with more axes in front."""
        return ValueInfoProto(name=name, type=self.type(*leading))

    @property
    def is_static(self) -> bool:
        """True if all dims are numbers."""
        return all(isinstance(dim, int) for dim in self.dims)

    def shape(self, author: Author, name: str, leading: int) -> str:
        """The dims of one row of `name`, which has so many axes in front: int64 vector."""
        known = [dim for dim in self.dims if isinstance(dim, int)]
        if self.is_static:
            return author.ints(*known)
        return spelling.rest_of_shape(author, name, leading)


@dataclass(frozen=True)
class BatchedScan:
    """A Scan-8, taken apart, with the types that its upgrade needs.

    `body` is ready to stand in a Scan-9+. `batches` and `times` are the sizes that the inputs have,
    those that are proven to be equal once: numbers, or an input to measure.
    """

    form: LoopForm
    body: GraphProto
    states: tuple[RowType, ...]
    elements: tuple[RowType, ...]
    batches: tuple[int | str, ...]
    times: tuple[int | str, ...]

    @property
    def batch(self) -> int | None:
        """The size of the batch, if some input declares it."""
        return _known(self.batches)

    @property
    def time(self) -> int | None:
        """The number of steps, if some input declares it."""
        return _known(self.times)

    @property
    def sequence_types(self) -> list[int]:
        """The element types of the scanned tensors; 0 where unknown."""
        types = {value.name: elem_type_of(value.type) for value in self.body.input}
        return [types[scanned.body_input] for scanned in self.form.scanned]

    @property
    def initials(self) -> list[str]:
        """The initial states, [batch, ...]."""
        return [carried.initial for carried in self.form.carried]

    @property
    def sequences(self) -> list[str]:
        """The scanned tensors, [batch, time, ...]."""
        return [scanned.tensor for scanned in self.form.scanned]

    def reading(self, replaced: Mapping[str, str]) -> BatchedScan:
        """The same, scanning other tensors in the place of some."""
        scanned = tuple(
            replace(one, tensor=replaced.get(one.tensor, one.tensor)) for one in self.form.scanned
        )
        return replace(self, form=replace(self.form, scanned=scanned))

    @classmethod
    def of(cls, site: Site) -> BatchedScan:
        """Read a site.

        Raises:
            Refused: `unknown-type` or `unknown-rank` where inference does not tell what a state
                or a collected value of one row looks like.
        """
        form = LoopForm.from_node(site.node, site.opset)
        states = tuple(row_type(site, (one.body_output, one.body_input)) for one in form.carried)
        elements = tuple(row_type(site, (collected.body_output,)) for collected in form.collected)
        sequences = [scanned.tensor for scanned in form.scanned]
        initials = [carried.initial for carried in form.carried]
        lengths = [form.lengths] if form.lengths else []
        integers = Integers(site)
        return cls(
            form=form,
            body=ready_body(site, form, (*states, *elements)),
            states=states,
            elements=elements,
            batches=_different(integers, [*sequences, *initials, *lengths], 0),
            times=_different(integers, sequences, 1),
        )


def _different(integers: Integers, names: Sequence[str], axis: int) -> tuple[int | str, ...]:
    """The sizes of an axis, but for those that are proven to be that of one in front."""
    found: dict[object, int | str] = {}
    for name in names:
        size = integers.size(name, axis)
        number = None if size is None else size.number
        found.setdefault(name if size is None else size, name if number is None else number)
    return tuple(found.values())


def _known(sizes: Sequence[int | str]) -> int | None:
    return next((size for size in sizes if isinstance(size, int)), None)


def row_type(site: Site, names: Sequence[str]) -> RowType:
    """Return the type of a body value; of several that must agree, the most precise one."""
    types = [site.body_type_of("body", name) for name in names]
    elem_type = next((elem_type_of(one) for one in types if elem_type_of(one)), 0)
    shapes = [dims for one in types if (dims := dims_of(one)) is not None]
    if not elem_type:
        what = f"the element type of {names[0]!r} in the body is neither declared nor inferred"
        raise site.refused("unknown-type", what, names[0])
    if not shapes:
        raise site.refused(
            "unknown-rank",
            f"the rank of {names[0]!r} in the body is neither declared nor inferred, "
            "so the collected rows cannot be typed",
            names[0],
        )
    return RowType(elem_type, max(shapes, key=lambda dims: sum(dim is not None for dim in dims)))


def ready_body(site: Site, form: LoopForm, types: Sequence[RowType]) -> GraphProto:
    """The body with typed outputs that are nodes' outputs, each listed once."""
    body = copied(form.body)
    del body.input[len(body.input) - len(form.constant_inputs) :]
    for value in body.input:
        _complete(value, site.body_type_of("body", value.name))
    own_outputs(body, lambda name: site.fresh(f"{name}/own"))
    for value, row in zip(body.output, types, strict=True):
        value.type.CopyFrom(tensor_type(row.elem_type, row.dims))
    _drop_value_info_of_outputs(body)
    return body


def _complete(value: ValueInfoProto, known: TypeProto | None) -> None:
    if known is not None and dims_of(value.type) is None:
        value.type.CopyFrom(known)


def _drop_value_info_of_outputs(body: GraphProto) -> None:
    outputs = set(scoping.output_names(body))
    kept = [value for value in body.value_info if value.name not in outputs]
    del body.value_info[:]
    body.value_info.extend(kept)
