"""Which collected outputs a Scan has in place of a Loop's, and of the tensors that it carried."""

from __future__ import annotations

from dataclasses import replace

from onnx import TypeProto

from passes import spelling
from passes.operators import op_of
from passes.rule import Refused
from passes.rules.accumulators import Accumulator, Joined
from passes.rules.collected_rows import ZERO_IS_A_SIZE, Rows
from passes.rules.raised_body import RaisedBody
from passes.rules.raising import Raising
from passes.rules.trailing import Placed, placed
from passes.value_types import dims_of, tensor_type


def rows_of(raising: Raising, body: RaisedBody) -> list[Rows]:
    """The collected outputs: those that the Loop has, then those that it carried."""
    types = raising.types
    found = []
    for one, where in zip(raising.form.collected, raising.rows, strict=True):
        element = _type(raising, one.body_output)
        found.append(_placed(raising, one.body_output, where, element))
    for accumulator in raising.accumulators:
        body.drop(accumulator.node)
        if types.elem_type(accumulator.element):
            found += _accumulated(raising, body, accumulator)
    return found


def _placed(raising: Raising, result: str, where: Placed, element: TypeProto) -> Rows:
    covered = where.covered
    return Rows(raising, result, where.name, element, where.axis, where.reversed, covered)


def _type(raising: Raising, name: str) -> TypeProto:
    """The type of an element; its dims may be symbols of `BodyTypes.sizes`."""
    return tensor_type(raising.types.elem_type(name), raising.types.dims(name))


def _accumulated(raising: Raising, body: RaisedBody, one: Accumulator) -> list[Rows]:
    if one.joins:
        return [_joined(raising, body, one, join) for join in one.joins]
    sequence = raising.site.type_of(one.carried.initial)
    if sequence is not None and sequence.WhichOneof("value") == "sequence_type":
        return []  # nobody reads it
    if not one.keeps_initial:
        return [_buffer(raising, body, one)]
    rows = _elements(raising, body, one, one.axis, one.stacks, None)
    begins_with = "" if _adds_nothing(raising, one) else one.carried.initial
    return [replace(rows, begins_with=begins_with, name=one.carried.final)]


def _buffer(raising: Raising, body: RaisedBody, one: Accumulator) -> Rows:
    rows = _elements(raising, body, one, 0, one.stacks, None)
    if rows.joined:
        return replace(rows, name=one.carried.final)
    where = placed(raising.site, one.carried.final, 0, one.backwards)
    return replace(
        rows,
        name=where.name,
        axis=where.axis,
        reversed=where.reversed,
        covered=where.covered,
    )


def _joined(raising: Raising, body: RaisedBody, one: Accumulator, join: Joined) -> Rows:
    dims = raising.types.dims(one.element) or ()
    axis = join.axis % (len(dims) + join.stacks)
    rows = _elements(raising, body, one, axis, join.stacks, join)
    made = raising.integers.producer(one.carried.initial)
    if made is None or op_of(made) not in ("SequenceEmpty", "SequenceConstruct"):
        raise Refused(
            "sequence-initial",
            f"that the sequence {one.carried.initial!r} starts empty is not proven",
            [raising.site.path, one.carried.initial],
        )
    begins_with = "" if op_of(made) == "SequenceEmpty" else one.carried.initial
    return replace(rows, begins_with=begins_with, name=join.output, covered=(join.position,))


def _elements(
    raising: Raising,
    body: RaisedBody,
    one: Accumulator,
    axis: int,
    stacks: bool,
    join: Joined | None,
) -> Rows:
    """Collect the elements; one of size 1 on the axis where it is joined is collected without."""
    element = _type(raising, one.element)
    base = Rows(raising, one.element, "", element, axis, one.backwards, (), one, join)
    dims = dims_of(element) or ()
    if stacks:
        return base
    if dims[axis] == 1:
        inner = body.author.inside(body.author.prefix)
        result = spelling.squeeze(inner, one.element, axis)
        body.author.adopt([], inner.constants)
        for node in inner.nodes:
            body.append(node)
        rest = tuple(dim for at, dim in enumerate(dims) if at != axis)
        narrow = tensor_type(element.tensor_type.elem_type, rest)
        return replace(base, result=result, element=narrow)
    fixed = all(isinstance(dim, int) and dim for dim in dims)
    if body.author.opset < ZERO_IS_A_SIZE and not fixed:
        raise Refused(
            "element-shape",
            f"{one.element!r}, of shape {list(dims)}, may be empty, which Reshape cannot say "
            f"before opset {ZERO_IS_A_SIZE}",
            [raising.site.path, one.element],
        )
    return replace(base, joined=True)


def _adds_nothing(raising: Raising, one: Accumulator) -> bool:
    """Whether what an accumulator starts with is empty, and else of the elements' shape."""
    initial = dims_of(raising.site.type_of(one.carried.initial))
    element = raising.types.dims(one.element)
    if initial is None or element is None or len(initial) != len(element):
        return False
    if initial[one.axis] != 0:
        return False
    pairs = [pair for at, pair in enumerate(zip(initial, element, strict=True)) if at != one.axis]
    return all(before is not None and before == after for before, after in pairs)
