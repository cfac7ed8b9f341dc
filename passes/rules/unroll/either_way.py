"""Iterations that may not take place: an If with two ways to compute the outputs of a loop, and the
types that its branches declare."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from onnx import TensorProto, TypeProto

from passes.analysis.bodies import body_facts
from passes.bodies.branches import Branch, Results, either
from passes.ir.purposes import Purpose
from passes.ir.versions import IDENTITY_OF_OPTIONALS, IDENTITY_OF_SEQUENCES, SHAPES_MAY_DIFFER
from passes.loops.form import Carried, Collected, LoopForm
from passes.rule import Site
from passes.rules.unroll.unrolling import Outputs, Unrolling, empty_rows
from passes.types.value_types import Dim, dims_of, elem_type_of, tensor_type
from passes.writing.author import Author

Write = Callable[[Author], Outputs]


def either_way(
    loop: Unrolling,
    author: Author,
    condition: str,
    ways: Mapping[str, Write],
    outputs: Outputs,
    purpose: Purpose | None = None,
) -> Outputs:
    """Write an If with these `outputs`, which it returns; `ways` are the writers of its branches by
    their names: if `condition` holds, and if it does not, which serves the `purpose` alone."""
    types = [state_type(loop.site, carried) for carried in loop.form.carried]
    types += [rows_type(loop.site, loop.form, collected) for collected in loop.form.collected]
    types += [tensor_type(TensorProto.BOOL, ())] if outputs.go_on else []
    then, other = [
        Branch(name, _with_types(loop, write), extra=position > 0, name=name)
        for position, (name, write) in enumerate(ways.items())
    ]
    either(
        author,
        condition,
        then,
        other,
        outputs.names,
        types,
        purpose=purpose,
        cleaning=loop.cleaning,
        iteration=then.name,
    )
    return outputs


def _with_types(loop: Unrolling, write: Write) -> Callable[[Author], Results]:
    """A writer of a branch that declares the types and annotations of the values in it."""

    def written(inner: Author) -> Results:
        types, annotations = len(loop.value_info), len(loop.annotations)
        names = write(inner).names
        return Results(names, loop.value_info[types:], loop.annotations[annotations:])

    return written


def skipped(loop: Unrolling, author: Author, states: Sequence[str], go_on: str = "") -> Outputs:
    """The outputs of a loop, or of an iteration, that does not run: the states as they are; nothing
    collected, or the row before, which is ignored and has the right shape."""
    rows = [
        before[-1] if before else empty_rows(author, loop.site, loop.form, collected)
        for collected, before in zip(loop.form.collected, loop.collected, strict=True)
    ]
    return Outputs(list(states), rows, go_on)


def state_type(site: Site, carried: Carried) -> TypeProto | None:
    """A type that a state has before and after every iteration; None where none is known.

    A size that only the body declares may be another one at run time: onnxruntime accepts that in a
    loop, but fails in an If.
    """
    before = site.body_type_of("body", carried.body_input)
    after = site.body_type_of("body", carried.body_output)
    elem_type = elem_type_of(before) or elem_type_of(after)
    if not elem_type:
        return before
    fed = site.type_of(carried.initial)
    shapes = [dims for dims in map(dims_of, (fed, before, after)) if dims is not None]
    if len(shapes) < 3 or len({len(dims) for dims in shapes}) > 1:
        return tensor_type(elem_type, None)
    sizes = zip(*shapes, strict=True)
    return tensor_type(elem_type, tuple(_size(a) if a == b == c else None for a, b, c in sizes))


def rows_type(site: Site, form: LoopForm, collected: Collected) -> TypeProto | None:
    """The type of collected rows, however many; None where it is not known."""
    known = site.body_type_of("body", collected.body_output)
    dims = dims_of(known)
    if not elem_type_of(known):
        return None
    if dims is None:
        return tensor_type(elem_type_of(known), None)
    found = all(_is_fed_what_it_declares(site, state) for state in form.carried)
    sizes = [_size(dim) if found else None for dim in dims]
    sizes.insert(collected.axis % (len(sizes) + 1), None)
    return tensor_type(elem_type_of(known), tuple(sizes))


def _is_fed_what_it_declares(site: Site, carried: Carried) -> bool:
    """Return whether every size of a state that the body declares is also known outside."""
    declared = dims_of(site.body_type_of("body", carried.body_input))
    fed = dims_of(site.type_of(carried.initial))
    if declared is None or fed is None or len(declared) != len(fed):
        return not any(isinstance(dim, int) for dim in declared or ())
    return all(a == b for a, b in zip(declared, fed, strict=True) if isinstance(a, int))


def _size(dim: Dim) -> Dim:
    return dim if isinstance(dim, int) else None


def refuse_states(site: Site, form: LoopForm) -> None:
    """Refuse states that no If of this opset can return.

    Raises:
        Refused: `old-if`, `not-a-tensor`.
    """
    for name, stays in body_facts.keeps_shape(site, form).items():
        if not stays:
            lacks = f"has no If whose branches differ in shape, and {name!r} may change its shape"
            site.need_opset(SHAPES_MAY_DIFFER, lacks, name, code="old-if")
    oldest = {"sequence_type": IDENTITY_OF_SEQUENCES, "optional_type": IDENTITY_OF_OPTIONALS}
    for name in (carried.body_input for carried in form.carried):
        known = site.body_type_of("body", name)
        kind = (known.WhichOneof("value") if known is not None else None) or ""
        lacks = f"has no Identity of {name!r}, which is not a tensor"
        site.need_opset(oldest.get(kind, 0), lacks, name, code="not-a-tensor")


def refuse_two_shapes(site: Site, form: LoopForm) -> None:
    """Refuse to collect what may be empty by an If whose branches must have one shape.

    Raises:
        Refused: `old-if`.
    """
    if any(collected.tensor for collected in form.collected):
        lacks = "has no If whose branches differ in shape, and what the loop collects may be empty"
        site.need_opset(SHAPES_MAY_DIFFER, lacks, code="old-if")
