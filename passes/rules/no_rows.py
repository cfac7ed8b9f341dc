"""What a loop collects where no iteration runs: nothing, of the right type and sizes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto, helper

from passes import spelling
from passes.author import Author
from passes.loop_form import Collected, LoopForm
from passes.rule import Refused, Site
from passes.rules.element_sizes import shape_of_none, size_of
from passes.value_types import Dim, dims_of, elem_type_of

_CONSTANT_OF_SHAPE = 9  # the opset that came with it


def no_rows(author: Author, site: Site, form: LoopForm, one: Collected) -> str:
    """A collected output of no iterations, typed and shaped: 0 where a size is not known.

    Raises:
        Refused: `unknown-shape` where the rank is not known, `opset-too-old` where a size is only
            known when the model runs, and the opset makes no tensor of such a size.
    """
    known = site.body_type_of("body", one.body_output)
    dims = dims_of(known)
    if dims is None or not elem_type_of(known):
        raise Refused(
            "unknown-shape",
            f"no iteration runs, and the rank of {one.body_output!r} is not known",
            [site.path, one.body_output],
        )
    if any(isinstance(dim, str) for dim in dims):
        if author.opset < _CONSTANT_OF_SHAPE:
            raise _too_old(author, site, one, dims)
        sizes = [size_of(author, site, form, dim) for dim in dims]
        return spelling.zeros(author, shape_of_none(author, sizes, one.axis), elem_type_of(known))
    shape = [dim if isinstance(dim, int) else 0 for dim in dims]
    shape.insert(one.axis % (len(shape) + 1), 0)
    if elem_type_of(known) == TensorProto.STRING:
        return author.strings([], tuple(shape))
    dtype = helper.tensor_dtype_to_np_dtype(elem_type_of(known))
    return author.constant(np.zeros(shape, dtype), "empty")


def _too_old(author: Author, site: Site, one: Collected, dims: Sequence[Dim]) -> Refused:
    return Refused(
        "opset-too-old",
        f"no iteration runs, and opset {author.opset} makes no rows of {one.body_output!r} of "
        f"shape {list(dims)}; opset {_CONSTANT_OF_SHAPE} does",
        [site.path, one.body_output],
    )
