"""The state of a Scan that becomes something else: where it changes its shape, that must fail."""

from __future__ import annotations

from onnx import TensorProto

from passes.loops.form import Carried
from passes.rule import Site
from passes.types.value_types import dims_of, elem_type_of
from passes.writing import spelling
from passes.writing.author import Author
from passes.writing.purposes import GUARD_SHAPES


def kept_state(author: Author, site: Site, one: Carried, new: str, old: str) -> str:
    """`new`, the state after an iteration, or a failure where its shape is not that of `old`."""
    known = [site.body_type_of("body", name) for name in (one.body_input, one.body_output)]
    ranks = {len(dims) for type_proto in known if (dims := dims_of(type_proto)) is not None}
    told = all(dims_of(type_proto) is not None for type_proto in known)
    elem_type = elem_type_of(known[0])
    with author.serving(GUARD_SHAPES):
        if (
            told
            and len(ranks) == 1
            and elem_type not in (TensorProto.UNDEFINED, TensorProto.STRING)
        ):
            return spelling.same_sizes(author, new, old)
        return spelling.same_shape(author, new, old, elem_type)
