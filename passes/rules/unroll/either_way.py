"""Iterations that may not take place: an If with two ways to compute the outputs of a loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from onnx import TensorProto

from passes.rules.unroll.branch_types import rows_type, state_type
from passes.rules.unroll.unrolling import Outputs, Unrolling, empty_rows
from passes.types.value_types import tensor_type
from passes.writing.author import Author
from passes.writing.branches import Branch, Results, either
from passes.writing.purposes import Purpose

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
        {"then_branch": then, "else_branch": other},
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
