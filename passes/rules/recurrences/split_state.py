"""The rule `split-state`: a carried value that is put together of parts is carried in parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from onnx import GraphProto, NodeProto, ValueInfoProto

from passes.bodies.time_body import OLDEST, TimeBody
from passes.ir import scope as scoping
from passes.ir.attributes import attribute
from passes.ir.graph_index import OUTPUT
from passes.ir.operators import op_of
from passes.ir.protos import replace_all
from passes.loops.form import Carried
from passes.rule import Edit, NothingToDo, Site, register
from passes.types.value_types import Dims, dims_of, elem_type_of, tensor_type
from passes.writing import spelling
from passes.writing.author import Author


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Return whether a node is a Scan in whose body a Concat may put a state together."""
    if op_of(node) != "Scan" or min(opset, target) < OLDEST:
        return False
    return any(op_of(inner) == "Concat" for inner in scoping.inner_nodes(node))


@register("split-state", considers=considers, optional=True)
def split_state(site: Site) -> Edit:
    """Carry the parts of a value that a Scan takes apart and puts together again.

    Before, in the body of a Scan that carries s:

        re = Gather <axis = 0> (s_in, zero)
        im = Gather <axis = 0> (s_in, one)
        ...
        s_out = Concat <axis = 0> (re_row, im_row)

    After, in that of one that carries re_row and im_row:

        re = Squeeze (re_row_in, zero)
        im = Squeeze (im_row_in, zero)
        ...

    so that each part is a state of its own, such as the real and the imaginary part of a number,
    or the two states of a recurrent operator. All reads of the state must be by constant positions.
    """
    typed = TimeBody.of(site)
    form = typed.form
    split = [one for one in (_packed(typed, carried) for carried in form.carried) if one]
    if not split:
        raise NothingToDo
    author = Author.at(site, "loop")
    packed = {one.carried: one for one in split}
    body = GraphProto()
    body.CopyFrom(form.body)
    first, last = (author.inside(body.name or "body") for _ in range(2))
    carried: list[Carried] = []
    for one in form.carried:
        carried += packed[one].parts(author, first, last, body) if one in packed else [one]
    gone = {name for one in split for name in one.reads}
    kept = [node for node in body.node if gone.isdisjoint(node.output)]
    replace_all(body.node, [*first.nodes, *kept, *last.nodes])
    body.initializer.extend(first.constants)
    before = list(author.nodes)
    loop = replace(form, body=body, carried=tuple(carried)).to_node()
    after = author.inside(author.prefix)
    for whole in split:
        if whole.carried.final:
            finals = [part.final for part in whole.made]
            after.op("Concat", *finals, outputs=[whole.carried.final], axis=whole.axis)
    return Edit(
        (*before, loop, *after.nodes),
        (*author.constants, *after.constants),
        note=", ".join(f"{one.carried.body_input} in {len(one.rows)} parts" for one in split),
    )


@dataclass(frozen=True)
class _Packed:
    """A carried value that is put together of `rows` on an axis; `reads` are the values that are
    one part of it, and the position of each; `dims` those of the value."""

    carried: Carried
    axis: int
    rows: tuple[str, ...]
    reads: dict[str, int]
    dims: Dims
    elem_type: int
    made: list[Carried]

    def parts(
        self, author: Author, first: Author, last: Author, body: GraphProto
    ) -> Sequence[Carried]:
        """The parts as carried values. `first` and `last` write into the body what is read of them,
        and what is returned."""
        names = [author.fresh(f"{self.carried.initial}/part") for _ in self.rows]
        spelling.split(author, self.carried.initial, self.axis, names)
        dims = (*self.dims[: self.axis], 1, *self.dims[self.axis + 1 :])
        own = [first.fresh(self.carried.body_input) for _ in self.rows]
        for name, position in self.reads.items():
            spelling.squeeze(first, own[position], self.axis, [name])
        for initial, name, row in zip(names, own, self.rows, strict=True):
            returned = last.fresh(row)
            last.op("Identity", row, outputs=[returned])
            kind = tensor_type(self.elem_type, dims)
            body.input.append(ValueInfoProto(name=name, type=kind))
            body.output.append(ValueInfoProto(name=returned, type=kind))
            final = author.fresh(f"{self.carried.body_output}/part")
            self.made.append(Carried(initial, name, returned, final))
        return self.made


def _packed(body: TimeBody, carried: Carried) -> _Packed | None:
    """The parts of a carried value; None where it is not taken apart, or not put together again."""
    index, types = body.index, body.rows.types
    made = index.producers.get(index.source(carried.body_output))
    known = types.get(carried.body_input)
    dims, given = dims_of(known), dims_of(body.site.type_of(carried.initial))
    if made is None or op_of(made) != "Concat" or dims is None or given is None:
        return None
    axis, count = attribute(made, "axis", 0) % len(dims), len(made.input)
    rows = [dims_of(types.get(name)) for name in made.input]
    sizes = [row[axis] if row is not None and len(row) == len(dims) else None for row in rows]
    if count < 2 or len(given) != len(dims) or given[axis] != count or sizes != [1] * count:
        return None
    reads: dict[str, int] = {}
    for position in index.readers.get(carried.body_input, ()):
        node = None if position == OUTPUT else body.nodes[position]
        if node is None or op_of(node) != "Gather" or node.input[0] != carried.body_input:
            return None
        place = body.rows.constants.get(node.input[1])
        if place is None or place.shape or attribute(node, "axis", 0) % len(dims) != axis:
            return None
        if not -count <= place < count:
            return None
        reads[node.output[0]] = int(place) % count
    return _Packed(carried, axis, tuple(made.input), reads, given, elem_type_of(known), [])
