"""Attributes that became inputs of a newer version: what several families need of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto, TensorProto, helper

from converters.conversion import Conversion
from passes.types.value_types import elem_type_of


def ints_as_input(node: NodeProto, at: Conversion, name: str) -> Sequence[NodeProto]:
    """The node with its optional attribute `name` as the second input, an int64 tensor (n).

    No attribute is no input. An empty list stays one: runtimes differ in what Squeeze does with
    it, and do the same before and after.
    """
    if not at.refers(node, name) and at.attribute(node, name) is None:
        return [at.changed(node, inputs=[node.input[0]])]
    value = at.attribute_as_input(node, name, np.int64)
    return [at.changed(node, inputs=[node.input[0], value], without=[name])]


def float_as_input(
    node: NodeProto, at: Conversion, name: str, like: str, default: float
) -> tuple[str, list[NodeProto]]:
    """A scalar of the element type of `like` that holds the float attribute `name`.

    Returns:
        Its name, and the nodes that compute it: none where type and value are known.

    Raises:
        Refused: `unknown-type`: the type is unknown, and the target has no CastLike.
    """
    if not elem_type_of(at.type_of(like)) and at.site.target >= _CAST_LIKE:
        value = at.attribute_as_input(node, name, np.float32, default)
        cast = at.later(_CAST_LIKE).node("CastLike", [value, like])
        return cast.output[0], [cast]
    elem_type = at.known_elem_type(like)
    if at.refers(node, name) and elem_type != TensorProto.FLOAT:
        value = at.attribute_as_input(node, name, np.float32, default)
        cast = at.node("Cast", [value], to=elem_type)
        return cast.output[0], [cast]
    dtype = helper.tensor_dtype_to_np_dtype(elem_type)
    if at.refers(node, name):
        return at.attribute_as_input(node, name, dtype, default), []
    with np.errstate(over="ignore"):  # what float16 cannot hold is infinite
        bound = np.float32(at.attribute(node, name, default)).astype(dtype)
    return at.value(bound, name), []


#: The version in which CastLike came.
_CAST_LIKE = 15
